import type { Clock, Timer } from "../model/clock.ts";

/** `setTimeout` fires at once for a longer delay, so a longer wait goes in steps. */
const TIMEOUT_MAX_MS = 2 ** 31 - 1;

/**
 * The real clock, in browsers and in Node. Unlike the scheduler's timers, these keep a Node process alive: a program that awaits
 * a call of the client wants its result.
 */
export const realTime: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  setTimer(delayMs, callback): Timer {
    let timeout: ReturnType<typeof setTimeout>;
    arm(delayMs);
    return { cancel: () => clearTimeout(timeout) };

    function arm(leftMs: number): void {
      const stepMs = Math.min(leftMs, TIMEOUT_MAX_MS);
      timeout = setTimeout(() => (leftMs > stepMs ? arm(leftMs - stepMs) : callback()), stepMs);
    }
  },
};

/** Resolves after `ms`, or rejects with the reason of the signal if that fires first. Leaves no timer or listener behind. */
export function pause(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const timer = clock.setTimer(ms, () => {
      signal?.removeEventListener("abort", onAbort);
      resolve();
    });
    function onAbort(): void {
      timer.cancel();
      reject(signal?.reason);
    }
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}
