import type { Clock } from "../../model/clock.ts";
import { RotaError } from "../../model/errors.ts";

/** How many requests each key may make. */
export interface RateLimitOptions {
  readonly perSecond: number;
  /** How many at once, after a while without any. */
  readonly burst: number;
}

export const DEFAULT_RATE_LIMIT: RateLimitOptions = { perSecond: 100, burst: 200 };

/** Beyond so many, keys that have not been used for long enough to be full again are forgotten. */
const KEPT_MAX = 10_000;

interface Bucket {
  left: number;
  at: number;
}

/** Keeps one key from taking the process away from all others: a bucket for each, which fills up as time goes by. */
export class RateLimit {
  readonly #options: RateLimitOptions;
  readonly #clock: Clock;
  readonly #buckets = new Map<string, Bucket>();

  constructor(options: RateLimitOptions, clock: Clock) {
    this.#options = options;
    this.#clock = clock;
  }

  /** Throws `rate_limited`. */
  take(keyId: string): void {
    const { perSecond, burst } = this.#options;
    const now = this.#clock.monotonic();
    const bucket = this.#buckets.get(keyId) ?? this.#newBucket(keyId, now);
    bucket.left = Math.min(bucket.left + ((now - bucket.at) / 1_000) * perSecond, burst);
    bucket.at = now;
    if (bucket.left < 1) {
      throw new RotaError(
        "rate_limited",
        `this API key makes more than ${perSecond} requests a second: send fewer, or many tasks as one batch`,
        { details: { perSecond, burst } },
      );
    }
    bucket.left -= 1;
  }

  #newBucket(keyId: string, now: number): Bucket {
    if (this.#buckets.size >= KEPT_MAX) this.#forgetFull(now);
    const bucket = { left: this.#options.burst, at: now };
    this.#buckets.set(keyId, bucket);
    return bucket;
  }

  #forgetFull(now: number): void {
    const { perSecond, burst } = this.#options;
    const fullAfterMs = (burst / perSecond) * 1_000;
    for (const [keyId, { at }] of this.#buckets) {
      if (now - at >= fullAfterMs) this.#buckets.delete(keyId);
    }
  }
}
