import { describe, expect, test } from "vitest";
import { newTask, type OpenWorld, only, ROOMY, TENANT, type World } from "../world.ts";

/** What a retry does to dependencies that were not done, and to tasks that were cancelled because of the retried one. */
export function describeRetryDependants(open: OpenWorld): void {
  describe("retry and dependencies", () => {
    async function states(world: World, ...ids: string[]): Promise<string[]> {
      const tasks = await Promise.all(ids.map((id) => world.task(id)));
      return tasks.map(({ state, error }) => (error === null ? state : `${state}: ${error}`));
    }

    const retry = ({ storage }: World, id: string, dependants?: boolean) =>
      storage.tasks.retry({ tenant: TENANT, id, ...(dependants === undefined ? {} : { dependants }) });

    /** Claims one task and ends it. */
    async function end(world: World, id: string, to: "done" | "failed"): Promise<void> {
      const claimed = only(await world.claim());
      expect(claimed.task.id).toBe(id);
      await world.finish(claimed, to === "done" ? { to, result: null } : { to, error: "broke" });
    }

    test("refuses a task whose dependency has ended without being done, and names that one", async () => {
      const world = await open();
      await world.submit({ id: "a" }, { id: "b", dependsOn: ["a"] }, { id: "c", dependsOn: ["b"] });
      await end(world, "a", "failed");
      const before = await world.events();
      for (const dependants of [false, true]) {
        expect(await retry(world, "b", dependants)).toEqual({
          found: true,
          was: "blocked",
          by: { id: "a", state: "failed" },
        });
        expect(await retry(world, "c", dependants)).toMatchObject({ by: { id: "b", state: "cancelled" } });
      }
      expect(await world.events()).toEqual(before);
      expect(await world.storage.counters.recountAll()).toEqual([]);
    });

    test("refuses a task whose dependency is no longer kept, and takes one that waits again for a dependency", async () => {
      const world = await open();
      await world.submit({ id: "a" });
      await end(world, "a", "failed");
      world.clock.step(400);
      await world.submit({ id: "b", dependsOn: ["a"] });
      world.clock.step(400);
      await world.storage.tasks.prune({ retentionMs: 500, rejectedMax: 10, limit: 1_000 });
      expect(await world.storage.tasks.get({ tenant: TENANT, id: "a" })).toBeNull();
      expect(await retry(world, "b")).toEqual({ found: true, was: "blocked", by: null });

      await world.submit({ id: "p" }, { id: "q", dependsOn: ["p"], deadlineAfterMs: 50 });
      await end(world, "p", "failed");
      await retry(world, "p");
      expect(await retry(world, "q")).toMatchObject({
        task: { state: "waiting_dependency", position: 0, deadline: null },
      });
      await end(world, "p", "done");
      expect(await states(world, "q")).toEqual(["queued"]);
    });

    test("leaves dependants cancelled unless asked to bring them back", async () => {
      const world = await open();
      await world.submit({ id: "a" }, { id: "b", dependsOn: ["a"] });
      await end(world, "a", "failed");
      await retry(world, "a");
      await end(world, "a", "done");
      expect(await states(world, "b")).toEqual(["cancelled: dependency a failed"]);
    });

    test("brings back what was cancelled because of it, transitively, each with its event", async () => {
      const world = await open();
      await world.submit(
        { id: "a" },
        { id: "b", dependsOn: ["a"], deadlineAfterMs: 50 },
        { id: "c", dependsOn: ["b"] },
        // Notified before "c" is back.
        { id: "d", dependsOn: ["a", "c"] },
      );
      await end(world, "a", "failed");
      // Submitted later: their errors name what they depend on.
      await world.submit({ id: "e", dependsOn: ["c"] }, { id: "f", dependsOn: ["e"] });
      await world.submit({ id: "g", dependsOn: ["f"] });
      expect(await states(world, "d", "e", "f", "g")).toEqual([
        "cancelled: dependency a failed",
        "cancelled: dependency c cancelled",
        "cancelled: dependency c cancelled",
        "cancelled: dependency f cancelled",
      ]);
      const before = (await world.events()).at(-1)?.seq ?? 0;
      expect(await retry(world, "a", true)).toMatchObject({
        task: { id: "a", state: "queued", position: 1 },
      });
      expect(await states(world, "b", "c", "d", "e", "f", "g")).toEqual(Array(6).fill("waiting_dependency"));
      const events = await world.events(before);
      expect(events.map(({ type, taskId, data }) => [type, taskId, data?.error])).toEqual([
        ["task.retrying", "a", "broke"],
        ["task.retrying", "b", "dependency a failed"],
        ["task.retrying", "c", "dependency a failed"],
        ["task.retrying", "d", "dependency a failed"],
        ["task.retrying", "e", "dependency c cancelled"],
        ["task.retrying", "f", "dependency c cancelled"],
        ["task.retrying", "g", "dependency f cancelled"],
      ]);
      expect(events[1]?.data).toMatchObject({ attempt: 0, state: "waiting_dependency" });
      for (const id of ["a", "b", "c", "d", "e", "f", "g"]) await end(world, id, "done");
      expect(await world.storage.counters.recountAll()).toEqual([]);
    });

    test("brings back those of a task that had been cancelled because of another, once that one is back", async () => {
      const world = await open();
      await world.submit({ id: "a" }, { id: "b", dependsOn: ["a"] }, { id: "c", dependsOn: ["b"] });
      await end(world, "a", "failed");
      await retry(world, "a");
      await retry(world, "b", true);
      expect(await states(world, "b", "c")).toEqual(Array(2).fill("waiting_dependency"));
    });

    test("leaves what was cancelled for another reason, or has another dependency that was not done", async () => {
      const world = await open();
      const { tasks } = world.storage;
      const deadline = world.clock.now() + 10;
      await world.submit(
        { id: "a" },
        { id: "z" },
        { id: "both", dependsOn: ["a", "z"] },
        { id: "after-both", dependsOn: ["both"] },
        { id: "by-hand", dependsOn: ["a"] },
        { id: "overdue", dependsOn: ["a"], deadline },
        { id: "unknown", dependsOn: ["a", "missing"] },
        { id: "fine", dependsOn: ["a"] },
      );
      await tasks.cancel({ tenant: TENANT, ids: ["by-hand"], error: null });
      await end(world, "a", "failed");
      await end(world, "z", "failed");
      world.clock.step(10);
      await retry(world, "a", true);
      const dependants = ["both", "after-both", "by-hand", "overdue", "unknown", "fine"];
      expect(await states(world, ...dependants)).toEqual([
        "cancelled: dependency a failed",
        "cancelled: dependency a failed",
        "cancelled",
        "cancelled: dependency a failed",
        "cancelled: dependency a failed",
        "waiting_dependency",
      ]);
      // Its error does not name "z".
      await retry(world, "z", true);
      expect(await states(world, "both")).toEqual(["cancelled: dependency a failed"]);
      expect(await retry(world, "both", true)).toMatchObject({ task: { state: "waiting_dependency" } });
      expect(await states(world, "after-both")).toEqual(["waiting_dependency"]);
    });

    test("brings any number back in slices, and each waits for what is not done by then", async () => {
      const world = await open();
      const { tasks } = world.storage;
      const waiting = async () => (await tasks.counts({ tenant: TENANT })).waiting_dependency ?? 0;
      await world.submit({ id: "a" }, { id: "z", runAt: world.clock.now() + 10 });
      await world.submit(...Array.from({ length: 250 }, (_, n) => ({ id: `n${n}`, dependsOn: ["a", "z"] })));
      await tasks.cancel({ tenant: TENANT, ids: ["a"], error: null });
      while ((await tasks.release({ limit: 100 })).more);
      expect(await waiting()).toBe(0);
      await retry(world, "a", true);
      expect(await waiting()).toBe(100);
      expect(await tasks.release({ limit: 60 })).toEqual({ more: true });
      expect(await waiting()).toBe(160);
      // It ends before all are back.
      await end(world, "a", "done");
      while ((await tasks.release({ limit: 100 })).more);
      expect(await waiting()).toBe(250);
      world.clock.step(10);
      await tasks.promoteDue({ limit: 10 });
      await end(world, "z", "done");
      while ((await tasks.release({ limit: 100 })).more);
      expect(await tasks.counts({ tenant: TENANT })).toEqual({ queued: 250, done: 2 });
      expect(await world.storage.counters.recountAll()).toEqual([]);
    });

    test("brings back no more once the task has ended badly again, and cancels those that were back", async () => {
      const world = await open();
      const { tasks } = world.storage;
      await world.submit({ id: "a" });
      await world.submit(...Array.from({ length: 150 }, () => ({ dependsOn: ["a"] })));
      await tasks.cancel({ tenant: TENANT, ids: ["a"], error: null });
      while ((await tasks.release({ limit: 100 })).more);
      await retry(world, "a", true);
      expect(await retry(world, "a", true)).toEqual({ found: true, was: "queued" });
      await tasks.cancel({ tenant: TENANT, ids: ["a"], error: null });
      while ((await tasks.release({ limit: 100 })).more);
      expect(await tasks.counts({ tenant: TENANT })).toEqual({ cancelled: 151 });
      expect(await world.storage.counters.recountAll()).toEqual([]);
    });

    test("counts those that come back in their batch and session, and completes the batch once", async () => {
      const world = await open();
      const { tasks } = world.storage;
      const session = { key: "s", maxConcurrent: 1 };
      await tasks.insert({
        tasks: [
          { id: "a", batch: "bat" },
          { id: "b", batch: "bat", dependsOn: ["a"], session },
          { id: "c", batch: "bat", dependsOn: ["a"], session },
        ].map(newTask),
        batches: [{ id: "bat", tenant: TENANT, parallelism: 1, callbackUrl: null }],
        limits: ROOMY,
      });
      await end(world, "a", "failed");
      const completedAt = (await tasks.getBatch({ tenant: TENANT, id: "bat" }))?.completedAt;
      expect(completedAt).toBe(world.clock.now());
      world.clock.step(5);
      await retry(world, "a", true);
      expect(await world.storage.counters.recountAll()).toEqual([]);
      for (const id of ["a", "b", "c"]) {
        await end(world, id, "done");
        expect(await world.storage.counters.recountAll()).toEqual([]);
      }
      const events = (await world.events()).filter(({ type }) => type === "batch.completed");
      expect(events).toHaveLength(1);
      expect((await tasks.getBatch({ tenant: TENANT, id: "bat" }))?.completedAt).toBe(completedAt);
    });
  });
}
