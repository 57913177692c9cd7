/** How a failed task is tried again. */
export interface RetryPolicy {
  /** How often it is tried again after the first failure. */
  readonly maxRetries: number;
  readonly backoffMs: number;
  readonly backoffMultiplier: number;
  readonly maxBackoffMs: number;
  /** Share of the delay that chance may add or take away: 0 none, 0.25 a quarter either way. */
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
 * The wait before the next try: `min(backoffMs × multiplier^retryCount, maxBackoffMs)`, where `retryCount` is the
 * number of retries made so far. `random` is in [0, 1).
 */
export function retryDelayMs(policy: RetryPolicy, retryCount: number, random: () => number): number {
  const delay = Math.min(policy.backoffMs * policy.backoffMultiplier ** retryCount, policy.maxBackoffMs);
  if (policy.jitter === 0) return Math.round(delay);
  return Math.round(delay * (1 + policy.jitter * (2 * random() - 1)));
}
