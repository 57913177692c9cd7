import type { Clock } from "../model/clock.ts";
import { setLongTimer } from "./long-timer.ts";

/**
 * The time of this machine, in browsers and in Node. Unlike those of `systemClock`, its timers keep a Node process alive: a
 * program that awaits a call of the client wants its result.
 */
export const keepAliveClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  setTimer: (delayMs, callback) => setLongTimer(delayMs, callback),
};
