import { expect, test } from "vitest";
import { ManualClock } from "./manual-clock.ts";

test("stands still until it is moved", async () => {
  const clock = new ManualClock(1_000);
  await new Promise((resolve) => setImmediate(resolve));
  expect([clock.now(), clock.monotonic()]).toEqual([1_000, 0]);
});

test("fires timers in order, each at its moment", async () => {
  const clock = new ManualClock(0);
  const fired: [string, number][] = [];
  for (const [name, ms] of [
    ["late", 30],
    ["early", 10],
    ["also early", 10],
  ] as const) {
    clock.setTimer(ms, () => fired.push([name, clock.now()]));
  }
  await clock.advance(29);
  expect(fired).toEqual([
    ["early", 10],
    ["also early", 10],
  ]);
  await clock.advance(1);
  expect(fired.at(-1)).toEqual(["late", 30]);
});

test("lets what a timer sets off play out before the next one fires", async () => {
  const clock = new ManualClock(0);
  const order: string[] = [];
  clock.setTimer(1, async () => {
    await new Promise((resolve) => setImmediate(resolve));
    order.push("first, after a while");
  });
  clock.setTimer(2, () => order.push("second"));
  await clock.advance(2);
  expect(order).toEqual(["first, after a while", "second"]);
});

test("fires a timer that was set by another within the time moved over", async () => {
  const clock = new ManualClock(0);
  const fired: number[] = [];
  const again = () => {
    fired.push(clock.now());
    clock.setTimer(10, again);
  };
  clock.setTimer(10, again);
  await clock.advance(35);
  expect(fired).toEqual([10, 20, 30]);
  expect(clock.now()).toBe(35);
});

test("a cancelled timer does not fire", async () => {
  const clock = new ManualClock();
  let fired = false;
  const timer = clock.setTimer(1, () => {
    fired = true;
  });
  timer.cancel();
  await clock.advance(5);
  expect([fired, clock.pending]).toEqual([false, 0]);
});

test("setting the wall clock leaves the monotonic one and the timers alone", async () => {
  const clock = new ManualClock(1_000);
  let fired = false;
  clock.setTimer(10, () => {
    fired = true;
  });
  clock.set(500_000);
  expect([clock.now(), clock.monotonic()]).toEqual([500_000, 0]);
  await clock.advance(9);
  expect(fired).toBe(false);
  await clock.advance(1);
  expect([fired, clock.now()]).toEqual([true, 500_010]);
});

test("returns whole milliseconds, whatever was waited for", async () => {
  const clock = new ManualClock(1_000);
  let at = 0;
  clock.setTimer(0.75, () => {
    at = clock.now();
  });
  await clock.advance(1.5);
  expect([at, clock.now(), clock.monotonic()]).toEqual([1_000, 1_001, 1.5]);
});
