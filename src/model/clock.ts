/**
 * The source of time. All code that reads the time or waits gets a clock, so that tests can move time instead of sleeping.
 */
export interface Clock {
  /** Wall-clock time in milliseconds since 1970. It may jump, in either direction. */
  now(): number;
  /** Milliseconds that never go backwards and never jump; only differences mean anything. */
  monotonic(): number;
  /** Calls `callback` once, `delayMs` from now. A pending timer never keeps the process alive on its own. */
  setTimer(delayMs: number, callback: () => void): Timer;
}

export interface Timer {
  cancel(): void;
}
