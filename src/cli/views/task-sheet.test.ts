import { stripVTControlCharacters } from "node:util";
import { expect, test } from "vitest";
import { claimedTask } from "../../../test/support/records.ts";
import { Redactor } from "../../model/redactor.ts";
import { type TaskRecord, toTask } from "../../model/task-record.ts";
import { taskSheet } from "./task-sheet.ts";

/** The sheet of a task that is otherwise like any other. */
function sheet(fields: Partial<TaskRecord>): string[] {
  const { task } = claimedTask();
  return taskSheet(toTask({ ...task, ...fields }, new Redactor([])), 10_000).map((line) =>
    stripVTControlCharacters(line),
  );
}

test("a task that gave way shows so among its attempts, and that it may do so again", () => {
  const { task } = claimedTask();
  const attempt = { number: 1, startedAt: 0, endedAt: 2_000, outcome: "preempted", node: "n" } as const;
  const lines = sheet({
    state: "queued",
    spec: { ...task.spec, preemptible: true },
    attempts: [{ ...attempt, error: "pre-empted by the critical task tsk_1" }],
  });
  expect(lines).toContainEqual(expect.stringMatching(/^preemptible +yes$/));
  expect(lines.at(-1)).toMatch(/^ +1 +.* 2\.0 s +preempted +n +pre-empted by the critical task tsk_1$/);
});

test("a task shows what it cost, if it reported it", () => {
  const used = (usage: TaskRecord["usage"]) => sheet({ usage }).filter((line) => line.startsWith("used"));
  expect(used(null)).toEqual([]);
  expect(used({ inputTokens: 12, outputTokens: 3 })).toEqual([
    expect.stringMatching(/^used +12 tokens in, 3 out$/),
  ]);
  expect(used({ inputTokens: 12, outputTokens: 3, contextWindow: 128_000 })).toEqual([
    expect.stringMatching(/^used +12 tokens in, 3 out, of a context window of 128000$/),
  ]);
});

test("a task shows the key with which it runs one at a time", () => {
  const keyed = (concurrencyKey: string | null) =>
    sheet({ concurrencyKey }).filter((line) => line.startsWith("concurrency"));
  expect(keyed(null)).toEqual([]);
  expect(keyed("tab:8f9c7d4e")).toEqual([expect.stringMatching(/^concurrency +tab:8f9c7d4e$/)]);
});
