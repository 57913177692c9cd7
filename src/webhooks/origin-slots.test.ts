import { expect, test } from "vitest";
import { OriginSlots } from "./origin-slots.ts";

function makeSlots({ total = 16, perOrigin = 4 } = {}) {
  const time = { now: 0 };
  const slots = new OriginSlots({ total, perOrigin, now: () => time.now });
  return {
    slots,
    time,
    take: (name: string, times = 1) => Array.from({ length: times }, () => slots.take(name)),
  };
}

test("gives a receiver its share and no more, until one is given back", () => {
  const { slots, take } = makeSlots();
  const [first, ...rest] = take("a", 5);
  expect(rest.map((taken) => taken !== null)).toEqual([true, true, true, false]);
  expect(take("b")[0]).not.toBeNull();
  expect(slots.free).toBe(11);
  first?.("answered");
  expect(slots.free).toBe(12);
  expect(take("a", 2).map((taken) => taken !== null)).toEqual([true, false]);
});

test("gives a receiver of which nothing was heard one at a time, until something is delivered to it", () => {
  const { slots, take } = makeSlots();
  const room = (name: string) => {
    const taken = take(name, 5).filter((giveBack) => giveBack !== null);
    for (const giveBack of taken) giveBack("answered");
    return taken.length;
  };
  take("a")[0]?.("silent");
  expect(room("a"), "an answer that is none is not enough").toBe(1);
  expect(room("b"), "the others have their share").toBe(4);
  take("a")[0]?.("delivered");
  expect(room("a")).toBe(4);
  expect(slots.free).toBe(16);
});

test("gives those of which nothing was heard half of all slots together, however many they are", () => {
  const { slots, take } = makeSlots();
  const silent = Array.from({ length: 40 }, (_, n) => `silent-${n}`);
  for (const name of silent) take(name)[0]?.("silent");
  const taken = silent.flatMap((name) => take(name)[0] ?? []);
  expect([taken.length, slots.free]).toEqual([8, 8]);
  expect(take("good", 4)).not.toContain(null);
  taken[0]?.("silent");
  expect(silent.flatMap((name) => take(name)[0] ?? [])).toHaveLength(1);
});

test("foretells room for a silent receiver as one at a time", () => {
  const { slots, time, take } = makeSlots();
  take("a")[0]?.("silent");
  take("a");
  time.now += 8_000;
  expect(slots.waitMs("a")).toBe(4_000);
});

test("gives out no more than there are in all", () => {
  const { slots, take } = makeSlots({ total: 2 });
  take("a", 2);
  expect(slots.free).toBe(0);
  expect(take("b")).toEqual([null]);
});

test("foretells room for one after the other, somewhat sooner than the receiver has been fast", () => {
  const { slots, time, take } = makeSlots();
  for (let i = 0; i < 50; i++) {
    const [giveBack] = take("a");
    time.now += 400;
    giveBack?.("delivered");
  }
  take("a", 4);
  expect([1, 2, 3, 4].map(() => slots.waitMs("a"))).toEqual([50, 100, 150, 200]);
  time.now += 75;
  expect(slots.waitMs("a"), "those before it have got nearer").toBe(175);
});

test("takes a receiver that does not answer for as slow as it is, but sends nobody away for longer than a minute", () => {
  const { slots, time, take } = makeSlots();
  take("a", 4);
  expect(slots.waitMs("a"), "nothing is known yet").toBeLessThan(10);
  time.now += 8_000;
  expect(slots.waitMs("a")).toBe(1_000);
  for (let i = 0; i < 100; i++) slots.waitMs("a");
  expect(slots.waitMs("a")).toBe(60_000);
});

test("forgets receivers that nothing is sent to, and none that something is", () => {
  const { slots, time, take } = makeSlots();
  take("hanging", 4);
  for (let i = 0; i < 2_000; i++) take(`origin-${i}`)[0]?.("answered");
  time.now += 1_000;
  expect(take("hanging")).toEqual([null]);
  expect(slots.free).toBe(12);
});

test("remembers for longest who was silent, but not without bound", () => {
  const { take } = makeSlots();
  const answer = (count: number, name: string, outcome: "answered" | "silent") => {
    for (let i = 0; i < count; i++) take(`${name}-${i}`)[0]?.(outcome);
  };
  take("silent")[0]?.("silent");
  answer(2_000, "good", "answered");
  expect(take("silent", 2).map((taken) => taken !== null)).toEqual([true, false]);
  take("dead")[0]?.("silent");
  answer(2_000, "bad", "silent");
  expect(take("dead", 4).every((taken) => taken !== null)).toBe(true);
});
