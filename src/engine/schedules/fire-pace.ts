/** A tenant that has been idle may fire this many seconds' worth at once: schedules of many users are often due at the same hour. */
const BURST_SEC = 10;
/**
 * A tenant that has used up its bucket fires as much as it may in a tenth of a second, together. One by one, each fire would be a
 * transaction of its own and each task be claimed by itself: on PostgreSQL, 200 of them a second kept other writes waiting.
 */
const TOGETHER_SEC = 0.1;
/** Beyond this many, tenants with a full bucket are forgotten. */
const KEPT_MAX = 1_000;

export interface FirePaceOptions {
  /** Fires of one tenant per second on average; null: any number. */
  readonly perSecond: () => number | null;
  /** The monotonic clock. */
  readonly monotonic: () => number;
}

interface Bucket {
  left: number;
  at: number;
}

/** Bounds how often the schedules of one tenant fire in this process, so that they leave time for other tenants. */
export class FirePace {
  readonly #options: FirePaceOptions;
  readonly #buckets = new Map<string, Bucket>();

  constructor(options: FirePaceOptions) {
    this.#options = options;
  }

  /** The due schedules that may fire now, in their order. The others stay due. */
  allowed<Due extends { readonly tenant: string }>(due: readonly Due[]): Due[] {
    const perSecond = this.#options.perSecond();
    if (perSecond === null) {
      this.#buckets.clear();
      return [...due];
    }
    const left = new Map<string, number>();
    return due.filter(({ tenant }) => {
      const now = left.get(tenant) ?? this.#spendable(tenant, perSecond);
      left.set(tenant, now - 1);
      return now >= 1;
    });
  }

  /** These have fired. */
  used(fired: readonly { readonly tenant: string }[]): void {
    const perSecond = this.#options.perSecond();
    if (perSecond === null) return;
    for (const { tenant } of fired) this.#filled(tenant, perSecond).left -= 1;
    if (this.#buckets.size > KEPT_MAX) this.#forgetFull(perSecond);
  }

  #spendable(tenant: string, perSecond: number): number {
    const { left } = this.#filled(tenant, perSecond);
    return left >= Math.max(1, perSecond * TOGETHER_SEC) ? left : 0;
  }

  #filled(tenant: string, perSecond: number): Bucket {
    const now = this.#options.monotonic();
    const burst = perSecond * BURST_SEC;
    const bucket = this.#buckets.get(tenant) ?? { left: burst, at: now };
    bucket.left = Math.min(burst, bucket.left + ((now - bucket.at) / 1_000) * perSecond);
    bucket.at = now;
    this.#buckets.set(tenant, bucket);
    return bucket;
  }

  #forgetFull(perSecond: number): void {
    for (const tenant of this.#buckets.keys()) {
      if (this.#filled(tenant, perSecond).left >= perSecond * BURST_SEC) this.#buckets.delete(tenant);
    }
  }
}
