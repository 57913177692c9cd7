import { describe, expect, test } from "vitest";
import type { NewScheduleInput, ScheduledTask } from "../../src/interface/schedules.ts";
import { settle } from "../../src/testing/manual-clock.ts";
import { Held } from "../support/held.ts";
import { errorOf, type Open, type Opened } from "./opened.ts";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const MIDNIGHT = Date.UTC(2026, 0, 1) / SECOND;

async function create({ api }: Opened, input: Partial<NewScheduleInput> = {}): Promise<ScheduledTask> {
  const filledIn = { schedule: "every 1 min", message: "look around", tz: "UTC", ...input };
  return (await api.schedules.create(filledIn)).scheduled_task;
}

export function describeRuns(open: Open): void {
  describe("runs", () => {
    test("come of each moment, with the task that they became and what came out", async () => {
      const opened = await open();
      const { api, clock, rota } = opened;
      rota.agent("counting", async ({ message }, { usage }) => {
        usage({ inputTokens: 30, outputTokens: 4 });
        return { said: message };
      });
      const { id } = await create(opened, { agent: "counting", conversation_id: "c-1" });
      await clock.advance(2 * MINUTE);
      await settle();
      const { runs, count, next_cursor } = await api.schedules.runs(id);
      expect([count, next_cursor]).toEqual([2, null]);
      const [second, first] = runs;
      expect(first).toEqual({
        id: 1,
        task_id: id,
        agent_id: "counting",
        queue_task_id: expect.stringMatching(/^tsk_/),
        due_at: MIDNIGHT + 60,
        moments: 1,
        status: "succeeded",
        reason: null,
        started_at: MIDNIGHT + 60,
        completed_at: MIDNIGHT + 60,
        request_id: expect.stringMatching(/./),
        result_summary: '{"said":"look around"}',
        error_message: null,
        input_tokens: 30,
        output_tokens: 4,
        attempt: 1,
      });
      expect(second).toMatchObject({ id: 2, due_at: MIDNIGHT + 120, status: "succeeded" });
      expect(await api.runs.get(1)).toEqual(first);
      expect(await api.runs.list()).toEqual({ runs, count, next_cursor });
      expect(await api.schedules.get(id)).toMatchObject({
        status: "active",
        run_count: 2,
        last_run_id: 2,
        last_run_at: MIDNIGHT + 120,
        last_status: "succeeded",
        last_error: null,
        next_fire_at: MIDNIGHT + 180,
      });
      expect(await api.tasks.get(first?.queue_task_id ?? "")).toMatchObject({
        lane: "cron",
        kind: "message",
        message: "look around",
        sessionKey: `schedule:${id}`,
        scheduleId: id,
        conversationId: "c-1",
        state: "done",
      });
    });

    test("are found by their outcome, by when, and page by page", async () => {
      const opened = await open();
      const { api, clock, rota } = opened;
      rota.agent("failing", async () => {
        throw new Error("no");
      });
      const fine = await create(opened);
      const failing = await create(opened, { agent: "failing", retry: { max_retries: 0 } });
      await clock.advance(3 * MINUTE);
      await settle();
      const all = (await api.runs.list()).runs;
      expect(all.map(({ id }) => id)).toEqual([6, 5, 4, 3, 2, 1]);
      const failed = await api.runs.list({ status: "failed" });
      expect(failed.runs).toHaveLength(3);
      expect(failed.runs[0]).toMatchObject({
        task_id: failing.id,
        error_message: "no",
        result_summary: null,
      });
      expect(failed.runs).toEqual((await api.schedules.runs(failing.id)).runs);
      expect((await api.runs.list({ since: MIDNIGHT + 180 })).runs).toEqual(all.slice(0, 2));
      expect((await api.runs.list({ since: MIDNIGHT + 181 })).runs).toEqual([]);

      const first = await api.runs.list({ limit: 4 });
      expect([first.runs, first.count]).toEqual([all.slice(0, 4), 4]);
      const rest = await api.runs.list({ limit: 4, cursor: first.next_cursor ?? "" });
      expect(rest).toEqual({ runs: all.slice(4), count: 2, next_cursor: null });
      const { runs: newest, next_cursor } = await api.schedules.runs(fine.id, { limit: 1 });
      const older = await api.schedules.runs(fine.id, { cursor: next_cursor ?? "" });
      expect([...newest, ...older.runs]).toEqual(all.filter(({ task_id }) => task_id === fine.id));
    });

    test("are refused to be looked for with a sentence", async () => {
      const opened = await open();
      const { api } = opened;
      const { id } = await create(opened);
      for (const [call, field] of [
        [() => api.runs.list({ since: "yesterday" as never }), "since"],
        [() => api.runs.list({ status: "done" as never }), "status"],
        [() => api.runs.list({ limit: 101 }), "limit"],
        [() => api.runs.list({ cursor: "x" }), "cursor"],
        [() => api.runs.list({ task_id: 1 } as never), "task_id"],
        [() => api.schedules.runs(id, { limit: 0 }), "limit"],
      ] as const) {
        expect(await errorOf(call())).toMatchObject({ code: "invalid_field", details: { field } });
      }
    });

    test("can be had out of turn, which changes nothing of what is due", async () => {
      const opened = await open();
      const { api, clock } = opened;
      const { id } = await create(opened);
      await clock.advance(10 * SECOND);
      expect(await api.schedules.run(id)).toEqual({ ok: true, ran: true, run_id: 1 });
      await settle();
      expect(await api.runs.get(1)).toMatchObject({
        due_at: MIDNIGHT + 10,
        status: "succeeded",
        result_summary: "look around",
      });
      expect(await api.schedules.get(id)).toMatchObject({ run_count: 1, next_fire_at: MIDNIGHT + 60 });
      await api.schedules.update(id, { enabled: false });
      expect(await api.schedules.run(id, { mode: "force" })).toMatchObject({ ran: true, run_id: 2 });
      expect(await api.schedules.get(id)).toMatchObject({ status: "paused", next_fire_at: 0 });
    });

    test("do not overlap unless they may, and a moment that has to give way leaves its row", async () => {
      const held = new Held();
      const opened = await open({ options: { executors: { message: held.executor } } });
      const { api, clock } = opened;
      const { id } = await create(opened, { timeout: 600_000 });
      expect(await api.schedules.run(id)).toMatchObject({ ran: true });
      expect(await api.schedules.run(id)).toEqual({ ok: true, ran: false, reason: "already-running" });
      await clock.advance(MINUTE);
      const { runs } = await api.schedules.runs(id);
      expect(runs).toMatchObject([
        {
          status: "skipped",
          reason: "the previous run has not ended",
          due_at: MIDNIGHT + 60,
          queue_task_id: null,
          started_at: 0,
          completed_at: MIDNIGHT + 60,
        },
        { status: "running", completed_at: 0 },
      ]);
      expect(await api.schedules.get(id)).toMatchObject({ run_count: 1, last_run_id: 1, last_status: null });
      await api.schedules.update(id, { overlap: "replace" });
      expect(await api.schedules.run(id)).toMatchObject({ ran: true });
      await settle();
      expect(await api.runs.get(1)).toMatchObject({ status: "failed", reason: "replaced" });
    });

    test("of what is due are had only when something is", async () => {
      const opened = await open({ start: false });
      const { api, clock } = opened;
      const { id } = await create(opened);
      expect(await api.schedules.run(id, { mode: "due" })).toEqual({
        ok: true,
        ran: false,
        reason: "not-due",
      });
      await clock.advance(MINUTE);
      expect(await api.schedules.run(id, { mode: "due" })).toEqual({ ok: true, ran: true, run_id: 1 });
      expect(await api.runs.get(1)).toMatchObject({ due_at: MIDNIGHT + 60, status: "running" });
      expect(await api.schedules.get(id)).toMatchObject({ next_fire_at: MIDNIGHT + 120 });
    });

    test("of an agent that is gone fail and pause the schedule, until it gets another", async () => {
      const opened = await open();
      const { api, clock } = opened;
      await api.agents.create({ id: "research" });
      const { id } = await create(opened, { agent: "research" });
      await api.agents.delete("research");
      await clock.advance(MINUTE);
      expect((await api.schedules.runs(id)).runs).toMatchObject([
        { status: "failed", error_message: 'agent "research" not found', queue_task_id: null },
      ]);
      expect(await api.schedules.get(id)).toMatchObject({
        status: "paused",
        last_status: "failed",
        last_error: 'agent "research" not found',
      });
      await api.schedules.update(id, { agent: "index", enabled: true });
      await clock.advance(MINUTE);
      await settle();
      expect(await api.schedules.get(id)).toMatchObject({ status: "active", last_status: "succeeded" });
    });

    test("of what is due once and had no agent then come when it is resumed with another", async () => {
      const opened = await open();
      const { api, clock } = opened;
      await api.agents.create({ id: "research" });
      const { id } = await create(opened, { schedule: "in 1 minute", agent: "research" });
      await api.agents.delete("research");
      await clock.advance(MINUTE);
      expect(await api.schedules.get(id)).toMatchObject({ status: "paused", next_fire_at: 0, run_count: 1 });
      await clock.advance(10 * MINUTE);
      await api.schedules.update(id, { agent: "index", enabled: true });
      await clock.advance(1_000);
      expect(await api.schedules.get(id)).toMatchObject({ status: "completed", last_status: "succeeded" });
      expect((await api.schedules.runs(id)).runs).toMatchObject([
        { status: "succeeded", due_at: MIDNIGHT + 11 * 60, moments: 1 },
        { status: "failed", due_at: MIDNIGHT + 60 },
      ]);
      expect(await api.doctor()).toMatchObject({ ok: true });
    });

    test("are cancelled with their task, and go on when it is retried", async () => {
      const held = new Held();
      const opened = await open({ options: { executors: { message: held.executor } } });
      const { api } = opened;
      const { id } = await create(opened);
      const { run_id: runId = 0 } = await api.schedules.run(id);
      const { queue_task_id: taskId } = await api.runs.get(runId);
      await api.tasks.cancel(taskId ?? "");
      expect(await api.runs.get(runId)).toMatchObject({ status: "failed", error_message: "cancelled" });
      await api.tasks.retry(taskId ?? "");
      expect(await api.runs.get(runId)).toMatchObject({ status: "running", completed_at: 0 });
    });

    test("are seen among tasks and events by their schedule", async () => {
      const opened = await open();
      const { api, clock } = opened;
      const events = api.events({ scheduleId: 2 });
      await events.ready;
      const seen: unknown[] = [];
      const reading = (async () => {
        for await (const { type, scheduleId, sessionKey } of events) {
          seen.push([type, scheduleId, sessionKey]);
          if (type === "task.completed") break;
        }
      })();
      await create(opened);
      await create(opened);
      await api.tasks.submit({ message: "no run" });
      await clock.advance(MINUTE);
      await reading;
      expect(seen).toEqual([
        ["task.created", 2, "schedule:2"],
        ["task.started", 2, "schedule:2"],
        ["task.completed", 2, "schedule:2"],
      ]);
      const { tasks } = await api.tasks.list({ scheduleId: 2 });
      expect(tasks).toMatchObject([{ scheduleId: 2, lane: "cron" }]);
      expect((await api.tasks.list({ scheduleId: 9 })).tasks).toEqual([]);
      for (const scheduleId of [0, "x", 1.5]) {
        const wrong = { scheduleId } as never;
        expect(await errorOf(api.tasks.list(wrong))).toMatchObject({ details: { field: "scheduleId" } });
      }
    });
  });
}
