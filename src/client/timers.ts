import type { Clock, Timer } from "../model/clock.ts";

/** `setTimeout` fires at once when asked to wait longer than this; a longer wait goes in steps. */
const TIMEOUT_MAX_MS = 2 ** 31 - 1;

/**
 * The machine's own time, in browsers and in Node alike. Unlike the scheduler's its timers keep a Node process alive:
 * whoever awaits a call of the client wants to see how it ends.
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

/** Resolves after a while; rejects with the signal's reason when that fires first. Leaves nothing behind. */
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
