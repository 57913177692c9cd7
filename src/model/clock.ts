/**
 * Where time comes from. Everything that looks at a clock or waits is handed one, so that tests move time
 * instead of sleeping through it.
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
