import type { RetryPolicy } from "../retry-policy.ts";
import { checkKnown, type Fields, optionalNumber, withoutNulls } from "./field-checks.ts";

/** A day: a retry that waits longer than this is a schedule. */
const BACKOFF_MAX_MS = 86_400_000;

/** What each number may be. */
export const RETRY_FIELDS = {
  maxRetries: { min: 0, max: 100 },
  backoffMs: { min: 0, max: BACKOFF_MAX_MS, unit: "milliseconds" },
  backoffMultiplier: { min: 1, max: 10, integer: false },
  maxBackoffMs: { min: 0, max: BACKOFF_MAX_MS, unit: "milliseconds" },
  jitter: { min: 0, max: 1, integer: false },
} as const satisfies Record<keyof RetryPolicy, object>;

/** What of a retry policy was given, each in its range. Also how the configuration's `retry` is checked. */
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
