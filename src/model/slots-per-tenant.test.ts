import { expect, test } from "vitest";
import { slotsPerTenant } from "./lane.ts";

test.each([
  [4, 0.8, 3],
  [20, 0.8, 16],
  [30, 0.8, 24],
  [3, 0.8, 2],
  [2, 0.8, 1],
  [100, 0.29, 29],
  [10, 0.7, 7],
  [10_000_000, 0.8, 8_000_000],
])("of %i slots a share of %d is %i", (slots, share, most) => {
  expect(slotsPerTenant(slots, share)).toBe(most);
});

test("a share is at least one slot, and never all of several", () => {
  expect(slotsPerTenant(10, 0.01)).toBe(1);
  expect(slotsPerTenant(10, 1)).toBe(9);
  expect(slotsPerTenant(2, 1)).toBe(1);
});

test("a single slot, none, or as many as there are cannot be divided", () => {
  expect([1, 0, null].map((slots) => slotsPerTenant(slots, 0.8))).toEqual([null, null, null]);
});
