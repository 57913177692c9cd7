import { expect, test } from "vitest";
import { claimedTask } from "../../test/support/records.ts";
import { Redactor } from "../model/redactor.ts";
import { type AttemptRecord, toTask } from "../model/task-record.ts";
import type { TaskEnd } from "../storage/storage.ts";
import { snapshotAt } from "./snapshot.ts";

const REDACTOR = new Redactor([]);

function attempt(
  number: number,
  outcome: AttemptRecord["outcome"],
  error: string | null = null,
): AttemptRecord {
  return { number, startedAt: number * 10, endedAt: number * 10 + 5, outcome, error, node: "n" };
}

function endOf(end: Partial<TaskEnd>): TaskEnd {
  return { state: "failed", completedAt: 25, error: null, retryCount: 0, attempts: 0, ...end };
}

test("a task that nothing happened to since is sent as it is", () => {
  const { task } = claimedTask({
    state: "done",
    startedAt: 10,
    completedAt: 15,
    result: { ok: true },
    attempts: [attempt(1, "done")],
  });
  const end = endOf({ state: "done", completedAt: 15, attempts: 1 });
  expect(snapshotAt(end, task, REDACTOR)).toEqual(toTask(task, REDACTOR));
});

test("a task that was retried since, and is done by now, is sent as it had failed", () => {
  const { task } = claimedTask({
    state: "done",
    startedAt: 10,
    completedAt: 95,
    retryCount: 0,
    result: "the later result",
    attempts: [attempt(1, "failed", "first"), attempt(2, "failed", "second"), attempt(9, "done")],
  });
  const end = endOf({ error: "second", retryCount: 1, attempts: 2 });
  const snapshot = snapshotAt(end, task, REDACTOR);
  expect(snapshot).toMatchObject({
    state: "failed",
    error: "second",
    retryCount: 1,
    startedAt: "1970-01-01T00:00:00.010Z",
    completedAt: "1970-01-01T00:00:00.025Z",
    latencyMs: 15,
    executionTimeMs: 5,
  });
  expect(snapshot.attempts.map(({ number }) => number)).toEqual([1, 2]);
  expect(snapshot).not.toHaveProperty("result");
});

test("a task that was cancelled before it started, and runs by now, is sent as never started", () => {
  const { task } = claimedTask({ state: "running", startedAt: 90 });
  const snapshot = snapshotAt(endOf({ state: "cancelled" }), task, REDACTOR);
  expect(snapshot).toMatchObject({ state: "cancelled", attempts: [] });
  for (const field of ["startedAt", "latencyMs", "executionTimeMs", "result", "error"]) {
    expect(snapshot).not.toHaveProperty(field);
  }
});
