import { stripVTControlCharacters } from "node:util";
import { describe, expect, test } from "vitest";
import type { RotaEvent } from "../../model/event.ts";
import type { SchedulerStats } from "../../model/scheduler-stats.ts";
import type { Task } from "../../model/task.ts";
import { displayWidth } from "../terminal/display-text.ts";
import { eventLine } from "./event-line.ts";
import { liveLines } from "./live-lines.ts";
import { LiveModel } from "./live-model.ts";

const NOW = Date.parse("2026-03-08T12:00:00Z");
const at = (ms: number) => new Date(NOW + ms).toISOString();

function event(type: RotaEvent["type"], fields: Partial<RotaEvent> = {}): RotaEvent {
  return {
    seq: 1,
    type,
    tenantId: "default",
    taskId: `tsk_${"0".repeat(32)}`,
    agentId: "writer",
    lane: "main",
    state: type === "task.completed" ? "done" : "running",
    timestamp: at(0),
    ...fields,
  };
}

function filled(): LiveModel {
  const model = new LiveModel(NOW - 60_000);
  model.snapshot = {
    stats: {
      queue: { totalQueued: 7, totalInflight: 2, agentCounts: { crawler: 7 } },
      metrics: { agents: { writer: { submitted: 9, completed: 5, failed: 1, cancelled: 0, rejected: 0 } } },
      config: { maxQueueSize: 1000 },
    } as unknown as SchedulerStats,
    running: [
      {
        taskId: `tsk_${"0".repeat(32)}`,
        agentId: "writer",
        lane: "main",
        kind: "message",
        message: "write a very long letter to a friend who lives far away and has time to read",
        attempts: [{ startedAt: at(-5_000) }],
      } as unknown as Task,
    ],
  };
  return model;
}

function screen(model: LiveModel, width: number, height: number): string[] {
  return liveLines(model, { title: "Rota at http://127.0.0.1:7682", width, height, now: NOW }).map((line) =>
    stripVTControlCharacters(line),
  );
}

describe("a live view", () => {
  test("shows what waits and runs, who is busy, and what happened", () => {
    const model = filled();
    model.take(event("task.progress", { progress: { page: 3 } }), NOW);
    const lines = screen(model, 100, 24);
    expect(lines[0]).toMatch(/^Rota at http:\/\/127\.0\.0\.1:7682 +\d\d:\d\d:\d\d$/);
    expect(lines[1]).toBe("7 queued of 1000 · 2 running (main 1)");
    expect(lines).toContainEqual(expect.stringMatching(/^crawler +0 +7 +0 +0$/));
    expect(lines).toContainEqual(expect.stringMatching(/^writer +1 +0 +5 +1$/));
    expect(lines).toContainEqual(expect.stringMatching(/^tsk_0{32} +writer +5\.0 s +\{"page":3\} · write/));
    expect(lines).toContainEqual(
      expect.stringMatching(/^\d\d:\d\d:\d\d +tsk_0{32} +writer +progress: \{"page":3\}$/),
    );
    expect(lines.at(-1)).toBe("q or Ctrl-C: quit");
  });

  test("shows a caption below the counts, cut to the width", () => {
    const params = { title: "Rota", caption: "greedy submits 14 tasks", height: 24, now: NOW };
    const lines = (width: number) =>
      liveLines(filled(), { ...params, width }).map((line) => stripVTControlCharacters(line));
    expect(lines(100)[3]).toBe("greedy submits 14 tasks");
    expect(lines(10)[3]).toBe("greedy su…");
  });

  test("shows why tasks wait", () => {
    const model = filled();
    const { snapshot } = model;
    if (snapshot === undefined) throw new Error("the model has no snapshot");
    model.snapshot = { ...snapshot, waiting: [{ code: "agent_full", agentId: "crawler", count: 7 }] };
    const lines = screen(model, 100, 30);
    expect(lines).toContainEqual(expect.stringMatching(/^WAITING +REASON +LANE +AGENT$/));
    expect(lines).toContainEqual(expect.stringMatching(/^ +7 +agent_full +crawler$/));
  });

  test.each([
    [100, 30],
    [80, 24],
    [40, 12],
    [20, 5],
    [1, 1],
  ])("fits %i columns and %i lines, whatever there is to show", (width, height) => {
    const model = filled();
    for (let n = 0; n < 300; n++) model.take(event("task.completed", { result: "x".repeat(500) }), NOW);
    const lines = screen(model, width, height);
    expect(lines).toHaveLength(height);
    expect(Math.max(...lines.map(displayWidth))).toBeLessThanOrEqual(width);
  });

  test("names the batch that completed, and how, and the task that made way", () => {
    const model = filled();
    const batchId = `bat_${"1".repeat(32)}`;
    const counts = { done: 3, failed: 1 };
    model.take(event("task.preempted", { state: "queued", error: "pre-empted by the critical task x" }), NOW);
    model.take(event("batch.completed", { batchId, state: "done", counts }), NOW);
    const lines = screen(model, 120, 24);
    expect(lines).toContainEqual(
      expect.stringMatching(/^[\d:]+ +tsk_0{32} +writer +preempted: pre-empted by the critical task x$/),
    );
    expect(lines).toContainEqual(
      expect.stringMatching(/^[\d:]+ +bat_1{32} +batch completed: 3 done, 1 failed$/),
    );
  });

  test("says what is wrong instead of old numbers", () => {
    const model = filled();
    model.trouble = "Trying again: cannot reach Rota";
    expect(screen(model, 80, 24)[1]).toBe("Trying again: cannot reach Rota");
  });

  test("shows that it knows nothing yet", () => {
    expect(screen(new LiveModel(NOW), 80, 24)[1]).toBe("…");
  });
});

describe("rates", () => {
  test("are those of the last ten seconds", () => {
    const model = new LiveModel(NOW - 60_000);
    for (let ms = 0; ms < 20_000; ms += 500) model.take(event("task.started"), NOW + ms);
    model.take(event("task.failed", { state: "failed" }), NOW + 19_999);
    expect(model.rate("started", NOW + 20_000)).toBe(1.9);
    expect(model.rate("failed", NOW + 20_000)).toBe(0.1);
    expect(model.rate("started", NOW + 60_000)).toBe(0);
  });

  test("are those of the time since it looks, when that is less", () => {
    const model = new LiveModel(NOW);
    for (let n = 0; n < 4; n++) model.take(event("task.completed"), NOW + 100);
    expect(model.rate("done", NOW + 2_000)).toBe(2);
  });
});

test.each(["task.completed", "task.retrying", "task.preempted"] as const)(
  "progress is forgotten with %s",
  (type) => {
    const model = new LiveModel(NOW);
    const { taskId } = event("task.progress");
    model.take(event("task.progress", { progress: 1 }), NOW);
    expect(model.progressOf(taskId)).toBe(1);
    model.take(event(type), NOW);
    expect(model.progressOf(taskId)).toBeUndefined();
  },
);

test("a line for an event names its task and agent, or its batch", () => {
  const taskId = `tsk_${"0".repeat(32)}`;
  expect(eventLine(event("task.preempted", { error: "made way" }))).toBe(
    `${at(0)}  task.preempted  ${taskId}  writer  made way`,
  );
  expect(eventLine(event("batch.completed", { batchId: "bat_1", counts: { done: 2, cancelled: 1 } }))).toBe(
    `${at(0)}  batch.completed  bat_1  2 done, 1 cancelled`,
  );
});
