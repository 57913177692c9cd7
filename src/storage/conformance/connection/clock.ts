import type { Clock, Timer } from "../../../model/clock.ts";

/** A clock that only moves when a test moves it, forward or back. */
export class SteppedClock implements Clock {
  #now: number;

  constructor(startAt = Date.UTC(2030, 0, 1)) {
    this.#now = startAt;
  }

  now(): number {
    return this.#now;
  }

  monotonic(): number {
    return this.#now;
  }

  /** A storage must not use timers: one that tries gets an error. */
  setTimer(): Timer {
    throw new Error("The storage sets no timers.");
  }

  /** Moves the clock by `ms`; negative: sets it back. */
  step(ms: number): void {
    this.#now += ms;
  }
}
