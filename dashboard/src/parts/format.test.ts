import { expect, test } from "vitest";
import {
  countOf,
  formatClock,
  formatCount,
  formatDuration,
  formatExact,
  formatMoment,
  formatOrdinal,
  formatShortCount,
  sayDuration,
  sayRelative,
  shortId,
} from "./format.ts";

test.each([
  [0, "0s"],
  [49, "49ms"],
  [99, "99ms"],
  [100, "0.1s"],
  [240, "0.2s"],
  [9_940, "9.9s"],
  [9_960, "10s"],
  [59_400, "59s"],
  [59_600, "1m 00s"],
  [192_000, "3m 12s"],
  [7_500_000, "2h 05m"],
  [273_600_000, "3d 4h"],
  [-5, "0s"],
  [undefined, "–"],
  [Number.NaN, "–"],
])("a span of %s ms is %s in a column", (ms, text) => {
  expect(formatDuration(ms)).toBe(text);
});

test.each([
  [0, "0\u00a0s"],
  [100, "100\u00a0ms"],
  [14_000, "14\u00a0s"],
  [840_000, "14\u00a0min"],
  [7_200_000, "2\u00a0h"],
  [10_440_000, "2\u00a0h 54\u00a0min"],
  [259_200_000, "3\u00a0days"],
])("a span of %s ms is %s in a sentence", (ms, text) => {
  expect(sayDuration(ms)).toBe(text);
});

test("what is soon, past and now is said relative to now", () => {
  expect([sayRelative(60_000, 0), sayRelative(0, 60_000), sayRelative(500, 0)]).toEqual([
    "in 1\u00a0min",
    "1\u00a0min ago",
    "now",
  ]);
});

test("thousands do not break, and nothing is a dash", () => {
  expect([formatCount(1_204), countOf(1, "task"), countOf(1_204, "task")]).toEqual([
    "1\u202f204",
    "1 task",
    "1\u202f204 tasks",
  ]);
  expect([undefined, 7, 999, 18_240, 212_400, 999_600, 1_400_000].map(formatShortCount)).toEqual([
    "–",
    "7",
    "999",
    "18.2k",
    "212k",
    "1.0M",
    "1.4M",
  ]);
});

test("a moment is as short as it is clear, and exact on demand", () => {
  const at = Date.parse("2026-03-08T20:02:54.120Z");
  expect(formatMoment(at, at)).toMatch(/^\d\d:\d\d$/);
  expect(formatMoment(at, Date.parse("2026-06-08T20:00:00Z"))).toBe("8 Mar");
  expect(formatMoment(at, Date.parse("2027-06-08T20:00:00Z"))).toBe("8 Mar 2026");
  expect(formatExact(at, "UTC")).toBe("2026-03-08 20:02:54.120 UTC");
});

test("ordinals and ids are short", () => {
  expect([1, 2, 3, 4, 11, 12, 13, 21, 112, 1_003].map(formatOrdinal)).toEqual([
    "1st",
    "2nd",
    "3rd",
    "4th",
    "11th",
    "12th",
    "13th",
    "21st",
    "112th",
    "1\u202f003rd",
  ]);
  expect([shortId("tsk_1"), shortId("tsk_01a1e24b09667d9c91f17eae91dc7f17")]).toEqual([
    "tsk_1",
    "tsk_01a1e2…7f17",
  ]);
});

test("times in a zone are those of its clocks", () => {
  const at = Date.parse("2026-03-08T23:30:05Z");
  expect(formatMoment(at, at, "UTC")).toBe("23:30");
  expect(formatMoment(at, at + 3_600_000, "UTC")).toBe("8 Mar");
  expect(formatMoment(at, at + 3_600_000, "Asia/Tokyo")).toBe("08:30");
  expect(formatClock(at, "Asia/Tokyo")).toBe("08:30:05");
});
