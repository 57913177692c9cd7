/** Helpers for tests of programs that embed Rota. */
export { ManualClock, settle } from "./manual-clock.ts";
export { Latch, nextEvent, until } from "./signals.ts";
export { createTestRota } from "./test-rota.ts";
