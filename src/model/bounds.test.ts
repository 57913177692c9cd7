import { expect, test } from "vitest";
import { effectiveBounds, stricterBounds } from "./bounds.ts";

test("of two callers, the stricter bound of each name holds; null bounds nothing", () => {
  const one = effectiveBounds([{ maxOpenTasks: 9, minIntervalS: 60, maxDepth: null, horizonDays: 1 }]);
  const other = effectiveBounds([
    { maxOpenTasks: null, minIntervalS: 300, maxDepth: null, maxDescendants: 2 },
  ]);
  const both = { maxOpenTasks: 9, minIntervalS: 300, maxDepth: null, horizonDays: 1, maxDescendants: 2 };
  expect(stricterBounds(one, other)).toEqual({ ...effectiveBounds([]), ...both });
  expect(stricterBounds(other, one)).toEqual(stricterBounds(one, other));
});
