import type { Clock, Timer } from "../../../model/clock.ts";

/** A clock that stands still until a test moves it, forward or back. */
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

  /** Nothing in the storage may wait for a timer: whoever asks for one learns of it. */
  setTimer(): Timer {
    throw new Error("The storage sets no timers.");
  }

  /** Moves the clock by `ms`, which is negative when it is set back. */
  step(ms: number): void {
    this.#now += ms;
  }
}
