import { describe, expect, test } from "vitest";
import { idsOf, newTask, type OpenWorld, only, TENANT, type World } from "../world.ts";

export function describePrune(open: OpenWorld): void {
  describe("prune", () => {
    const params = { retentionMs: 1000, rejectedMax: 100, limit: 100 };

    /** Submits a task and runs it to its end. */
    async function runOne(world: World, id: string): Promise<void> {
      await world.submit({ id });
      await world.finish(only(await world.claim()), { to: "done", result: id });
    }

    async function remaining(world: World): Promise<string[]> {
      const { tasks } = await world.storage.tasks.list({ tenant: TENANT, limit: 1000 });
      return tasks.map(({ id }) => id);
    }

    test("is not held up by what was written while the clock was ahead", async () => {
      const world = await open();
      world.clock.step(1_000_000);
      await runOne(world, "from the future");
      world.clock.step(-1_000_000);
      await runOne(world, "after");
      world.clock.step(2000);
      expect(await world.storage.tasks.prune(params)).toEqual({ tasks: 2, more: false });
      expect(await remaining(world)).toEqual([]);
    });

    test("deletes nothing that is new because the clock is set back", async () => {
      const world = await open();
      await runOne(world, "just now");
      world.clock.step(-999);
      expect(await world.storage.tasks.prune(params)).toEqual({ tasks: 0, more: false });
      expect(await remaining(world)).toEqual(["just now"]);
      expect(await world.events()).toHaveLength(3);
    });

    test("forgets an agent of which nothing is left, its turn included", async () => {
      const world = await open();
      for (const agent of ["served-first", "served-last"]) {
        await world.submit({ agent });
        await world.finish(only(await world.claim()), { to: "done", result: null });
      }
      world.clock.step(2000);
      await world.storage.tasks.prune(params);
      await world.submit({ agent: "served-last" }, { agent: "served-first" });
      expect((await world.claim({ limit: 2 })).map(({ task }) => task.agent)).toEqual([
        "served-last",
        "served-first",
      ]);
    });

    test("deletes what ended before the retention began, with its events", async () => {
      const world = await open();
      await runOne(world, "old");
      world.clock.step(1000);
      expect(await world.storage.tasks.prune(params)).toEqual({ tasks: 0, more: false });
      world.clock.step(1);
      await runOne(world, "new");
      expect(await world.storage.tasks.prune(params)).toEqual({ tasks: 1, more: false });
      expect(await remaining(world)).toEqual(["new"]);
      expect((await world.events()).map(({ taskId }) => taskId)).toEqual(["new", "new", "new"]);
      expect(await world.storage.tasks.get({ tenant: TENANT, id: "old" })).toBeNull();
      expect(await world.storage.counters.recountAll()).toEqual([]);
    });

    test("keeps tasks that have not ended, however old, though their events go", async () => {
      const world = await open();
      await world.submit({ id: "runs" }, { id: "waits" }, { id: "later", runAt: world.clock.now() + 99_999 });
      const running = only(await world.claim());
      world.clock.step(5000);
      expect(await world.storage.tasks.prune(params)).toEqual({ tasks: 0, more: false });
      expect(await remaining(world)).toEqual(["later", "waits", "runs"]);
      expect(await world.events()).toEqual([]);
      expect((await world.finish(running, { to: "done", result: 1 })).finished).toHaveLength(1);
      world.clock.step(5000);
      expect(await world.storage.tasks.prune(params)).toEqual({ tasks: 1, more: false });
      expect(await remaining(world)).toEqual(["later", "waits"]);
    });

    test("keeps an old task that ended lately", async () => {
      const world = await open();
      await world.submit({ id: "t" });
      world.clock.step(5000);
      await world.storage.tasks.cancel({ tenant: TENANT, ids: ["t"], error: null });
      await world.storage.tasks.prune(params);
      expect(await remaining(world)).toEqual(["t"]);
      expect((await world.events()).map(({ type }) => type)).toEqual(["task.cancelled"]);
    });

    test("works in slices and says when there is more", async () => {
      const world = await open();
      for (const id of ["a", "b", "c"]) await runOne(world, id);
      const before = await world.storage.events.range();
      world.clock.step(2000);
      let slices = 0;
      let deleted = 0;
      for (let more = true; more; slices += 1) {
        const answer = await world.storage.tasks.prune({ ...params, limit: 2 });
        deleted += answer.tasks;
        more = answer.more;
      }
      expect(deleted).toBe(3);
      expect(slices).toBeGreaterThanOrEqual(5);
      expect(await remaining(world)).toEqual([]);
      expect(await world.storage.events.range()).toEqual({
        oldest: before.newest + 1,
        newest: before.newest,
      });
    });

    test("never shows a task that is gone, even while its events wait for their slice", async () => {
      const world = await open();
      await runOne(world, "a");
      await world.submit({ id: "b" });
      world.clock.step(2000);
      await world.storage.tasks.prune({ ...params, limit: 1 });
      expect((await world.events()).map(({ taskId }) => taskId)).toEqual(["b"]);
    });

    test("keeps the newest rejected tasks of each tenant and deletes the rest before their time", async () => {
      const world = await open();
      const rejected = ["a", "b", "c", "d"].map((id) => newTask({ id }));
      const others = ["x", "y"].map((id) => newTask({ id, tenant: "zeta" }));
      const limits = { maxQueueSize: 0, maxQueueSizeTotal: 1_000, maxPerAgent: 0 };
      await world.storage.tasks.insert({ tasks: [...rejected, ...others], limits });
      await runOne(world, "fine");
      expect(await world.storage.tasks.prune({ ...params, rejectedMax: 2 })).toEqual({
        tasks: 2,
        more: false,
      });
      expect(await remaining(world)).toEqual(["fine", "d", "c"]);
      expect(await world.storage.tasks.counts({ tenant: "zeta" })).toEqual({ rejected: 2 });
      expect((await world.events()).some(({ taskId }) => taskId === "a")).toBe(false);
      expect(await world.storage.counters.recountAll()).toEqual([]);
    });

    test("counts the rejected tasks that are left after those of old age have gone", async () => {
      const world = await open();
      const reject = (...ids: string[]) =>
        world.storage.tasks.insert({
          tasks: ids.map((id) => newTask({ id })),
          limits: { maxQueueSize: 0, maxQueueSizeTotal: 1_000, maxPerAgent: 0 },
        });
      await reject("a", "b", "c");
      world.clock.step(2000);
      await reject("d", "e");
      expect(await world.storage.tasks.prune({ ...params, rejectedMax: 2 })).toEqual({
        tasks: 3,
        more: false,
      });
      expect(await remaining(world)).toEqual(["e", "d"]);
    });

    test("never gives out a number again", async () => {
      const world = await open();
      await runOne(world, "a");
      const before = await world.task("a");
      const newest = (await world.storage.events.range()).newest;
      world.clock.step(2000);
      await world.storage.tasks.prune(params);
      expect(only(await world.submit({})).seq).toBeGreaterThan(before.seq);
      expect(only(await world.events()).seq).toBeGreaterThan(newest);
    });

    test("forgets the id, so that it can be used again", async () => {
      const world = await open();
      await runOne(world, "a");
      world.clock.step(2000);
      await world.storage.tasks.prune(params);
      expect(only(await world.submit({ id: "a" })).createdAt).toBe(world.clock.now());
      expect(idsOf(await world.claim({ limit: 2 }))).toEqual(["a"]);
      expect((await world.task("a")).attempts).toHaveLength(1);
    });

    test("forgets the attempts of tasks that took several", async () => {
      const world = await open();
      await world.submit({ id: "a" });
      await world.finish(only(await world.claim()), { to: "queued", error: "again" });
      await world.finish(only(await world.claim()), { to: "failed", error: "enough" });
      world.clock.step(2000);
      expect(await world.storage.tasks.prune(params)).toEqual({ tasks: 1, more: false });
      expect(await world.storage.counters.recountAll()).toEqual([]);
    });
  });
}
