import type { Clock, Timer } from "../../model/clock.ts";

/** setTimeout fires at once when the delay is longer than this. A longer wait takes several steps. */
const TIMEOUT_MAX_MS = 2 ** 31 - 1;

/** The machine's own time. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  setTimer,
};

function setTimer(delayMs: number, callback: () => void): Timer {
  let timeout: NodeJS.Timeout;
  arm(delayMs);
  return { cancel: () => clearTimeout(timeout) };

  function arm(leftMs: number): void {
    // setTimeout drops fractions, and would fire early.
    const stepMs = Math.min(Math.ceil(leftMs), TIMEOUT_MAX_MS);
    timeout = setTimeout(() => (leftMs > stepMs ? arm(leftMs - stepMs) : callback()), stepMs);
    timeout.unref();
  }
}
