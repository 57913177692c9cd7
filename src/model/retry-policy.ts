/** How a failed task is retried. */
export interface RetryPolicy {
  /** How many attempts may follow the first one. */
  readonly maxRetries: number;
  readonly backoffMs: number;
  readonly backoffMultiplier: number;
  readonly maxBackoffMs: number;
  /** The share of the delay that is randomly added or subtracted: 0 none, 0.25 up to a quarter. */
  readonly jitter: number;
}

export const DEFAULT_RETRY_POLICY: RetryPolicy = {
  maxRetries: 3,
  backoffMs: 1000,
  backoffMultiplier: 2,
  maxBackoffMs: 60_000,
  jitter: 0,
};

/**
 * The backoff before the next attempt: `min(backoffMs × multiplier^retryCount, maxBackoffMs)`, where `retryCount` is the number
 * of retries so far. `random` is in [0, 1).
 */
export function retryDelayMs(policy: RetryPolicy, retryCount: number, random: () => number): number {
  const delay = Math.min(policy.backoffMs * policy.backoffMultiplier ** retryCount, policy.maxBackoffMs);
  if (policy.jitter === 0) return Math.round(delay);
  return Math.round(delay * (1 + policy.jitter * (2 * random() - 1)));
}
