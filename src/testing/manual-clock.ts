import type { Clock, Timer } from "../model/clock.ts";

/** So many turns of the event loop let a chain of immediate work, such as submit → claim → run → finish, play out. */
const SETTLE_TURNS = 25;

interface PendingTimer {
  readonly at: number;
  readonly callback: () => void;
}

/**
 * A clock that stands still until it is told to move.
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
    // Whole milliseconds, as Date.now() gives them, also when a timer was set for a part of one.
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
   * Moves time forward. Timers fire in order, each at its moment, and what they set off gets to play out before the
   * next; so does what is still going on before and after.
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

  /** Sets the wall clock alone, as an administrator or a time server does: timers wait on as if nothing happened. */
  set(now: number): void {
    this.#wall = now;
  }

  /** How many timers are waiting. */
  get pending(): number {
    return this.#timers.size;
  }

  /** Timers of the same moment fire in the order they were set. */
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

/** Lets everything that needs no time come to rest. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < SETTLE_TURNS; turn++) {
    await new Promise((resolve) => setImmediate(resolve));
  }
}
