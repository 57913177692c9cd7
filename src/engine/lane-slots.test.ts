import { expect, test } from "vitest";
import type { Finish } from "./completer.ts";
import { LaneSlots } from "./lane-slots.ts";

function ended(lane: string): Finish {
  return {
    seq: 1,
    token: 1,
    settlement: { to: "done", result: null },
    lane,
    agent: "a",
    callsBack: false,
    failures: 0,
  };
}

function asks(slots: LaneSlots, finishes: readonly Finish[] = []) {
  return slots.claims(finishes).map(({ lane, limit }) => [lane, limit]);
}

test("asks for all free slots of each lane", () => {
  const slots = new LaneSlots({ a: 2, b: 3, c: 0 });
  slots.took("b");
  expect(asks(slots)).toEqual([
    ["a", 2],
    ["b", 2],
  ]);
});

test("a lane that gave less than asked is not asked again until it is woken", () => {
  const slots = new LaneSlots({ a: 2 });
  const [claim] = slots.claims([]);
  slots.answered(claim as never, 1);
  slots.took("a");
  expect(asks(slots)).toEqual([]);
  expect(slots.wake("a")).toBe(true);
  expect(asks(slots)).toEqual([["a", 1]]);
});

test("a lane that gave all it was asked for is asked again", () => {
  const slots = new LaneSlots({ a: 2 });
  const [claim] = slots.claims([]);
  slots.took("a");
  slots.took("a");
  slots.answered(claim as never, 2);
  expect(asks(slots)).toEqual([]);
  expect(asks(slots, [ended("a")])).toEqual([["a", 1]]);
});

test("a wake-up while it was asked counts", () => {
  const slots = new LaneSlots({ a: 2 });
  const [claim] = slots.claims([]);
  slots.wake("a");
  slots.answered(claim as never, 0);
  expect(asks(slots)).toEqual([["a", 2]]);
});

test("an end makes its lane worth asking, with the slot it frees", () => {
  const slots = new LaneSlots({ a: 1, b: 1 });
  for (const claim of slots.claims([])) slots.answered(claim, 0);
  slots.took("a");
  expect(asks(slots, [ended("a")])).toEqual([["a", 1]]);
});

test("waking a lane without a free slot, or one that is not ours, is nothing to act on", () => {
  const slots = new LaneSlots({ a: 1 });
  slots.took("a");
  expect(slots.wake("a")).toBe(false);
  expect(slots.wake("elsewhere")).toBe(false);
});

test("asks for a bounded number at a time, and stays hungry while it is given all of it", () => {
  const slots = new LaneSlots({ a: 450 });
  const given: number[] = [];
  for (const left = { tasks: 420 }; slots.hungry; ) {
    const [claim] = slots.claims([]);
    const count = Math.min(claim?.limit ?? 0, left.tasks);
    for (let i = 0; i < count; i++) slots.took("a");
    left.tasks -= count;
    slots.answered(claim as never, count);
    given.push(count);
  }
  expect(given).toEqual([200, 200, 20]);
});
