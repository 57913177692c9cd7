import { expect, test } from "vitest";
import { niceCount, niceDuration } from "./nice-scale.ts";

test.each([
  [0, 2],
  [2, 2],
  [3, 4],
  [7, 8],
  [11, 12],
  [17, 20],
  [107, 120],
  [1_201, 1_600],
  [27, 30],
  [41, 60],
  [99, 100],
  [1_999, 2_000],
])("an axis up to %i ends at %i", (most, end) => {
  expect(niceCount(most)).toBe(end);
});

test.each([
  [0, 10],
  [700, 1_000],
  [61_000, 120_000],
  [3_600_001, 7_200_000],
  [10 ** 10, 10 ** 10],
])("an axis up to %i ms ends at %i ms", (most, end) => {
  expect(niceDuration(most)).toBe(end);
});
