import { expect, test } from "vitest";
import { Latch } from "../testing/signals.ts";
import { SharedCall } from "./shared-call.ts";

/** A call that returns when the test lets it. */
function open() {
  const latch = new Latch<string>();
  let signal = new AbortController().signal;
  const call = new SharedCall((its) => {
    signal = its;
    return latch.opened;
  });
  return { call, latch, isDropped: () => signal.aborted };
}

const never = new AbortController().signal;

test("returns its result to all waiting callers, and is over then", async () => {
  const { call, latch } = open();
  const waiting = [call.wait(never), call.wait(never)];
  expect(call.isOver).toBe(false);
  latch.open("yes");
  expect(await Promise.all(waiting)).toEqual(["yes", "yes"]);
  expect(call.isOver).toBe(true);
});

test("fails for all waiting callers, and throws nothing when there are none", async () => {
  const failing = () => new SharedCall(() => Promise.reject(new Error("no")));
  const call = failing();
  const waiting = [call.wait(never), call.wait(never)];
  for (const each of waiting) await expect(each).rejects.toThrow("no");
  failing();
});

test("is dropped at once when its last caller leaves", async () => {
  const { call, isDropped } = open();
  const [first, second] = [new AbortController(), new AbortController()];
  const waiting = [call.wait(first.signal), call.wait(second.signal)];
  first.abort(new Error("first"));
  expect([isDropped(), call.isOver]).toEqual([false, false]);
  second.abort(new Error("second"));
  expect([isDropped(), call.isOver]).toEqual([true, true]);
  await expect(waiting[0]).rejects.toThrow("first");
  await expect(waiting[1]).rejects.toThrow("second");
});

test("does not begin for a caller that has already gone", async () => {
  const { call, isDropped } = open();
  await expect(call.wait(AbortSignal.abort(new Error("gone")))).rejects.toThrow("gone");
  expect(isDropped()).toBe(false);
});

test("counts each waiting caller once, also when its signal fires after the result", async () => {
  const { call, latch, isDropped } = open();
  const stop = new AbortController();
  const first = call.wait(stop.signal);
  const second = call.wait(never);
  latch.open("yes");
  stop.abort(new Error("late"));
  await Promise.allSettled([first]);
  expect(await second).toBe("yes");
  expect([isDropped(), call.isOver]).toEqual([true, true]);
});
