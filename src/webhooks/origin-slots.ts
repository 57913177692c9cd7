/** How long an exchange is thought to take with a receiver of which nothing is known yet. */
const FIRST_GUESS_MS = 25;
/** How much the latest exchange counts in the average. */
const LATEST_WEIGHT = 0.25;
/** Better too early, which costs another look, than too late, when nothing is being sent meanwhile. */
const HASTE = 0.5;
/** The longest a delivery is sent away for: a receiver that recovers should not have to wait for what it missed. */
const WAIT_MAX_MS = 60_000;
/** What a receiver gets of which nothing was heard: enough to notice that it is back. */
const SILENT_SHARE = 1;
/** What all of them get together, of everything: the rest is for those that answer, however many do not. */
const SILENT_TOTAL = 0.5;
/** Receivers that nothing is sent to right now and that are remembered all the same. */
const IDLE_MAX = 1_000;

export interface OriginSlotsOptions {
  readonly total: number;
  readonly perOrigin: number;
  /** By the monotonic clock. */
  readonly now: () => number;
}

/** How an exchange ended: `silent` when nobody was reached, or nothing was heard in time. */
export type ExchangeEnd = "delivered" | "answered" | "silent";

interface Origin {
  /** When each exchange under way began, the oldest first. */
  readonly began: number[];
  averageMs: number;
  /** From an exchange in which nothing was heard of it until something is delivered. */
  silent: boolean;
  /** Until when those that were sent away will keep it busy. */
  bookedUntil: number;
}

/**
 * Room for exchanges, of which no receiver gets more than its share, and those known to hang no more than half together:
 * they slow each other and nobody else. For those that find no room with their receiver it foretells when there will be
 * some, one after the other, from how long its exchanges take.
 */
export class OriginSlots {
  readonly #options: OriginSlotsOptions;
  readonly #origins = new Map<string, Origin>();
  #taken = 0;

  constructor(options: OriginSlotsOptions) {
    this.#options = options;
  }

  get free(): number {
    return this.#options.total - this.#taken;
  }

  /** Takes a slot; null when the receiver has its share. What is returned gives it back. */
  take(name: string): ((end: ExchangeEnd) => void) | null {
    const origin = this.#origin(name);
    if (this.free === 0 || origin.began.length >= this.#shareOf(origin)) return null;
    if (origin.silent && this.#takenBySilent() >= this.#options.total * SILENT_TOTAL) return null;
    const began = this.#options.now();
    origin.began.push(began);
    this.#taken += 1;
    return (end) => {
      this.#taken -= 1;
      origin.began.splice(origin.began.indexOf(began), 1);
      origin.averageMs += (this.#options.now() - began - origin.averageMs) * LATEST_WEIGHT;
      if (end !== "answered") origin.silent = end === "silent";
    };
  }

  /** How long to send the next one away for that found no room. */
  waitMs(name: string): number {
    const origin = this.#origin(name);
    const now = this.#options.now();
    // An exchange that goes on is known to take as long as it already does.
    const exchangeMs = Math.max(origin.averageMs, now - (origin.began[0] ?? now));
    const free = Math.max(origin.bookedUntil, now) + (HASTE * exchangeMs) / this.#shareOf(origin);
    origin.bookedUntil = Math.min(free, now + WAIT_MAX_MS);
    return Math.ceil(origin.bookedUntil - now);
  }

  #takenBySilent(): number {
    let taken = 0;
    for (const { silent, began } of this.#origins.values()) if (silent) taken += began.length;
    return taken;
  }

  #shareOf({ silent }: Origin): number {
    return silent ? SILENT_SHARE : this.#options.perOrigin;
  }

  #origin(name: string): Origin {
    const known = this.#origins.get(name);
    if (known !== undefined) return known;
    this.#forgetIdle();
    const origin = { began: [], averageMs: FIRST_GUESS_MS, silent: false, bookedUntil: 0 };
    this.#origins.set(name, origin);
    return origin;
  }

  /** Those that were silent last: to forget them is to give them slots again. */
  #forgetIdle(): void {
    for (const mayForget of [({ silent }: Origin) => !silent, () => true]) {
      if (this.#origins.size < IDLE_MAX) return;
      for (const [name, origin] of this.#origins) {
        if (origin.began.length === 0 && mayForget(origin)) this.#origins.delete(name);
      }
    }
  }
}
