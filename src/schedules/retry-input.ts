import {
  checkKnown,
  type Fields,
  invalidField,
  optionalNumber,
  withoutNulls,
} from "../model/input/field-checks.ts";
import { RETRY_FIELDS } from "../model/input/retry-policy-input.ts";
import type { RetryPolicy } from "../model/retry-policy.ts";

/** The default retries of a run: each wait is twice as long as the one before, with a jitter of a quarter. */
export const RUN_RETRY_POLICY: RetryPolicy = {
  maxRetries: 3,
  backoffMs: 2_000,
  backoffMultiplier: 2,
  maxBackoffMs: 30_000,
  jitter: 0.25,
};

/** The `retry` of a schedule. Fields that are left out keep their values. */
export interface RetryInput {
  readonly maxRetries?: number;
  readonly backoffMs?: number;
  readonly maxBackoffMs?: number;
}

/** Checks the `retry` of a schedule. Throws `invalid_field`. */
export function parseRetry(given: Fields): RetryInput {
  const prefix = "retry.";
  checkKnown(given, ["max_retries", "base_delay_ms", "max_delay_ms"], prefix);
  const retry = withoutNulls(given);
  const maxRetries = optionalNumber(retry, "max_retries", RETRY_FIELDS.maxRetries, prefix);
  const backoffMs = optionalNumber(retry, "base_delay_ms", RETRY_FIELDS.backoffMs, prefix);
  const maxBackoffMs = optionalNumber(retry, "max_delay_ms", RETRY_FIELDS.maxBackoffMs, prefix);
  if (backoffMs !== undefined && maxBackoffMs !== undefined && maxBackoffMs < backoffMs) {
    throw invalidField(
      "retry.max_delay_ms",
      `\`retry.max_delay_ms\` must not be less than \`retry.base_delay_ms\`: ${maxBackoffMs} is less than ${backoffMs}`,
    );
  }
  return {
    ...(maxRetries === undefined ? {} : { maxRetries }),
    ...(backoffMs === undefined ? {} : { backoffMs }),
    ...(maxBackoffMs === undefined ? {} : { maxBackoffMs }),
  };
}

/** Applies the input to an earlier policy. If only one of the two waits is set, the other is adjusted to fit it. */
export function retryPolicyOf(said: RetryInput, before: RetryPolicy): RetryPolicy {
  const { backoffMs, maxBackoffMs } = { ...before, ...said };
  return {
    ...before,
    ...said,
    backoffMs: said.backoffMs ?? Math.min(backoffMs, maxBackoffMs),
    maxBackoffMs: said.maxBackoffMs ?? Math.max(backoffMs, maxBackoffMs),
  };
}
