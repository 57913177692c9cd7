import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { keepAliveClock } from "./keep-alive-clock.ts";
import { setLongTimer } from "./long-timer.ts";
import { systemClock } from "./system-clock.ts";

const DAY_MS = 24 * 60 * 60 * 1_000;

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

const CLOCKS = [
  ["systemClock", systemClock],
  ["keepAliveClock", keepAliveClock],
] as const;

test.each(CLOCKS)("%s waits longer than setTimeout can", (_name, clock) => {
  const callback = vi.fn();
  clock.setTimer(60 * DAY_MS, callback);
  vi.advanceTimersByTime(60 * DAY_MS - 1);
  expect(callback).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1);
  expect(callback).toHaveBeenCalledTimes(1);
});

test.each(CLOCKS)("%s is not early by a fraction of a millisecond", (_name, clock) => {
  const callback = vi.fn();
  clock.setTimer(1.5, callback);
  vi.advanceTimersByTime(1);
  expect(callback).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1);
  expect(callback).toHaveBeenCalledTimes(1);
});

test.each(CLOCKS)("%s cancels a timer in any step of a long wait", (_name, clock) => {
  const callback = vi.fn();
  const timer = clock.setTimer(60 * DAY_MS, callback);
  vi.advanceTimersByTime(30 * DAY_MS);
  timer.cancel();
  vi.advanceTimersByTime(60 * DAY_MS);
  expect(callback).not.toHaveBeenCalled();
  expect(vi.getTimerCount()).toBe(0);
});

test("reports each setTimeout of a long wait", () => {
  const steps: unknown[] = [];
  setLongTimer(
    60 * DAY_MS,
    () => {},
    (timeout) => steps.push(timeout),
  );
  expect(steps).toHaveLength(1);
  vi.advanceTimersByTime(60 * DAY_MS);
  expect(new Set(steps).size).toBe(3);
});
