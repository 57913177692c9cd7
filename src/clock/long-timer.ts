import type { Timer } from "../model/clock.ts";

/** `setTimeout` fires at once when the delay is longer than this. A longer wait takes several steps. */
const TIMEOUT_MAX_MS = 2 ** 31 - 1;

type Timeout = ReturnType<typeof setTimeout>;

/**
 * Calls `callback` once, `delayMs` from now, however long that is. Never early. `onStep` gets each `setTimeout` that it takes.
 */
export function setLongTimer(
  delayMs: number,
  callback: () => void,
  onStep?: (timeout: Timeout) => void,
): Timer {
  let timeout: Timeout;
  arm(delayMs);
  return { cancel: () => clearTimeout(timeout) };

  function arm(leftMs: number): void {
    // setTimeout drops fractions, and would fire early.
    const stepMs = Math.min(Math.ceil(leftMs), TIMEOUT_MAX_MS);
    timeout = setTimeout(() => (leftMs > stepMs ? arm(leftMs - stepMs) : callback()), stepMs);
    onStep?.(timeout);
  }
}
