import type { RetryPolicy } from "../retry-policy.ts";
import { checkKnown, type Fields, optionalNumber, withoutNulls } from "./field-checks.ts";

/** A day: a caller who wants a longer delay needs a schedule. */
const BACKOFF_MAX_MS = 86_400_000;

/** The range of each number. */
export const RETRY_FIELDS = {
  maxRetries: { min: 0, max: 100 },
  backoffMs: { min: 0, max: BACKOFF_MAX_MS, unit: "milliseconds" },
  backoffMultiplier: { min: 1, max: 10, integer: false },
  maxBackoffMs: { min: 0, max: BACKOFF_MAX_MS, unit: "milliseconds" },
  jitter: { min: 0, max: 1, integer: false },
} as const satisfies Record<keyof RetryPolicy, object>;

/** Checks the given fields of a retry policy. Also used for `retry` of the configuration. */
export function checkRetryPolicy(fields: Fields, prefix: string): Partial<RetryPolicy> {
  const names = Object.keys(RETRY_FIELDS) as (keyof RetryPolicy)[];
  checkKnown(fields, names, prefix);
  const said = withoutNulls(fields);
  const policy: { -readonly [K in keyof RetryPolicy]?: number } = {};
  for (const name of names) {
    const value = optionalNumber(said, name, RETRY_FIELDS[name], prefix);
    if (value !== undefined) policy[name] = value;
  }
  return policy;
}
