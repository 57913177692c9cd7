import { describe, expect, test } from "vitest";
import { AGENT, LANE, NODE, newTask, type OpenWorld, only, TENANT } from "../world.ts";

export function describeCancelTasks(open: OpenWorld): void {
  describe("cancel", () => {
    test("ends waiting tasks, queued or delayed", async () => {
      const { storage, submit, claim, task, clock, events } = await open();
      await submit({ id: "queued" }, { id: "delayed", runAt: clock.now() + 100 });
      clock.step(5);
      const answer = await storage.tasks.cancel({
        tenant: TENANT,
        ids: ["delayed", "queued"],
        error: "not needed",
      });
      expect(answer).toEqual([
        { id: "delayed", found: true, was: null, token: null, agent: AGENT, lane: LANE },
        { id: "queued", found: true, was: null, token: null, agent: AGENT, lane: LANE },
      ]);
      for (const id of ["queued", "delayed"]) {
        const ended = {
          state: "cancelled",
          error: "not needed",
          completedAt: clock.now(),
          startedAt: null,
          attempts: [],
        };
        expect(await task(id)).toMatchObject(ended);
      }
      expect((await events()).slice(2).map(({ type, taskId, data }) => ({ type, taskId, data }))).toEqual([
        { type: "task.cancelled", taskId: "delayed", data: { error: "not needed" } },
        { type: "task.cancelled", taskId: "queued", data: { error: "not needed" } },
      ]);
      expect(await claim({ limit: 5 })).toEqual([]);
      expect(await storage.tasks.nextDueAt()).toBeNull();
    });

    test("ends a running task, fences its attempt and frees its slot", async () => {
      const { storage, submit, claim, finish, task, clock, configureLane } = await open();
      await configureLane(LANE, { total: 1 });
      await submit({ id: "t" }, { id: "next" });
      const claimed = only(await claim());
      clock.step(5);
      const answer = await storage.tasks.cancel({ tenant: TENANT, ids: ["t"], error: "stop" });
      expect(answer).toEqual([
        { id: "t", found: true, was: null, token: claimed.token, agent: AGENT, lane: LANE },
      ]);
      expect((await finish(claimed, { to: "done", result: 1 })).finished).toEqual([]);
      expect(await task("t")).toMatchObject({
        state: "cancelled",
        error: "stop",
        completedAt: clock.now(),
        result: undefined,
        attempts: [{ number: 1, endedAt: clock.now(), outcome: "cancelled", error: "stop", node: NODE }],
      });
      expect((await storage.nodes.heartbeat({ node: NODE })).held).toEqual([]);
      expect(only(await claim()).task.id).toBe("next");
    });

    test("says what the task had become when it had ended before", async () => {
      const { storage, submit, claim, finish, events } = await open();
      await submit({ id: "done" }, { id: "failed" });
      const [first, second] = await claim({ limit: 2 });
      if (!first || !second) throw new Error("Both start.");
      await finish(first, { to: "done", result: 1 });
      await finish(second, { to: "failed", error: "x" });
      await storage.tasks.insert({
        tasks: [newTask({ id: "rejected" })],
        limits: { maxQueueSize: 0, maxQueueSizeTotal: 1_000, maxPerAgent: 0 },
      });
      const before = await events();
      const ids = ["done", "failed", "rejected", "unknown"];
      expect(await storage.tasks.cancel({ tenant: TENANT, ids, error: null })).toEqual([
        { id: "done", found: true, was: "done" },
        { id: "failed", found: true, was: "failed" },
        { id: "rejected", found: true, was: "rejected" },
        { id: "unknown", found: false },
      ]);
      expect(await events()).toEqual(before);
    });

    test("ends a task once that is named twice", async () => {
      const { storage, submit, events } = await open();
      await submit({ id: "t" });
      expect(await storage.tasks.cancel({ tenant: TENANT, ids: ["t", "t"], error: null })).toEqual([
        { id: "t", found: true, was: null, token: null, agent: AGENT, lane: LANE },
        { id: "t", found: true, was: "cancelled" },
      ]);
      expect((await events()).filter(({ type }) => type === "task.cancelled")).toHaveLength(1);
      expect(await storage.counters.recountAll()).toEqual([]);
    });

    test("needs no reason", async () => {
      const { storage, submit, claim, task, events } = await open();
      await submit({ id: "t" });
      await claim();
      await storage.tasks.cancel({ tenant: TENANT, ids: ["t"], error: null });
      expect(await task("t")).toMatchObject({
        error: null,
        attempts: [{ outcome: "cancelled", error: null }],
      });
      expect((await events()).at(-1)).toMatchObject({
        type: "task.cancelled",
        state: "cancelled",
        data: null,
      });
    });

    test("leaves the earlier attempts of a task that waits for its retry as they were", async () => {
      const { storage, submit, claim, finish, task, clock } = await open();
      await submit({ id: "t" });
      await finish(only(await claim()), { to: "delayed", error: "busy", runAt: clock.now() + 10 });
      await storage.tasks.cancel({ tenant: TENANT, ids: ["t"], error: "enough" });
      expect(await task("t")).toMatchObject({
        error: "enough",
        attempts: [{ outcome: "failed", error: "busy" }],
      });
    });

    test("moves the head of the line on to the task behind it", async () => {
      const { storage, submit, claim } = await open();
      await submit({ id: "a", priority: 0 }, { id: "b", priority: 0 }, { id: "c", priority: 1 });
      await storage.tasks.cancel({ tenant: TENANT, ids: ["a", "b"], error: null });
      expect(await storage.counters.recountAll()).toEqual([]);
      expect(only(await claim({ limit: 3 })).task.id).toBe("c");
    });
  });
}
