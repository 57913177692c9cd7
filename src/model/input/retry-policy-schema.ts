import type { RetryPolicy } from "../retry-policy.ts";
import { number } from "./kinds.ts";
import { type Field, optional } from "./schema.ts";

/** A day: a caller who wants a longer delay needs a schedule. */
const BACKOFF_MAX_MS = 86_400_000;

/** The range of each number. */
export const RETRY_RANGES = {
  maxRetries: { min: 0, max: 100 },
  backoffMs: { min: 0, max: BACKOFF_MAX_MS, unit: "milliseconds" },
  backoffMultiplier: { min: 1, max: 10, integer: false },
  maxBackoffMs: { min: 0, max: BACKOFF_MAX_MS, unit: "milliseconds" },
  jitter: { min: 0, max: 1, integer: false },
} as const satisfies Record<keyof RetryPolicy, object>;

/** The retry policy of a task. Fields that are left out have the default of its kind. */
export const RETRY_POLICY_FIELDS = {
  maxRetries: optional(number(RETRY_RANGES.maxRetries), {
    description: "How often it is retried after a failure.",
    flag: "--retries <number>",
  }),
  backoffMs: optional(number(RETRY_RANGES.backoffMs), { description: "The wait before the first retry." }),
  backoffMultiplier: optional(number(RETRY_RANGES.backoffMultiplier), {
    description: "How many times as long each further wait is.",
  }),
  maxBackoffMs: optional(number(RETRY_RANGES.maxBackoffMs), { description: "The longest wait." }),
  jitter: optional(number(RETRY_RANGES.jitter), {
    description: "The share of each wait that is randomly added or subtracted.",
  }),
} as const satisfies Record<keyof RetryPolicy, Field>;
