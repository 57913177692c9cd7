import { describe, expect, test } from "vitest";
import type { Finish } from "./completer.ts";
import { type ClaimBounds, LaneSlots } from "./lane-slots.ts";

function ended(lane: string): Finish {
  return {
    seq: 1,
    token: 1,
    settlement: { to: "done", result: null },
    tenant: "t",
    lane,
    agent: "a",
    callsBack: false,
    failures: 0,
    freesSlot: true,
    heldBytes: 0,
  };
}

function bounds(claimsMax: number, ...overShare: string[]): ClaimBounds {
  return { claimsMax, overShare: new Set(overShare) };
}

/** The moment of all tests in which no lane rests. */
const NOW = 1_000;

function isHungry(slots: LaneSlots): boolean {
  return slots.hungryInMs(NOW) === 0;
}

function asks(slots: LaneSlots, finishes: readonly Finish[] = []) {
  return slots.claims(finishes, NOW).map(({ lane, limit }) => [lane, limit]);
}

test("asks for all free slots of each lane", () => {
  const slots = new LaneSlots({ a: 2, b: 3, c: 0 }, 1);
  slots.took({ lane: "b", tenant: "t" });
  expect(asks(slots)).toEqual([
    ["a", 2],
    ["b", 2],
  ]);
});

test("a lane that gave less than asked is not asked again until it is woken", () => {
  const slots = new LaneSlots({ a: 2 }, 1);
  const [claim] = slots.claims([], NOW);
  slots.answered(claim as never, { given: 1 });
  slots.took({ lane: "a", tenant: "t" });
  expect(asks(slots)).toEqual([]);
  expect(slots.wake("a")).toBe(true);
  expect(asks(slots)).toEqual([["a", 1]]);
});

test("a lane that returned as many tasks as the limit is claimed from again", () => {
  const slots = new LaneSlots({ a: 2 }, 1);
  const [claim] = slots.claims([], NOW);
  slots.took({ lane: "a", tenant: "t" });
  slots.took({ lane: "a", tenant: "t" });
  slots.answered(claim as never, { given: 2 });
  expect(asks(slots)).toEqual([]);
  expect(asks(slots, [ended("a")])).toEqual([["a", 1]]);
});

test("a wake-up while it was asked counts", () => {
  const slots = new LaneSlots({ a: 2 }, 1);
  const [claim] = slots.claims([], NOW);
  slots.wake("a");
  slots.answered(claim as never, { given: 0 });
  expect(asks(slots)).toEqual([["a", 2]]);
});

test("an end makes its lane worth asking, with the slot it frees", () => {
  const slots = new LaneSlots({ a: 1, b: 1 }, 1);
  for (const claim of slots.claims([], NOW)) slots.answered(claim, { given: 0 });
  slots.took({ lane: "a", tenant: "t" });
  expect(asks(slots, [ended("a")])).toEqual([["a", 1]]);
});

test("a wake of a lane without a free slot, or of one that this process does not run, causes no claim", () => {
  const slots = new LaneSlots({ a: 1 }, 1);
  slots.took({ lane: "a", tenant: "t" });
  expect(slots.wake("a")).toBe(false);
  expect(slots.wake("elsewhere")).toBe(false);
});

test("asks for a bounded number at a time, and stays hungry while it is given all of it", () => {
  const slots = new LaneSlots({ a: 450 }, 1);
  const given: number[] = [];
  for (const left = { tasks: 420 }; isHungry(slots); ) {
    const [claim] = slots.claims([], NOW);
    const count = Math.min(claim?.limit ?? 0, left.tasks);
    for (let i = 0; i < count; i++) slots.took({ lane: "a", tenant: "t" });
    left.tasks -= count;
    slots.answered(claim as never, { given: count });
    given.push(count);
  }
  expect(given).toEqual([200, 200, 20]);
});

describe("set anew while tasks run,", () => {
  test("a lane that became larger claims for its new slots, and a new lane for all of its slots", () => {
    const slots = new LaneSlots({ a: 2 }, 1);
    slots.took({ lane: "a", tenant: "t" });
    slots.took({ lane: "a", tenant: "t" });
    slots.configure({ a: 5, b: 1 }, 1);
    expect(asks(slots)).toEqual([
      ["a", 3],
      ["b", 1],
    ]);
  });

  test("a lane that became smaller claims nothing until fewer tasks run than it allows", () => {
    const slots = new LaneSlots({ a: 4 }, 1);
    for (let n = 0; n < 4; n++) slots.took({ lane: "a", tenant: "t" });
    slots.configure({ a: 2 }, 1);
    expect([isHungry(slots), slots.wake("a"), asks(slots)]).toEqual([false, false, []]);
    expect(asks(slots, [ended("a"), ended("a")])).toEqual([]);
    expect(asks(slots, [ended("a"), ended("a"), ended("a")])).toEqual([["a", 1]]);
    for (let n = 0; n < 3; n++) slots.freed({ lane: "a", tenant: "t" });
    expect(asks(slots)).toEqual([["a", 1]]);
  });

  test("a lane that is not named keeps its concurrency", () => {
    const slots = new LaneSlots({ a: 2, b: 3 }, 1);
    slots.configure({ a: 1 }, 1);
    expect(asks(slots)).toEqual([
      ["a", 1],
      ["b", 3],
    ]);
  });
});

describe("of a lane's slots", () => {
  function asked(slots: LaneSlots, finishes: readonly Finish[] = [], ...overShare: string[]) {
    return slots
      .claims(finishes, NOW, bounds(Number.POSITIVE_INFINITY, ...overShare))
      .map(({ limit, perTenant }) => [limit, perTenant?.max, Object.fromEntries(perTenant?.left ?? [])]);
  }

  test("one tenant may take its share, less by what it holds, and others theirs", () => {
    const slots = new LaneSlots({ a: 5 }, 0.8);
    expect(asked(slots)).toEqual([[5, 4, {}]]);
    for (let n = 0; n < 3; n++) slots.took({ lane: "a", tenant: "t" });
    slots.took({ lane: "a", tenant: "u" });
    // One more is within the share of "u", however many of the others are taken.
    expect(asked(slots)).toEqual([[1, 4, {}]]);
    slots.freed({ lane: "a", tenant: "u" });
    expect(asked(slots)).toEqual([[2, 4, { t: 1 }]]);
  });

  test("what ends in the same exchange is not held any more", () => {
    const slots = new LaneSlots({ a: 5 }, 0.8);
    for (let n = 0; n < 4; n++) slots.took({ lane: "a", tenant: "t" });
    expect(asked(slots)).toEqual([[1, 4, { t: 0 }]]);
    expect(asked(slots, [ended("a"), ended("a")])).toEqual([[3, 4, { t: 2 }]]);
  });

  test("one that holds more than its share may take less than none", () => {
    const slots = new LaneSlots({ a: 10 }, 1);
    for (let n = 0; n < 7; n++) slots.took({ lane: "a", tenant: "t" });
    slots.configure({ a: 10 }, 0.5);
    expect(asked(slots)).toEqual([[3, 5, { t: -2 }]]);
    expect(slots.capacity).toEqual({ slots: { a: 10 }, perTenant: { a: 5 } });
  });

  test("tenants whose tasks hold too much memory get none, of a single slot neither", () => {
    const slots = new LaneSlots({ a: 5, b: 1 }, 0.8);
    for (let n = 0; n < 4; n++) slots.took({ lane: "a", tenant: "t" });
    expect(asked(slots, [ended("a")], "t", "u")).toEqual([
      [2, 4, { t: 0, u: 0 }],
      [1, 1, { t: 0, u: 0 }],
    ]);
  });

  test("a single slot is not shared", () => {
    const slots = new LaneSlots({ a: 1 }, 0.8);
    expect(asked(slots)).toEqual([[1, undefined, {}]]);
    expect(slots.capacity).toEqual({ slots: { a: 1 }, perTenant: {} });
  });
});

test("where fewer may be claimed than there are slots, another lane is first each time, and all are asked again", () => {
  const slots = new LaneSlots({ a: 2, b: 3 }, 1);
  const lanes = (max: number) => slots.claims([], NOW, bounds(max)).map(({ lane }) => lane);
  expect([lanes(5), lanes(4), lanes(4), lanes(4)]).toEqual([
    ["a", "b"],
    ["b", "a"],
    ["a", "b"],
    ["b", "a"],
  ]);
  for (const claim of slots.claims([], NOW, bounds(1)))
    slots.answered(claim, { given: claim.lane === "a" ? 1 : 0 }, { isCut: true });
  expect([isHungry(slots), asks(slots).length]).toEqual([true, 2]);
  for (const claim of slots.claims([], NOW)) slots.answered(claim, { given: 0 });
  expect(isHungry(slots)).toBe(false);
  expect([slots.claims([ended("a")], NOW, bounds(0)), isHungry(slots)]).toEqual([[], true]);
});

test("a lane that gave what cannot be executed here rests, longer each time, and no other does", () => {
  const slots = new LaneSlots({ a: 2, b: 2 }, 1);
  const lanesAt = (now: number) => slots.claims([ended("a")], now).map(({ lane }) => lane);
  const waits: number[] = [];
  let now = NOW;
  for (let times = 0; times < 6; times += 1) {
    slots.rest("a", now);
    // The second of the same claim.
    slots.rest("a", now);
    for (const claim of slots.claims([], now)) slots.answered(claim, { given: 0 });
    waits.push(slots.hungryInMs(now));
    slots.wakeAll();
    expect([lanesAt(now), lanesAt(now + (waits.at(-1) ?? 0))]).toEqual([["b"], ["a", "b"]]);
    now += waits.at(-1) ?? 0;
  }
  expect(waits).toEqual([100, 200, 400, 800, 1_000, 1_000]);
  now += 1_000;
  slots.rest("a", now);
  slots.rest("unknown", now);
  for (const claim of slots.claims([], now)) slots.answered(claim, { given: 0 });
  expect(slots.hungryInMs(now)).toBe(100);
});
