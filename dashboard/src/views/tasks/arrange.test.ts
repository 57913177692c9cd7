import { expect, test } from "vitest";
import type { Task } from "../../../../src/client/index.ts";
import { Heading } from "../../parts/heading.ts";
import { arrange, type GroupableRow, rowOfTask } from "./arrange.ts";

const NOW = Date.parse("2026-05-11T12:00:00Z");

function row(taskId: string, seconds: number | undefined, metadata?: GroupableRow["metadata"]): GroupableRow {
  const isStarted = seconds !== undefined;
  return {
    taskId,
    state: isStarted ? "done" : "queued",
    agentId: "a",
    lane: "tasks",
    priority: 2,
    createdAt: "2026-05-11T11:00:00Z",
    attempts: isStarted ? 1 : 0,
    ...(isStarted && {
      startedAt: "2026-05-11T11:00:00Z",
      completedAt: new Date(Date.parse("2026-05-11T11:00:00Z") + seconds * 1_000).toISOString(),
    }),
    ...(metadata && { metadata }),
  };
}

function shown(entries: ReturnType<typeof arrange>): string[] {
  return entries.map((entry) =>
    entry instanceof Heading ? `${entry.value || "none"}: ${entry.count}` : entry.taskId,
  );
}

const ROWS = [
  row("waits", undefined, { project: "b" }),
  row("short", 1),
  row("long", 50, { project: "a" }),
  row("middle", 20, { project: "b", run: 7 }),
];

test("without a wish the order of the server stays", () => {
  expect(arrange(ROWS, { sort: undefined, group: undefined }, NOW)).toBe(ROWS);
});

test("by the time that tasks ran, the longest first, those that did not start last", () => {
  const running = { ...row("runs", 1), state: "running" as const };
  const { completedAt: _ended, ...open } = running;
  expect(shown(arrange([...ROWS, open], { sort: "run", group: undefined }, NOW))).toEqual([
    "runs",
    "long",
    "middle",
    "short",
    "waits",
  ]);
});

test("by a key of the metadata, tasks without it last", () => {
  const by = (group: string, sort?: string) => shown(arrange(ROWS, { sort, group }, NOW));
  expect(by("project")).toEqual(["b: 2", "waits", "middle", "a: 1", "long", "none: 1", "short"]);
  expect(by("project", "run")).toEqual(["a: 1", "long", "b: 2", "middle", "waits", "none: 1", "short"]);
  expect(by("run")).toEqual(["7: 1", "middle", "none: 3", "waits", "short", "long"]);
});

test("a whole task has the row that the server makes of it", () => {
  const task = {
    taskId: "tsk_1",
    state: "done",
    agentId: "a",
    lane: "tasks",
    priority: 2,
    createdAt: "2026-05-11T11:00:00Z",
    startedAt: "2026-05-11T11:00:09Z",
    completedAt: "2026-05-11T11:00:10Z",
    message: "Compare   prices",
    attempts: [{ startedAt: "2026-05-11T11:00:01Z" }, { startedAt: "2026-05-11T11:00:09Z" }],
    usage: { inputTokens: 3, outputTokens: 4 },
    metadata: { project: "a" },
  } as unknown as Task;
  expect(rowOfTask(task)).toEqual({
    taskId: "tsk_1",
    title: "Compare prices",
    state: "done",
    agentId: "a",
    lane: "tasks",
    priority: 2,
    createdAt: "2026-05-11T11:00:00Z",
    startedAt: "2026-05-11T11:00:01Z",
    completedAt: "2026-05-11T11:00:10Z",
    attempts: 2,
    tokens: 7,
    metadata: { project: "a" },
  });
});
