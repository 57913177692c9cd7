import { expect, test, vi } from "vitest";
import { systemClock } from "./system-clock.ts";

test("tells the time of the machine", () => {
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

test("waits longer than setTimeout can", () => {
  vi.useFakeTimers();
  try {
    const callback = vi.fn();
    const days = 24 * 60 * 60 * 1_000;
    systemClock.setTimer(60 * days, callback);
    vi.advanceTimersByTime(60 * days - 1);
    expect(callback).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(callback).toHaveBeenCalledTimes(1);
  } finally {
    vi.useRealTimers();
  }
});
