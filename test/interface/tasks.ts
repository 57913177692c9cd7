import { describe, expect, test } from "vitest";
import { RotaError } from "../../src/model/errors.ts";
import type { SubmitInput } from "../../src/model/input/submit-input.ts";
import { Latch, nextEvent, until } from "../../src/testing/signals.ts";
import { errorOf, type Open } from "./opened.ts";

const LATER = "2100-01-01T00:00:00Z";

export function describeTasks(open: Open): void {
  describe("tasks.submit", () => {
    test.each<SubmitInput>([
      { message: "hello" },
      { instruction: "Write", llmConfig: { model: "m" }, priority: "high", timeout: 5_000 },
      { agentId: "a", action: "click", tabId: "t", ref: "e1", selector: "#b", params: { x: 1 } },
      { payload: { deep: [1, null, "ü"] }, metadata: { user: 42 }, lane: "subagent", runAt: new Date(4e12) },
      { payload: null, deadline: LATER, retryPolicy: { maxRetries: 5, jitter: 0.5 } },
    ])("stores %j as it is", async (input) => {
      const { api, rota } = await open({ start: false });
      const submitted = await api.tasks.submit(input);
      const task = await api.tasks.get(submitted.taskId);
      expect(task).toEqual(await rota.tasks.get(submitted.taskId));
      expect(task).toMatchObject(submitted);
      expect(task).toMatchObject(
        input.payload === undefined ? { kind: task.kind } : { payload: input.payload },
      );
    });

    test.each([
      [{}, undefined],
      [{ message: "a", payload: 1 }, "payload"],
      [{ message: "a", agentId: "no\nagent" }, "agentId"],
      [{ message: "a", priority: "urgent" }, "priority"],
      [{ message: "a", deadline: "2001-01-01T00:00:00Z" }, "deadline"],
      [{ mesage: "a" }, "mesage"],
      [null, undefined],
    ])("refuses %j and says why, the same to every caller", async (input, field) => {
      const { api, rota } = await open({ start: false });
      const error = (await errorOf(api.tasks.submit(input as never))) as RotaError;
      const expected = (await errorOf(rota.tasks.submit(input as never))) as RotaError;
      expect(error).toBeInstanceOf(RotaError);
      expect(error.toJSON()).toEqual(expected.toJSON());
      expect([error.code, error.status, error.details?.["field"]]).toEqual(["invalid_field", 400, field]);
      expect(await api.tasks.counts()).toEqual({ counts: {}, total: 0 });
    });

    test("says that the queue is full, and keeps the task as rejected", async () => {
      const { api } = await open({ options: { scheduler: { maxPerAgent: 1 } }, start: false });
      await api.tasks.submit({ agentId: "a", payload: 1 });
      expect(await errorOf(api.tasks.submit({ agentId: "a", payload: 2 }))).toMatchObject({
        code: "queue_full",
        message: "rejected: agent queue full",
        retryable: true,
        details: { agentId: "a", queued: 1, maxPerAgent: 1 },
      });
      expect((await api.tasks.counts()).counts).toEqual({ queued: 1, rejected: 1 });
    });

    test("accepts no tasks while it drains, and still returns those that exist", async () => {
      const { api, rota } = await open();
      const { taskId } = await api.tasks.submit({ message: "before" });
      await api.tasks.wait(taskId);
      await rota.drain();
      expect(await errorOf(api.tasks.submit({ message: "late" }))).toMatchObject({
        code: "draining",
        status: 503,
        retryable: true,
      });
      expect(await api.tasks.get(taskId)).toMatchObject({ state: "done" });
    });
  });

  describe("tasks.get", () => {
    test.each(["tsk_unknown", "", "..", "a b", "stats", "events", "ü/\0"])("finds no task %j", async (id) => {
      const { api } = await open({ start: false });
      expect(await errorOf(api.tasks.get(id))).toMatchObject({
        code: "not_found",
        message: "task not found",
      });
    });
  });

  describe("tasks.get of a task that reported its cost", () => {
    test("shows the sum over its attempts", async () => {
      const { api, rota, clock } = await open();
      let runs = 0;
      rota.agent("a", async (_task, { usage }) => {
        runs += 1;
        usage({ inputTokens: 100, outputTokens: 5 });
        usage({ outputTokens: 5, contextWindow: 1_000 * runs });
        if (runs === 1) throw new Error("no luck");
      });
      const { taskId } = await api.tasks.submit({ agentId: "a", instruction: "go" });
      await until(async () => (await api.tasks.get(taskId)).state === "delayed");
      expect((await api.tasks.get(taskId)).usage).toEqual({
        inputTokens: 100,
        outputTokens: 10,
        contextWindow: 1_000,
      });
      await clock.advance(1_000);
      expect((await api.tasks.wait(taskId)).usage).toEqual({
        inputTokens: 200,
        outputTokens: 20,
        contextWindow: 2_000,
      });
    });
  });

  describe("tasks.list", () => {
    async function filled() {
      const opened = await open({ start: false });
      const { tasks } = opened.api;
      await tasks.submit({ agentId: "a", payload: 1 });
      await tasks.submit({ agentId: "a", payload: 2, priority: "high" });
      await tasks.submit({ agentId: "b", payload: 3, lane: "subagent" });
      const { taskId } = await tasks.submit({ agentId: "b", payload: 4, runAt: LATER });
      await tasks.cancel(taskId);
      await tasks.submit({ agentId: "b", payload: 5, runAt: LATER });
      return opened;
    }

    test.each([
      [{}, [5, 4, 3, 2, 1]],
      [{ agentId: "a" }, [2, 1]],
      [{ state: "pending" as const }, [3, 2, 1]],
      [{ state: ["delayed", "cancelled"] as const }, [5, 4]],
      [{ priority: "high" as const }, [2]],
      [{ priority: 1 }, [2]],
      [{ lane: "subagent" }, [3]],
      [{ batchId: "bat_none" }, []],
      [{ agentId: "b", limit: 2 }, [5, 4]],
      [{ order: "oldest" as const }, [1, 2, 3, 4, 5]],
      [{ order: "completed" as const }, [4]],
      [{ from: "2000-01-01T00:00:00Z", to: new Date(Date.UTC(9000, 0)) }, [5, 4, 3, 2, 1]],
      [{ to: new Date(0) }, []],
      [{ q: "tsk_" }, [5, 4, 3, 2, 1]],
      [{ q: "nothing" }, []],
    ])("with %j gives %j, newest first", async (filter, payloads) => {
      const { api } = await filled();
      const { tasks, count } = await api.tasks.list(filter);
      expect(tasks.map(({ payload }) => payload)).toEqual(payloads);
      expect(count).toBe(payloads.length);
    });

    test("gives a line of each as well, with twelve fields at most", async () => {
      const { api } = await filled();
      const { tasks } = await api.tasks.list({ order: "oldest" });
      const rows = await api.tasks.listRows({ order: "oldest" });
      expect(rows.count).toBe(5);
      expect(rows.tasks.map(({ taskId, title, state }) => [taskId, title, state])).toEqual(
        tasks.map(({ taskId, payload, state }) => [taskId, JSON.stringify(payload), state]),
      );
      for (const row of rows.tasks) expect(Object.keys(row).length).toBeLessThanOrEqual(12);
      const [first] = tasks;
      expect((await api.tasks.listRows({ q: first?.taskId as string })).count).toBe(1);
    });

    test("goes on where a page ended, and says when there is no more", async () => {
      const { api } = await filled();
      const first = await api.tasks.list({ limit: 3 });
      const second = await api.tasks.list({ limit: 3, cursor: first.nextCursor as string });
      expect([first, second].map(({ tasks }) => tasks.map(({ payload }) => payload))).toEqual([
        [5, 4, 3],
        [2, 1],
      ]);
      expect(second.nextCursor).toBeNull();
    });

    test.each([
      [{ state: "dun" }, "state"],
      [{ limit: 0 }, "limit"],
      [{ limit: 1_001 }, "limit"],
      [{ cursor: "x" }, "cursor"],
      [{ priority: "urgent" }, "priority"],
      [{ agent: "a" }, "agent"],
    ])("refuses %j", async (filter, field) => {
      const { api } = await open({ start: false });
      expect(await errorOf(api.tasks.list(filter as never))).toMatchObject({
        code: "invalid_field",
        details: { field },
      });
    });
  });

  describe("tasks.logs", () => {
    test("show what an executor logged, of the newest attempt that did or of the one asked for", async () => {
      const { api, rota, clock } = await open();
      let attempts = 0;
      rota.agent("talker", (_task, { log }) => {
        attempts += 1;
        for (let n = 1; n <= 3; n += 1) log.info({ n }, `attempt ${attempts}`);
        if (attempts === 1) throw new Error("once more");
      });
      const retryPolicy = { maxRetries: 0 };
      const { taskId } = await api.tasks.submit({ agentId: "talker", message: "x", retryPolicy });
      await api.tasks.wait(taskId);
      await api.tasks.retry(taskId);
      await api.tasks.wait(taskId);
      await clock.advance(500);
      const lines = [1, 2, 3].map((n) => ({
        n,
        at: expect.any(String),
        level: "info",
        text: `attempt 2 {"n":${n}}`,
      }));
      const whole = { taskId, attempt: 2, lines, count: 3, dropped: 0, next: null };
      expect(await api.tasks.logs(taskId)).toEqual(whole);
      const first = await api.tasks.logs(taskId, { attempt: 1, limit: 2 });
      expect(first).toMatchObject({ attempt: 1, lines: [{ n: 1 }, { n: 2 }], count: 2, next: 2 });
      expect(await api.tasks.logs(taskId, { after: 2 })).toEqual({
        ...whole,
        lines: lines.slice(2),
        count: 1,
      });
      expect(await api.tasks.logs(taskId, { attempt: 7 })).toMatchObject({ attempt: 7, lines: [] });
    });

    test("are refused for what is no task, and with fields that cannot be", async () => {
      const { api } = await open({ start: false });
      const { taskId } = await api.tasks.submit({ message: "x" });
      expect(await api.tasks.logs(taskId)).toMatchObject({ attempt: null, lines: [], next: null });
      expect(await errorOf(api.tasks.logs("tsk_unknown"))).toMatchObject({ code: "not_found" });
      for (const [field, value] of Object.entries({ attempt: 0, after: -1, limit: 2_001 })) {
        expect(await errorOf(api.tasks.logs(taskId, { [field]: value }))).toMatchObject({
          code: "invalid_field",
          details: { field },
        });
      }
    });
  });

  describe("tasks.explain", () => {
    test("says what a task waits for", async () => {
      const { api } = await open({ start: false });
      const { tasks } = await api.tasks.submitBatch({
        tasks: [
          { key: "first", payload: 1 },
          { payload: 2, dependsOn: ["first"] },
        ],
      });
      const [first, second] = tasks.map(({ taskId }) => taskId);
      expect(await api.tasks.explain(second ?? "")).toMatchObject({
        taskId: second,
        state: "waiting_dependency",
        position: 0,
        ahead: [],
        reasons: [{ code: "not_started" }, { code: "waiting_for_task", taskId: first }],
      });
      expect(await api.tasks.explain(first ?? "")).toMatchObject({ state: "queued", position: 1 });
      expect(await errorOf(api.tasks.explain("tsk_unknown"))).toMatchObject({ code: "not_found" });
    });
  });

  describe("tasks.submit with a key", () => {
    test("gives the first task again, and refuses another request", async () => {
      const { api } = await open({ start: false });
      const first = await api.tasks.submit({ payload: 1, idempotencyKey: "k" });
      expect(await api.tasks.submit({ payload: 1, idempotencyKey: "k" })).toEqual(first);
      expect(await errorOf(api.tasks.submit({ payload: 2, idempotencyKey: "k" }))).toMatchObject({
        code: "idempotency_conflict",
        details: { taskId: first.taskId },
      });
    });
  });

  describe("tasks.cancel", () => {
    test("ends a waiting task", async () => {
      const { api } = await open({ start: false });
      const { taskId } = await api.tasks.submit({ message: "x" });
      expect(await api.tasks.cancel(taskId)).toEqual({ status: "cancelled", taskId });
      expect(await api.tasks.get(taskId)).toMatchObject({ state: "cancelled" });
    });

    test("aborts a running one", async () => {
      const { api, rota } = await open();
      const aborted = new Latch<unknown>();
      rota.agent("a", (_task, { signal }) => {
        signal.addEventListener("abort", () => aborted.open(signal.reason));
        return new Promise(() => {});
      });
      const started = nextEvent(rota, ({ type }) => type === "task.started");
      const { taskId } = await api.tasks.submit({ agentId: "a", payload: 1 });
      await started;
      await api.tasks.cancel(taskId);
      await aborted.opened;
      expect(await api.tasks.get(taskId)).toMatchObject({ state: "cancelled" });
    });

    test("says what is in its way", async () => {
      const { api } = await open();
      const { taskId } = await api.tasks.submit({ message: "x" });
      await api.tasks.wait(taskId);
      expect(await errorOf(api.tasks.cancel(taskId))).toMatchObject({
        code: "conflict",
        message: "task is already done",
        details: { state: "done" },
      });
      expect(await errorOf(api.tasks.cancel("tsk_unknown"))).toMatchObject({ code: "not_found" });
    });
  });

  describe("tasks.retry", () => {
    test("puts a task that failed back into the queue", async () => {
      const { api, rota } = await open();
      let runs = 0;
      rota.agent("a", async () => {
        runs += 1;
        if (runs === 1) throw new Error("no luck");
        return "luck";
      });
      const { taskId } = await api.tasks.submit({ agentId: "a", payload: 1 });
      expect(await api.tasks.wait(taskId)).toMatchObject({ state: "failed", error: "no luck" });
      expect(await api.tasks.retry(taskId)).toMatchObject({ taskId, state: "queued" });
      expect(await api.tasks.wait(taskId)).toMatchObject({ state: "done", result: "luck" });
      expect(await errorOf(api.tasks.retry(taskId))).toMatchObject({ code: "conflict" });
      expect(await errorOf(api.tasks.retry("tsk_unknown"))).toMatchObject({ code: "not_found" });
    });
  });

  describe("tasks.retry with dependencies", () => {
    test("refuses a task whose dependency failed, and brings it back with that one", async () => {
      const { api, rota } = await open();
      let fails = true;
      rota.agent("a", async () => {
        if (fails) throw new Error("no luck");
        return "luck";
      });
      const { taskIds } = await api.tasks.submitBatch({
        agentId: "a",
        tasks: [
          { key: "first", payload: 1 },
          { key: "second", payload: 2, dependsOn: ["first"] },
          { payload: 3, dependsOn: ["second"] },
        ],
      });
      const [first = "", second = "", third = ""] = taskIds;
      expect(await api.tasks.wait(third)).toMatchObject({
        state: "cancelled",
        error: `dependency ${first} failed`,
      });
      expect(await errorOf(api.tasks.retry(second))).toMatchObject({
        code: "conflict",
        message: `the task depends on ${first}, which failed: retry that one with \`dependants=true\`, which brings this task back too`,
        details: { dependency: first },
      });
      expect(await errorOf(api.tasks.retry(third, { dependants: true }))).toMatchObject({
        message: expect.stringContaining(`the task depends on ${second}, which was cancelled: `),
      });
      fails = false;
      await api.tasks.retry(first, { dependants: true });
      expect(await api.tasks.wait(third)).toMatchObject({ state: "done", result: "luck" });
    });

    test("refuses an unknown dependency, and what is neither true nor false", async () => {
      const { api } = await open();
      const { taskId } = await api.tasks.submit({ payload: 1, dependsOn: ["tsk_gone"] });
      await api.tasks.cancel(taskId);
      expect(await errorOf(api.tasks.retry(taskId))).toMatchObject({
        code: "conflict",
        message: "the task depends on tsk_gone, which is no longer stored: submit both again",
      });
      expect(await errorOf(api.tasks.retry(taskId, { dependants: "yes" as never }))).toMatchObject({
        code: "invalid_field",
        message: '`dependants` must be true or false, not "yes"',
      });
    });
  });

  describe("tasks.wait", () => {
    test("returns the task once it has ended, at once if it has", async () => {
      const { api, rota } = await open();
      const latch = new Latch<string>();
      rota.agent("a", () => latch.opened);
      const { taskId } = await api.tasks.submit({ agentId: "a", payload: 1 });
      const waits = [api.tasks.wait(taskId), api.tasks.wait(taskId)];
      await until(async () => (await api.tasks.get(taskId)).state === "running");
      latch.open("now");
      const task = await api.tasks.get(taskId).then(() => api.tasks.wait(taskId));
      expect(task).toMatchObject({ state: "done", result: "now" });
      expect(await Promise.all(waits)).toEqual([task, task]);
    });

    test("throws a TimeoutError when that takes too long", async () => {
      const { api, clock } = await open({ start: false });
      const { taskId } = await api.tasks.submit({ message: "x" });
      const error = errorOf(api.tasks.wait(taskId, { timeoutMs: 2_000 }));
      await clock.advance(2_000);
      expect(await error).toMatchObject({
        name: "TimeoutError",
        message: "the task had not ended after 2000 ms",
      });
      expect(await error).toBeInstanceOf(DOMException);
    });

    test("throws the reason of its signal, before and while it waits", async () => {
      const { api, clock } = await open({ start: false });
      const { taskId } = await api.tasks.submit({ message: "x" });
      const controller = new AbortController();
      const error = errorOf(api.tasks.wait(taskId, { signal: controller.signal }));
      await clock.advance(100);
      const reason = new Error("enough");
      controller.abort(reason);
      expect(await error).toBe(reason);
      expect(await errorOf(api.tasks.wait(taskId, { signal: controller.signal }))).toBe(reason);
    });

    test("refuses what it cannot wait for", async () => {
      const { api } = await open({ start: false });
      const { taskId } = await api.tasks.submit({ message: "x" });
      expect(await errorOf(api.tasks.wait("tsk_unknown"))).toMatchObject({ code: "not_found" });
      expect(await errorOf(api.tasks.wait(taskId, { timeoutMs: 0 }))).toMatchObject({
        code: "invalid_field",
        details: { field: "timeoutMs" },
      });
    });
  });

  describe("tasks.counts", () => {
    test("says how many are in each state", async () => {
      const { api } = await open({ start: false });
      await api.tasks.submit({ message: "x" });
      await api.tasks.submit({ message: "x", runAt: LATER });
      const { taskId } = await api.tasks.submit({ message: "x" });
      await api.tasks.cancel(taskId);
      expect(await api.tasks.counts()).toEqual({ counts: { queued: 1, delayed: 1, cancelled: 1 }, total: 3 });
    });
  });
}
