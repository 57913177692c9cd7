import { expect, test } from "vitest";
import { lesserBounds } from "./bounds.ts";

test("of two levels, the stricter bound of each name holds; null bounds nothing", () => {
  expect(lesserBounds(undefined, undefined)).toBeUndefined();
  expect(lesserBounds({ maxOpenTasks: 1 }, undefined)).toEqual({ maxOpenTasks: 1 });
  expect(
    lesserBounds(
      { maxOpenTasks: 9, minIntervalS: 60, maxDepth: null, horizonDays: 1 },
      { maxOpenTasks: null, minIntervalS: 300, maxDepth: null, maxDescendants: 2 },
    ),
  ).toEqual({ maxOpenTasks: 9, minIntervalS: 300, maxDepth: null, horizonDays: 1, maxDescendants: 2 });
});
