import { describe, expect, test } from "vitest";
import type { RotaEvent } from "../../src/model/event.ts";
import type { BatchInput } from "../../src/model/input/batch-input.ts";
import { Latch, until } from "../../src/testing/signals.ts";
import { errorOf, type Open } from "./opened.ts";

export function describeBatches(open: Open): void {
  describe("batches", () => {
    test("stores tasks that belong together", async () => {
      const { api } = await open({ start: false });
      const batch = await api.tasks.submitBatch({
        agentId: "a",
        tasks: [
          { action: "click", tabId: "t" },
          { message: "hi", agentId: "b" },
        ],
      });
      expect(batch).toMatchObject({
        submitted: 2,
        count: 2,
        taskIds: batch.tasks.map(({ taskId }) => taskId),
      });
      const { tasks } = await api.tasks.list({ batchId: batch.batchId });
      expect(tasks.map(({ agentId, batchId }) => [agentId, batchId])).toEqual([
        ["b", batch.batchId],
        ["a", batch.batchId],
      ]);
    });

    test("shows how far they are and who waits for whom, and ends all that has not ended", async () => {
      const { api } = await open({ start: false });
      const { batchId, taskIds, createdAt } = await api.tasks.submitBatch({
        tasks: [{ key: "a", payload: 1 }, { payload: 2, dependsOn: ["a"] }, { payload: 3 }],
      });
      const [a, b, c] = taskIds;
      await api.tasks.cancel(c ?? "");
      expect(await api.tasks.getBatch(batchId)).toEqual({
        batchId,
        parallelism: null,
        createdAt,
        counts: { queued: 1, waiting_dependency: 1, cancelled: 1 },
        tasks: [
          { taskId: a, key: "a", agentId: "index", state: "queued" },
          { taskId: b, agentId: "index", state: "waiting_dependency" },
          { taskId: c, agentId: "index", state: "cancelled" },
        ],
        edges: [{ from: a, to: b }],
      });
      expect(await api.tasks.cancelBatch(batchId)).toEqual({ cancelled: 2 });
      expect(await api.tasks.cancelBatch(batchId)).toEqual({ cancelled: 0 });
      expect(await api.tasks.getBatch(batchId)).toMatchObject({
        counts: { cancelled: 3 },
        completedAt: createdAt,
      });
      expect((await api.tasks.get(b ?? "")).error).toBeUndefined();
      expect(await errorOf(api.tasks.getBatch("bat_unknown"))).toMatchObject({
        code: "not_found",
        message: "batch not found",
      });
      expect(await errorOf(api.tasks.cancelBatch("bat\0"))).toMatchObject({ code: "not_found" });
    });

    test("runs no more at once than its parallelism, and reports when all have ended", async () => {
      const { api, rota, clock } = await open();
      const latches = Array.from({ length: 3 }, () => new Latch());
      let [now, most] = [0, 0];
      rota.agent("a", async (task) => {
        most = Math.max(most, ++now);
        await latches[task.payload as number]?.opened;
        now -= 1;
      });
      const events = api.events({ agentId: "a" });
      const { batchId, taskIds, createdAt } = await api.tasks.submitBatch({
        agentId: "a",
        parallelism: 1,
        tasks: [{ payload: 0 }, { payload: 1, preemptible: true }, { payload: 2 }],
      });
      const [first, second, last] = taskIds as [string, string, string];
      await until(async () => (await api.tasks.get(first)).state === "running");
      expect(await api.tasks.get(second)).toMatchObject({ state: "queued", preemptible: true });
      expect(await api.tasks.explain(second)).toMatchObject({
        state: "queued",
        position: 0,
        ahead: [],
        reasons: [
          {
            code: "batch_full",
            message: "1 task of its batch runs or goes first; the batch runs 1 at once",
            taskId: first,
          },
        ],
      });
      expect(await api.tasks.getBatch(batchId)).toMatchObject({ parallelism: 1, counts: { running: 1 } });
      expect(await api.tasks.getBatch(batchId)).not.toHaveProperty("completedAt");
      await clock.advance(1_000);
      for (const latch of latches) latch.open();
      await api.tasks.wait(last);
      expect(most).toBe(1);
      const completedAt = new Date(clock.now()).toISOString();
      expect(await api.tasks.getBatch(batchId)).toMatchObject({
        createdAt,
        completedAt,
        counts: { done: 3 },
      });
      let completed: RotaEvent | undefined;
      for await (const event of events) {
        completed = event;
        if (event.type === "batch.completed") break;
      }
      expect(completed).toMatchObject({ batchId, taskId: last, counts: { done: 3 }, timestamp: completedAt });
    });

    test("gives the batch again that was made with the same keys", async () => {
      const { api, clock } = await open({ start: false });
      const tasks = [
        { payload: 1, idempotencyKey: "one" },
        { payload: 2, idempotencyKey: "two" },
      ];
      const batch = await api.tasks.submitBatch({ tasks, parallelism: 1 });
      await clock.advance(1_000);
      expect(await api.tasks.submitBatch({ tasks, parallelism: 1 })).toEqual(batch);
      const more = await api.tasks.submitBatch({ tasks: [...tasks, { payload: 3 }] });
      expect(more.batchId).not.toBe(batch.batchId);
      expect(more.createdAt).not.toBe(batch.createdAt);
      expect((await api.tasks.getBatch(more.batchId)).tasks).toMatchObject([{ taskId: more.taskIds[2] }]);
      expect((await api.tasks.counts()).total).toBe(3);
    });

    test("is refused whole when a key was used for something else, or two have the same", async () => {
      const { api } = await open({ start: false });
      const { taskId } = await api.tasks.submit({ payload: 1, idempotencyKey: "one" });
      const conflict = api.tasks.submitBatch({
        tasks: [{ payload: 0 }, { payload: 2, idempotencyKey: "one" }],
      });
      expect(await errorOf(conflict)).toMatchObject({
        code: "idempotency_conflict",
        details: { field: "idempotencyKey", taskId, index: 1 },
      });
      const twice = api.tasks.submitBatch({
        tasks: [
          { key: "a", payload: 1 },
          { key: "a", payload: 2 },
        ],
      });
      expect(await errorOf(twice)).toMatchObject({
        code: "invalid_field",
        details: { field: "key", index: 1 },
      });
      expect((await api.tasks.counts()).total).toBe(1);
    });

    test("takes `webhookUrl` for `callbackUrl`", async () => {
      const { api } = await open({ options: { webhooks: { allow: ["127.0.0.1"] } }, start: false });
      const webhookUrl = "http://127.0.0.1:9/hook";
      const { taskIds } = await api.tasks.submitBatch({ webhookUrl, tasks: [{ payload: 1 }] });
      expect(await api.tasks.get(taskIds[0] ?? "")).toMatchObject({ callbackUrl: webhookUrl });
    });

    test("rejects alone those for which there is no room", async () => {
      const { api } = await open({ options: { scheduler: { maxQueueSize: 2 } }, start: false });
      const { tasks, submitted, count } = await api.tasks.submitBatch({
        tasks: Array(3).fill({ message: "x" }),
      });
      expect(tasks.map(({ state, error }) => [state, error])).toEqual([
        ["queued", undefined],
        ["queued", undefined],
        ["rejected", "rejected: global queue full"],
      ]);
      expect([submitted, count]).toEqual([2, 3]);
    });

    test.each<[string, BatchInput, object]>([
      ["nothing", { tasks: [] }, { code: "invalid_field", details: { field: "tasks" } }],
      [
        "too many",
        { tasks: Array(101).fill({ message: "x" }) },
        { code: "batch_too_large", details: { max: 100 } },
      ],
      [
        "more at once than can be",
        { tasks: [{ message: "x" }], parallelism: 11 },
        { code: "invalid_field", details: { field: "parallelism" } },
      ],
      [
        "a callback that must not be called",
        { tasks: [{ message: "x" }], batchCallbackUrl: "http://127.0.0.1/" },
        { code: "invalid_field", details: { field: "batchCallbackUrl" } },
      ],
      [
        "one that is wrong",
        { tasks: [{ message: "x" }, { message: "y", timeout: 1 }] },
        { code: "invalid_field", details: { field: "timeout", index: 1 } },
      ],
    ])("refuses %s as a whole", async (_what, input, expected) => {
      const { api } = await open({ start: false });
      expect(await errorOf(api.tasks.submitBatch(input))).toMatchObject(expected);
      expect((await api.tasks.counts()).total).toBe(0);
    });
  });
}
