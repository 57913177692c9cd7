import { expect, test } from "vitest";
import { BUCKET_STARTS, BUCKETS, bucketOf, quantileOf, stepStart } from "./rollup.ts";

function spread(counts: Readonly<Record<number, number>>, max: number) {
  return { buckets: Array.from({ length: BUCKETS }, (_, n) => counts[n] ?? 0), max };
}

test("every bucket begins where the one before ends", () => {
  expect(BUCKET_STARTS).toHaveLength(BUCKETS - 1);
  for (const [n, start] of BUCKET_STARTS.entries()) {
    expect([bucketOf(start - 1), bucketOf(start)]).toEqual([n, n + 1]);
  }
  expect([bucketOf(0), bucketOf(Number.MAX_SAFE_INTEGER)]).toEqual([0, BUCKETS - 1]);
});

test("quantiles lie in the bucket that they fall into, and none beyond the longest", () => {
  expect(quantileOf(spread({}, 0), 0.5)).toBeNull();
  expect(quantileOf(spread({ 0: 10 }, 5), 0.5)).toBe(3);
  expect(quantileOf(spread({ 0: 10, 1: 10 }, 127), 0.5)).toBe(64);
  expect(quantileOf(spread({ 0: 19, 3: 1 }, 300), 0.95)).toBe(64);
  expect(quantileOf(spread({ 15: 1 }, 3_000_000), 0.95)).toBeLessThanOrEqual(3_000_000);
  expect(quantileOf(spread({ 15: 1 }, 3_000_000), 1)).toBe(3_000_000);
});

test("a step begins on its minute, hour or day of UTC", () => {
  const at = Date.UTC(2026, 4, 11, 7, 8, 9, 10);
  expect(stepStart(at, 60)).toBe(Date.UTC(2026, 4, 11, 7, 8));
  expect(stepStart(at, 3_600)).toBe(Date.UTC(2026, 4, 11, 7));
  expect(stepStart(at, 86_400)).toBe(Date.UTC(2026, 4, 11));
});
