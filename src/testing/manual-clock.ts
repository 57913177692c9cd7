import type { Clock, Timer } from "../model/clock.ts";

/** Enough turns of the event loop for a chain of immediate work, such as submit → claim → run → finish. */
const SETTLE_TURNS = 25;

interface PendingTimer {
  readonly at: number;
  readonly callback: () => void;
}

/**
 * A clock that moves only when the test moves it.
 *
 * @example
 * const clock = new ManualClock();
 * const rota = await createTestRota({ clock });
 * await clock.advance(60_000);
 */
export class ManualClock implements Clock {
  #wall: number;
  #monotonic = 0;
  readonly #timers = new Set<PendingTimer>();

  constructor(now: number = Date.UTC(2026, 0, 1)) {
    this.#wall = now;
  }

  now(): number {
    // Whole milliseconds like Date.now(), even if a timer was set for a fraction of one.
    return Math.floor(this.#wall);
  }

  monotonic(): number {
    return this.#monotonic;
  }

  setTimer(delayMs: number, callback: () => void): Timer {
    const timer = { at: this.#monotonic + Math.max(delayMs, 0), callback };
    this.#timers.add(timer);
    return { cancel: () => this.#timers.delete(timer) };
  }

  /**
   * Moves time forward. Timers fire in order, each at its time. The work that a timer starts settles before the next one fires,
   * and work that is already running settles first.
   */
  async advance(ms: number): Promise<void> {
    const end = this.#monotonic + ms;
    await settle();
    for (let timer = this.#next(end); timer !== undefined; timer = this.#next(end)) {
      this.#moveTo(timer.at);
      this.#timers.delete(timer);
      timer.callback();
      await settle();
    }
    this.#moveTo(end);
  }

  /** Sets only the wall clock, as an administrator or a time server does. Timers are not affected. */
  set(now: number): void {
    this.#wall = now;
  }

  /** How many timers are waiting. */
  get pending(): number {
    return this.#timers.size;
  }

  /** Timers of the same time fire in the order in which they were set. */
  #next(end: number): PendingTimer | undefined {
    let first: PendingTimer | undefined;
    for (const timer of this.#timers) {
      if (timer.at <= end && (first === undefined || timer.at < first.at)) first = timer;
    }
    return first;
  }

  #moveTo(monotonic: number): void {
    const by = Math.max(monotonic - this.#monotonic, 0);
    this.#monotonic += by;
    this.#wall += by;
  }
}

/** Waits until all work that needs no time is done. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < SETTLE_TURNS; turn++) {
    await new Promise((resolve) => setImmediate(resolve));
  }
}
