import { expect, test, vi } from "vitest";
import { keepAliveClock } from "./keep-alive-clock.ts";
import { systemClock } from "./system-clock.ts";

test("returns the time of the machine", () => {
  expect(Math.abs(systemClock.now() - Date.now())).toBeLessThan(1_000);
  const before = systemClock.monotonic();
  expect(systemClock.monotonic()).toBeGreaterThanOrEqual(before);
});

test("calls back after the delay, unless it is cancelled", async () => {
  const cancelled = vi.fn();
  systemClock.setTimer(1, cancelled).cancel();
  await new Promise<void>((resolve) => {
    systemClock.setTimer(5, resolve);
    // Keeps the test alive: the timers themselves do not.
    setTimeout(() => {}, 50);
  });
  expect(cancelled).not.toHaveBeenCalled();
});

test.each([
  ["does not keep", systemClock, false],
  ["keeps", keepAliveClock, true],
])("a pending timer of this clock %s the process alive", (_what, clock, keepsAlive) => {
  const setTimeoutSpy = vi.spyOn(globalThis, "setTimeout");
  try {
    const timer = clock.setTimer(60_000, () => {});
    const timeout = setTimeoutSpy.mock.results[0]?.value as NodeJS.Timeout;
    expect(timeout.hasRef()).toBe(keepsAlive);
    timer.cancel();
  } finally {
    setTimeoutSpy.mockRestore();
  }
});
