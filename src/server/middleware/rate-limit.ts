import { pause } from "../../clock/pause.ts";
import type { Clock } from "../../model/clock.ts";
import { RotaError } from "../../model/errors.ts";

/** How much each key or tenant may use, in units of cost: see `request-cost.ts`. */
export interface RateLimitOptions {
  readonly perSecond: number;
  /** How many units a full bucket holds. */
  readonly burst: number;
  /** How many expensive requests may be in flight. */
  readonly maxExpensive: number;
}

export const DEFAULT_RATE_LIMIT: RateLimitOptions = { perSecond: 100, burst: 200, maxExpensive: 4 };

/** Beyond this many, keys whose buckets are full again are forgotten. */
const KEPT_MAX = 10_000;

/** The longest wait of work that is not urgent. It makes slow progress even while requests use up all units. */
const SPARE_WAIT_MAX_MS = 1_000;

interface Bucket {
  left: number;
  at: number;
}

/** Whose limit it is, for error messages. */
type Owner = keyof typeof OWNERS;
const OWNERS = { key: "this API key", tenant: "the API keys of this tenant together" } as const;

/** A token bucket for each key or tenant, so that one cannot take the process from all others. */
export class RateLimit {
  readonly #options: RateLimitOptions;
  readonly #clock: Clock;
  readonly #onRefused: () => void;
  readonly #owner: Owner;
  readonly #buckets = new Map<string, Bucket>();
  readonly #expensive = new Map<string, number>();

  constructor(options: RateLimitOptions, clock: Clock, onRefused: () => void, owner: Owner = "key") {
    this.#options = options;
    this.#clock = clock;
    this.#onRefused = onRefused;
    this.#owner = owner;
  }

  /** Takes `units` out of the key's bucket before the work is done. Throws `rate_limited`. */
  take(keyId: string, units = 1, cost = units): void {
    const { perSecond, burst } = this.#options;
    const bucket = this.#filled(keyId);
    // A request that costs more than a full bucket needs a full one.
    const needed = Math.min(units, burst);
    if (bucket.left < needed) {
      this.#onRefused();
      throw new RotaError("rate_limited", tooMuch(cost, perSecond, this.#owner), {
        details: { cost, perSecond, burst },
        retryAfterSec: Math.max(1, Math.ceil((needed - bucket.left) / perSecond)),
      });
    }
    bucket.left -= units;
  }

  /**
   * Charges the difference between the real cost and what was taken. If `units` is negative, it is given back. The bucket may go
   * into debt, by one burst at most, so that a response larger than announced delays the next requests.
   */
  settle(keyId: string, units: number): void {
    const { burst } = this.#options;
    const bucket = this.#filled(keyId);
    bucket.left = Math.max(-burst, Math.min(bucket.left - units, burst));
  }

  /**
   * For work that is not urgent and is charged afterwards. Resolves once the key's bucket is half full, or after a second: the
   * other half is for requests, which would be refused otherwise. Rejects when `gone` fires.
   */
  async whenSpare(keyId: string, gone: AbortSignal): Promise<void> {
    const { perSecond, burst } = this.#options;
    const until = this.#clock.monotonic() + SPARE_WAIT_MAX_MS;
    for (;;) {
      gone.throwIfAborted();
      const missing = burst / 2 - this.#filled(keyId).left;
      const leftMs = until - this.#clock.monotonic();
      if (missing <= 0 || leftMs <= 0) return;
      await pause(this.#clock, Math.min(Math.ceil((missing / perSecond) * 1_000), leftMs), gone);
    }
  }

  /** Returns the function to call when the request is over. Throws `rate_limited` when too many are in flight. */
  enter(keyId: string): () => void {
    const { maxExpensive: max } = this.#options;
    const inFlight = this.#expensive.get(keyId) ?? 0;
    if (inFlight >= max) {
      this.#onRefused();
      throw new RotaError(
        "rate_limited",
        `${inFlight} expensive requests of ${OWNERS[this.#owner]} are in flight, and there can be no more: wait for one to end, or ask for less at once`,
        { details: { inFlight, max } },
      );
    }
    this.#expensive.set(keyId, inFlight + 1);
    let inside = true;
    return () => {
      if (inside) this.#leave(keyId);
      inside = false;
    };
  }

  #leave(keyId: string): void {
    const left = (this.#expensive.get(keyId) ?? 1) - 1;
    if (left === 0) this.#expensive.delete(keyId);
    else this.#expensive.set(keyId, left);
  }

  #filled(keyId: string): Bucket {
    const { perSecond, burst } = this.#options;
    const now = this.#clock.monotonic();
    const bucket = this.#buckets.get(keyId) ?? this.#newBucket(keyId, now);
    bucket.left = Math.min(bucket.left + ((now - bucket.at) / 1_000) * perSecond, burst);
    bucket.at = now;
    return bucket;
  }

  #newBucket(keyId: string, now: number): Bucket {
    if (this.#buckets.size >= KEPT_MAX) this.#forgetFull(now);
    const bucket = { left: this.#options.burst, at: now };
    this.#buckets.set(keyId, bucket);
    return bucket;
  }

  #forgetFull(now: number): void {
    const { perSecond, burst } = this.#options;
    for (const [keyId, { left, at }] of this.#buckets) {
      if (now - at >= ((burst - left) / perSecond) * 1_000) this.#buckets.delete(keyId);
    }
  }
}

function tooMuch(cost: number, perSecond: number, owner: Owner): string {
  const [makes, has] = owner === "key" ? ["makes", "has"] : ["make", "have"];
  return cost === 1
    ? `${OWNERS[owner]} ${makes} more than ${perSecond} requests a second: send fewer, or many tasks as one batch`
    : `this request costs as much as ${cost} small ones, and ${OWNERS[owner]} ${has} ${perSecond} a second: ask for less at once, or later`;
}
