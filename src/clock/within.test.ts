import { expect, test } from "vitest";
import { ManualClock } from "../testing/manual-clock.ts";
import { within } from "./within.ts";

test("returns the result of work that is in time, and leaves no timer", async () => {
  const clock = new ManualClock();
  expect(await within({ clock, ms: 10, work: Promise.resolve("done"), onLate: () => "late" })).toBe("done");
  expect(clock.pending).toBe(0);
});

test("throws what the work throws, and leaves no timer", async () => {
  const clock = new ManualClock();
  const work = Promise.reject(new Error("broken"));
  await expect(within({ clock, ms: 10, work, onLate: () => "late" })).rejects.toThrow("broken");
  expect(clock.pending).toBe(0);
});

test("stops waiting for work that takes longer", async () => {
  const clock = new ManualClock();
  const work = Promise.withResolvers<string>();
  const waiting = within({ clock, ms: 10, work: work.promise, onLate: () => "late" });
  await clock.advance(10);
  expect(await waiting).toBe("late");
  work.reject(new Error("a failure that comes too late is ignored"));
});

test("throws what `onLate` throws", async () => {
  const clock = new ManualClock();
  const onLate = () => {
    throw new Error("too late");
  };
  const waiting = within({ clock, ms: 10, work: new Promise(() => {}), onLate });
  const refused = expect(waiting).rejects.toThrow("too late");
  await clock.advance(10);
  await refused;
});
