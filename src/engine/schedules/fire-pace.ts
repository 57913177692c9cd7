import { largeBytesOf } from "../../storage/lazy-json.ts";

/** A tenant that has been idle may fire this many seconds' worth at once: schedules of many users are often due at the same hour. */
const BURST_SEC = 10;
/**
 * A tenant that has used up its bucket fires as much as it may in a tenth of a second, together. One by one, each fire would be a
 * transaction of its own and each task be claimed by itself: on PostgreSQL, 200 of them a second kept other writes waiting.
 */
const TOGETHER_SEC = 0.1;
/** A fire of a large schedule counts as several: its task is written, read and run. */
const BYTES_PER_FIRE = 2_048;
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
    return due.filter((schedule) => {
      const { tenant } = schedule;
      const now = left.get(tenant) ?? this.#spendable(tenant, perSecond);
      left.set(tenant, now - firesOf(schedule));
      return now >= 1;
    });
  }

  /** These fire. The bucket may go into debt, so that a large schedule fires at all, and delays the next ones. */
  used(fired: readonly { readonly tenant: string }[]): void {
    const perSecond = this.#options.perSecond();
    if (perSecond === null) return;
    for (const schedule of fired) this.#filled(schedule.tenant, perSecond).left -= firesOf(schedule);
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

function firesOf(schedule: object): number {
  return Math.max(Math.ceil(largeBytesOf(schedule) / BYTES_PER_FIRE), 1);
}
