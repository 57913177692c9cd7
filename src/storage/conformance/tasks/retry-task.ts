import { describe, expect, test } from "vitest";
import { idsOf, newTask, type OpenWorld, OTHER_LANE, only, TENANT } from "../world.ts";

export function describeRetryTask(open: OpenWorld): void {
  describe("retry", () => {
    test("puts a failed task back into the queue with its history", async () => {
      const { storage, submit, claim, finish, task, clock, events } = await open();
      const { seq, createdAt } = only(await submit({ id: "t" }));
      await finish(only(await claim()), { to: "delayed", error: "busy", runAt: clock.now() });
      await storage.tasks.promoteDue({ limit: 1 });
      await finish(only(await claim()), { to: "failed", error: "broken" });
      await submit({}, { lane: OTHER_LANE });
      clock.step(100);
      const retried = await storage.tasks.retry({ tenant: TENANT, id: "t" });
      expect(retried).toMatchObject({ found: true, was: null });
      expect(retried).toHaveProperty("task", {
        seq,
        id: "t",
        state: "queued",
        position: 3,
        createdAt,
        runAt: createdAt,
        deadline: null,
        rejection: null,
        repeats: null,
      });
      expect(await task("t")).toMatchObject({
        state: "queued",
        position: 3,
        retryCount: 0,
        error: null,
        completedAt: null,
        startedAt: createdAt,
        attempts: [
          { number: 1, outcome: "failed", error: "busy" },
          { number: 2, outcome: "failed", error: "broken" },
        ],
      });
      expect((await events()).at(-1)).toMatchObject({
        type: "task.retrying",
        state: "queued",
        data: { attempt: 2, error: "broken", retryAt: clock.now(), state: "queued" },
      });
      expect(only(await claim()).task.attempts.at(-1)).toMatchObject({ number: 3, startedAt: clock.now() });
    });

    test("takes a cancelled task, with its attempt or without any", async () => {
      const { storage, submit, claim, finish, task, events, clock } = await open();
      await submit({ id: "ran" }, { id: "waited" });
      await claim();
      await storage.tasks.cancel({ tenant: TENANT, ids: ["ran", "waited"], error: null });
      await storage.tasks.retry({ tenant: TENANT, id: "waited" });
      expect((await events()).at(-1)?.data).toEqual({ attempt: 0, retryAt: clock.now(), state: "queued" });
      await storage.tasks.retry({ tenant: TENANT, id: "ran" });
      expect((await events()).at(-1)?.data).toEqual({ attempt: 1, retryAt: clock.now(), state: "queued" });
      const claimed = await claim({ limit: 2 });
      expect(idsOf(claimed)).toEqual(["ran", "waited"]);
      await finish(only(claimed.slice(0, 1)), { to: "done", result: 1 });
      expect((await task("ran")).attempts.map(({ outcome }) => outcome)).toEqual(["cancelled", "done"]);
    });

    test("refuses what could only fail again, because its own deadline has passed", async () => {
      const { storage, submit, clock, events } = await open();
      await submit({ id: "t", deadline: clock.now() + 10 });
      await storage.tasks.cancel({ tenant: TENANT, ids: ["t"], error: null });
      const before = await events();
      clock.step(10);
      expect(await storage.tasks.retry({ tenant: TENANT, id: "t" })).toEqual({ found: true, was: "overdue" });
      expect(await events()).toEqual(before);
    });

    test("grants the default deadline anew and leaves one that was asked for", async () => {
      const { storage, submit, clock, task } = await open();
      const deadline = clock.now() + 50;
      await submit(
        { id: "default", deadlineAfterMs: 50, runAt: clock.now() + 10 },
        { id: "own", deadline, deadlineAfterMs: 50 },
      );
      await storage.tasks.cancel({ tenant: TENANT, ids: ["default", "own"], error: null });
      clock.step(30);
      await storage.tasks.retry({ tenant: TENANT, id: "default" });
      await storage.tasks.retry({ tenant: TENANT, id: "own" });
      expect((await task("default")).deadline).toBe(clock.now() + 50);
      expect((await task("own")).deadline).toBe(deadline);
    });

    test("lets a task that was cancelled before its moment wait for that moment", async () => {
      const world = await open();
      const runAt = world.clock.now() + 10;
      await world.submit({ id: "t", runAt, deadlineAfterMs: 5 });
      await world.storage.tasks.cancel({ tenant: TENANT, ids: ["t"], error: null });
      const retried = await world.storage.tasks.retry({ tenant: TENANT, id: "t" });
      expect(retried).toMatchObject({ task: { state: "delayed", position: 0, runAt, deadline: runAt + 5 } });
      expect(await world.claim()).toEqual([]);
      world.clock.step(10);
      await world.storage.tasks.promoteDue({ limit: 9 });
      expect(idsOf(await world.claim())).toEqual(["t"]);
    });

    test("is never refused for a full queue", async () => {
      const { storage, submit, task } = await open();
      await submit({ id: "t" });
      await storage.tasks.cancel({ tenant: TENANT, ids: ["t"], error: null });
      const limits = { maxQueueSize: 1, maxQueueSizeTotal: 1_000, maxPerAgent: 1 };
      await storage.tasks.insert({ tasks: [newTask()], limits });
      await storage.tasks.retry({ tenant: TENANT, id: "t" });
      expect(await task("t")).toMatchObject({ state: "queued", position: 2 });
      expect(only(await storage.tasks.insert({ tasks: [newTask()], limits })).rejection?.queued).toBe(2);
    });

    test("refuses a task that is neither failed nor cancelled and says what it is", async () => {
      const { storage, submit, claim, finish, clock, events } = await open();
      await submit(
        { id: "done" },
        { id: "running" },
        { id: "queued" },
        { id: "delayed", runAt: clock.now() + 9 },
      );
      const claimed = await claim({ limit: 2 });
      await finish(only(claimed.slice(0, 1)), { to: "done", result: 1 });
      const limits = { maxQueueSize: 0, maxQueueSizeTotal: 1_000, maxPerAgent: 0 };
      await storage.tasks.insert({ tasks: [newTask({ id: "rejected" })], limits });
      const before = await events();
      for (const id of ["done", "running", "queued", "delayed", "rejected"]) {
        expect(await storage.tasks.retry({ tenant: TENANT, id })).toEqual({ found: true, was: id });
      }
      expect(await storage.tasks.retry({ tenant: TENANT, id: "unknown" })).toEqual({ found: false });
      expect(await events()).toEqual(before);
      expect(await storage.counters.recountAll()).toEqual([]);
    });

    test("keeps the old attempt fenced off", async () => {
      const { storage, submit, claim, finish, task } = await open();
      await submit({ id: "t" });
      const old = only(await claim());
      await storage.tasks.cancel({ tenant: TENANT, ids: ["t"], error: null });
      await storage.tasks.retry({ tenant: TENANT, id: "t" });
      await claim();
      expect((await finish(old, { to: "done", result: "old" })).finished).toEqual([]);
      expect((await task("t")).state).toBe("running");
    });
  });
}
