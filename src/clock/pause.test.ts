import { expect, test } from "vitest";
import { ManualClock } from "../testing/manual-clock.ts";
import { pause } from "./pause.ts";

test("resolves after its time", async () => {
  const clock = new ManualClock();
  let isOver = false;
  const pausing = pause(clock, 10).then(() => {
    isOver = true;
  });
  await clock.advance(9);
  expect(isOver).toBe(false);
  await clock.advance(1);
  await pausing;
  expect(isOver).toBe(true);
});

test("rejects with the reason of the signal, and leaves no timer", async () => {
  const clock = new ManualClock();
  const controller = new AbortController();
  const pausing = pause(clock, 10, controller.signal);
  controller.abort(new Error("enough"));
  await expect(pausing).rejects.toThrow("enough");
  await expect(pause(clock, 10, controller.signal)).rejects.toThrow("enough");
  expect(clock.pending).toBe(0);
});
