import type { Clock } from "../model/clock.ts";
import { setLongTimer } from "./long-timer.ts";

/** The time of this machine. For Node: its timers do not keep the process alive. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  setTimer: (delayMs, callback) => setLongTimer(delayMs, callback, (timeout) => timeout.unref()),
};
