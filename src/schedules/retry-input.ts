import { invalidField } from "../model/input/field-checks.ts";
import type { RETRY_FIELDS } from "../model/input/schedule-schema.ts";
import type { ReadOf } from "../model/input/schema.ts";
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

/** The `retry` of a schedule. Throws `invalid_field`. */
export function checkRetry(read: ReadOf<typeof RETRY_FIELDS>): RetryInput {
  const { max_retries: maxRetries, base_delay_ms: backoffMs, max_delay_ms: maxBackoffMs } = read;
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
