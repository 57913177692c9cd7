import { expect, test } from "vitest";
import { gaugeOf } from "./gauge.tsx";

const LANE = { name: "a", waiting: 0, oldestWaitMs: null };

test.each([
  ["one process with room", { running: 3, concurrency: 4, total: null }, 4, false],
  ["more than one process runs", { running: 9, concurrency: 4, total: null }, 9, false],
  ["more than one process runs, with a total", { running: 9, concurrency: 4, total: 20 }, 20, false],
  ["the total is the tighter bound", { running: 1, concurrency: 30, total: 2 }, 2, false],
  ["all of the total", { running: 20, concurrency: 8, total: 20 }, 20, true],
  ["lowered below what runs", { running: 5, concurrency: 3, total: 3 }, 5, true],
  ["at rest", { running: 0, concurrency: 0, total: null }, 0, false],
] as const)("a gauge has the slots that are known: %s", (_name, numbers, slots, isFull) => {
  expect(gaugeOf({ ...LANE, ...numbers })).toMatchObject({ slots, isFull });
});

test("few slots are ticks, many are a bar", () => {
  const classOf = (concurrency: number) =>
    gaugeOf({ ...LANE, running: 0, concurrency, total: null }).className;
  expect([20, 60, 61].map(classOf)).toEqual(["slots", "slots slots-fine", "slots slots-bar"]);
});
