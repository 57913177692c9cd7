import { expect, test } from "vitest";
import { claimedTask } from "../../test/support/records.ts";
import { Redactor } from "./redactor.ts";
import { toTask } from "./task-record.ts";

function ended(startedAt: number, endedAt: number) {
  const { task } = claimedTask();
  const attempts = task.attempts.map((attempt) => ({ ...attempt, startedAt, endedAt }));
  return toTask({ ...task, state: "done", startedAt, completedAt: endedAt, attempts }, new Redactor([]));
}

test("a task that ended says how long it took", () => {
  expect(ended(1_000, 3_500)).toMatchObject({ latencyMs: 2_500, executionTimeMs: 2_500 });
});

test("no duration is negative, also after the clock was set back", () => {
  expect(ended(61_000, 1_000)).toMatchObject({ latencyMs: 0, executionTimeMs: 0 });
});
