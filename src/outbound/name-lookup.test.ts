import { expect, test } from "vitest";
import { ManualClock } from "../testing/manual-clock.ts";
import { Latch } from "../testing/signals.ts";
import { HurriedLookup, type ResolvedAddress } from "./name-lookup.ts";

const FOUND: readonly ResolvedAddress[] = [{ address: "1.1.1.1", family: 4 }];

function hurried(answer: (name: string) => Promise<readonly ResolvedAddress[]>) {
  const clock = new ManualClock();
  const asked: string[] = [];
  const names = new HurriedLookup({
    clock,
    lookup: (name) => {
      asked.push(name);
      return answer(name);
    },
  });
  return { names, clock, asked };
}

test("looks up a name once for many callers at the same time, and again when the result is old", async () => {
  const { names, clock, asked } = hurried(async () => FOUND);
  const answers = await Promise.all([names.addresses("a"), names.addresses("a"), names.addresses("b")]);
  expect(answers).toEqual([FOUND, FOUND, FOUND]);
  await clock.advance(9_999);
  expect(await names.addresses("a")).toBe(FOUND);
  expect(asked).toEqual(["a", "b"]);
  await clock.advance(1);
  await names.addresses("a");
  expect(asked).toEqual(["a", "b", "a"]);
});

test("knows nothing of a name that has no address", async () => {
  const { names } = hurried(() => Promise.reject(new Error("ENOTFOUND")));
  expect(await names.addresses("nowhere")).toBeNull();
});

test("waits a second for a slow lookup, whose result then serves the next caller", async () => {
  const slow = new Latch<readonly ResolvedAddress[]>();
  const { names, clock, asked } = hurried(() => slow.opened);
  const first = names.addresses("slow");
  await clock.advance(1_000);
  expect(await first).toBeNull();
  slow.open(FOUND);
  expect(await names.addresses("slow")).toBe(FOUND);
  expect(asked).toEqual(["slow"]);
  expect(clock.pending, "no timer is left").toBe(0);
});

test("asks for a few names at a time and lets the rest go without", async () => {
  const slow = new Latch<readonly ResolvedAddress[]>();
  const { names, asked } = hurried(() => slow.opened);
  const first = Array.from({ length: 16 }, (_, i) => names.addresses(`name-${i}`));
  expect(await names.addresses("one too many")).toBeNull();
  slow.open(FOUND);
  await Promise.all(first);
  expect(await names.addresses("one too many")).toBe(FOUND);
  expect(asked).toHaveLength(17);
});

test("forgets the oldest names rather than remember ever more", async () => {
  const { names, asked } = hurried(async () => FOUND);
  for (let i = 0; i <= 1_000; i++) await names.addresses(`name-${i}`);
  await names.addresses("name-1000");
  expect(asked).toHaveLength(1_001);
  await names.addresses("name-0");
  expect(asked).toHaveLength(1_002);
});
