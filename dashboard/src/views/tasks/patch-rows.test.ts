import { expect, test } from "vitest";
import type { RotaEvent, Task, TaskRow, TaskRowPage } from "../../../../src/client/index.ts";
import { patchRows, patchTask } from "./patch-rows.ts";
import { isNewRow, mayConcern, toQuery } from "./task-filters.ts";

const row = (taskId: string) => ({ taskId, state: "queued", attempts: 0 }) as unknown as TaskRow;
const page = (...ids: string[]): TaskRowPage => ({
  tasks: ids.map(row),
  count: ids.length,
  nextCursor: null,
});
const event = (fields: Partial<RotaEvent>): RotaEvent => ({
  seq: 1,
  type: "task.started",
  tenantId: "default",
  taskId: "b",
  agentId: "research",
  lane: "main",
  state: "running",
  timestamp: "2026-03-08T12:00:00.000Z",
  ...fields,
});

test("what events say is put into the rows, and other pages stay what they were", () => {
  const data = { pages: [page("a"), page("b", "c")], pageParams: [undefined, "x"] };
  const started = patchRows(data, [event({ attempt: 1 })]);
  expect(started.pages[0]).toBe(data.pages[0]);
  expect(started.pages[1]?.tasks[0]).toMatchObject({
    state: "running",
    attempts: 1,
    startedAt: "2026-03-08T12:00:00.000Z",
  });
  expect(started.pages[1]?.tasks[1]).toBe(data.pages[1]?.tasks[1]);

  const failed = patchRows(started, [
    event({
      type: "task.retrying",
      state: "delayed",
      error: "no",
      attempt: 1,
      retryAt: "2026-03-08T12:01:00.000Z",
    }),
    event({ type: "task.failed", state: "failed", error: "no more", timestamp: "2026-03-08T12:02:00.000Z" }),
  ]);
  expect(failed.pages[1]?.tasks[0]).toMatchObject({
    state: "failed",
    error: "no more",
    attempts: 1,
    completedAt: "2026-03-08T12:02:00.000Z",
  });
  const again = patchRows(failed, [event({ type: "task.started", attempt: 2 })]);
  expect(again.pages[1]?.tasks[0]).not.toHaveProperty("completedAt");
  expect(again.pages[1]?.tasks[0]).toMatchObject({ attempts: 2 });
});

test("a retry publishes the whole task", () => {
  const task = { taskId: "b", state: "running", retryCount: 0 } as unknown as Task;
  const retryAt = "2026-03-08T12:01:00.000Z";
  const retrying = event({ type: "task.retrying", state: "delayed", error: "no", attempt: 1, retryAt });
  expect(patchTask(task, retrying)).toMatchObject({ state: "delayed", retryCount: 1, runAt: retryAt });
});

test("events of tasks that are not shown change nothing", () => {
  const data = { pages: [page("a")], pageParams: [undefined] };
  expect(patchRows(data, [event({}), event({ taskId: "a", type: "batch.completed" })])).toBe(data);
});

test("an event concerns a list that may contain its task", () => {
  expect(mayConcern({}, event({}))).toBe(true);
  expect(mayConcern({ agentId: "research", lane: "main", priority: "high" }, event({}))).toBe(true);
  expect(mayConcern({ agentId: "other" }, event({}))).toBe(false);
  expect(mayConcern({ scheduleId: "7" }, event({ scheduleId: 7 }))).toBe(true);
  expect(isNewRow({}, event({ type: "task.created", state: "queued" }))).toBe(true);
  expect(isNewRow({ state: "queued,delayed" }, event({ type: "task.created", state: "queued" }))).toBe(true);
  expect(isNewRow({ state: "failed" }, event({ type: "task.created", state: "queued" }))).toBe(false);
  expect(isNewRow({}, event({}))).toBe(false);
});

test("what is new at the top depends on the order, the search and the time", () => {
  const created = event({ type: "task.created", state: "queued" });
  const done = event({ type: "task.completed", state: "done" });
  expect(isNewRow({ order: "oldest" }, created)).toBe(false);
  expect(isNewRow({ order: "completed" }, created)).toBe(false);
  expect(isNewRow({ order: "completed" }, done)).toBe(true);
  expect(isNewRow({ q: "b" }, created)).toBe(true);
  expect(isNewRow({ q: "c" }, created)).toBe(false);
  expect(isNewRow({ to: "2026-03-08T12:00:00.000Z" }, created)).toBe(false);
});

test("the server is asked with the names it has", () => {
  expect(toQuery({ state: "queued,delayed", scheduleId: "7" }, 0)).toEqual({
    state: "queued,delayed",
    scheduleId: 7,
  });
  // The server says that it is none: without it the list would be of all.
  expect(toQuery({ scheduleId: "seven" }, 0)).toEqual({ scheduleId: "seven" });
  expect(toQuery({ from: "15m", to: "x" }, 900_000)).toEqual({ from: "1970-01-01T00:00:00.000Z", to: "x" });
  expect(toQuery({ from: "2026-03-08T12:00:00.000Z" }, 0)).toEqual({ from: "2026-03-08T12:00:00.000Z" });
});
