import { describe, expect, test } from "vitest";
import { newTask, type OpenWorld, OTHER_NODE, only, ROOMY, TENANT, type World } from "../world.ts";

export function describeDependencies(open: OpenWorld): void {
  describe("dependencies", () => {
    async function state(world: World, id: string): Promise<string> {
      const { state: found, error } = await world.task(id);
      return error === null ? found : `${found}: ${error}`;
    }

    /** Runs all ready tasks to their end, in order. */
    async function run(world: World, to: "done" | "failed" = "done"): Promise<string[]> {
      const claimed = await world.claim({ limit: 1_000 });
      for (const one of claimed) {
        await world.finish(one, to === "done" ? { to, result: null } : { to, error: "broke" });
      }
      return claimed.map(({ task }) => task.id);
    }

    test("hold a task back until all of them are done, whatever the order they end in", async () => {
      const world = await open();
      await world.submit({ id: "a" }, { id: "b" });
      const child = only(await world.submit({ id: "c", dependsOn: ["a", "b"] }));
      expect(child).toMatchObject({ state: "waiting_dependency", position: 0, rejection: null });
      const [a, b] = await world.claim({ limit: 5 });
      if (a === undefined || b === undefined) throw new Error("Both can start.");
      await world.finish(b, { to: "done", result: 1 });
      expect([await state(world, "c"), await world.claim()]).toEqual(["waiting_dependency", []]);
      await world.finish(a, { to: "done", result: 2 });
      expect(await state(world, "c")).toBe("queued");
      expect(await run(world)).toEqual(["c"]);
    });

    test("hand on what they resulted in", async () => {
      const world = await open();
      await world.submit({ id: "a" }, { id: "b" }, { id: "c", dependsOn: ["b", "a", "unknown"] });
      const [a] = await world.claim({ limit: 1 });
      if (a === undefined) throw new Error("It can start.");
      await world.finish(a, { to: "done", result: { found: ["é", 1, null] } });
      const { seq } = await world.task("c");
      const params = { ids: ["b", "a", "unknown"], bytesMax: 100 };
      const result = '{"found":["é",1,null]}';
      expect(await world.storage.tasks.dependencyResults({ ...params, seq })).toEqual([
        { taskId: "a", resultBytes: Buffer.byteLength(result), result },
      ]);
      expect(await world.storage.tasks.dependencyResults({ ...params, seq: a.task.seq })).toEqual([]);
    });

    test("hand on results up to a bound, in the order asked for, and of the rest their sizes", async () => {
      const world = await open();
      const ids = ["d", "b", "a", "c"];
      const parents = ["a", "b", "c", "d"].map((id) => ({ id }));
      await world.submit(...parents, { id: "child", dependsOn: ids });
      const bytes = { a: 8, b: 40, c: 4, d: 12 };
      for (const claimed of await world.claim({ limit: 9 })) {
        const result = "x".repeat(bytes[claimed.task.id as keyof typeof bytes] - 2);
        await world.finish(claimed, { to: "done", result });
      }
      const { seq } = await world.task("child");
      const read = async (bytesMax: number) => {
        const found = await world.storage.tasks.dependencyResults({ seq, ids, bytesMax });
        return found.map(({ taskId, resultBytes, result }) => [taskId, resultBytes, result?.length ?? null]);
      };
      expect(await read(60)).toEqual([
        ["d", 12, 12],
        ["b", 40, 40],
        ["a", 8, 8],
        ["c", 4, null],
      ]);
      // From the first result that does not fit, all are left out, even if a later one would fit.
      expect(await read(51)).toEqual([
        ["d", 12, 12],
        ["b", 40, null],
        ["a", 8, null],
        ["c", 4, null],
      ]);
      expect(await read(0)).toEqual(ids.map((id) => [id, bytes[id as keyof typeof bytes], null]));
    });

    test("let a task start in the step that ends the last of them", async () => {
      const world = await open();
      await world.submit({ id: "a" }, { id: "b", dependsOn: ["a"] });
      const { token, task } = only(await world.claim());
      const { claimed } = await world.storage.tasks.finishAndClaim({
        node: "north",
        finishes: [{ seq: task.seq, token, settlement: { to: "done", result: null } }],
        progress: [],
        claims: [{ lane: "tasks", limit: 1 }],
      });
      expect(claimed.map(({ task: { id } }) => id)).toEqual(["b"]);
    });

    test("that run already when a task comes are waited for, and let it go when they end", async () => {
      const world = await open();
      await world.submit({ id: "a" });
      const running = only(await world.claim());
      await world.submit({ id: "b", dependsOn: ["a"] });
      expect(await state(world, "b")).toBe("waiting_dependency");
      await world.finish(running, { to: "done", result: null });
      expect(await state(world, "b")).toBe("queued");
    });

    test("that are done already hold no task back", async () => {
      const world = await open();
      await world.submit({ id: "a" });
      await run(world);
      expect(only(await world.submit({ id: "b", dependsOn: ["a"] }))).toMatchObject({
        state: "queued",
        position: 1,
      });
    });

    test("that do not exist are waited for, and those of another tenant do not count", async () => {
      const world = await open();
      await world.submit({ id: "theirs", tenant: "other" });
      await run(world);
      await world.submit({ id: "a", dependsOn: ["unknown"] }, { id: "b", dependsOn: ["theirs"] });
      expect([await state(world, "a"), await state(world, "b")]).toEqual(Array(2).fill("waiting_dependency"));
      expect(await world.claim()).toEqual([]);
    });

    test.each(["failed", "cancelled"] as const)(
      "that end as %s cancel, transitively, naming the first",
      async (how) => {
        const world = await open();
        await world.submit({ id: "a" }, { id: "b", dependsOn: ["a"] }, { id: "c", dependsOn: ["b"] });
        await world.submit({ id: "d", dependsOn: ["c", "a"] }, { id: "e" });
        if (how === "cancelled")
          await world.storage.tasks.cancel({ tenant: TENANT, ids: ["a"], error: null });
        else await world.finish(only(await world.claim()), { to: "failed", error: "broke" });
        for (const id of ["b", "c", "d"])
          expect(await state(world, id)).toBe(`cancelled: dependency a ${how}`);
        expect(await state(world, "e")).toBe("queued");
        const cancelled = (await world.events())
          .filter(({ type }) => type === "task.cancelled")
          .map(({ taskId }) => taskId);
        expect(cancelled).toEqual(how === "cancelled" ? ["a", "b", "d", "c"] : ["b", "d", "c"]);
      },
    );

    test("that were rejected, or failed before the task came, cancel it at once", async () => {
      const world = await open();
      const tasks = [
        { id: "full", maxQueued: 0 },
        { id: "b", agent: "other", dependsOn: ["full"] },
        { id: "c", agent: "other", dependsOn: ["b"] },
      ].map(newTask);
      const inserted = await world.storage.tasks.insert({ tasks, limits: ROOMY });
      expect(inserted.map((answer) => answer.state)).toEqual(["rejected", "cancelled", "cancelled"]);
      expect(await state(world, "c")).toBe("cancelled: dependency full rejected");
      expect(only(await world.submit({ id: "late", dependsOn: ["c"] })).state).toBe("cancelled");
    });

    test("cancel no task while the parent merely waits for its retry", async () => {
      const world = await open();
      await world.submit({ id: "a" }, { id: "b", dependsOn: ["a"] });
      const runAt = world.clock.now() + 10;
      await world.finish(only(await world.claim()), { to: "delayed", error: "again", runAt });
      expect(await state(world, "b")).toBe("waiting_dependency");
      await world.crash(OTHER_NODE);
      world.clock.step(10);
      await world.storage.tasks.promoteDue({ limit: 5 });
      await run(world);
      expect(await run(world)).toEqual(["b"]);
    });

    test("are counted by admission, and a task that waits for them can expire or be cancelled", async () => {
      const world = await open();
      const deadline = world.clock.now() + 10;
      await world.submit(
        { id: "a" },
        { id: "b", dependsOn: ["a"], deadline },
        { id: "c", dependsOn: ["b"] },
        { id: "d", dependsOn: ["a"] },
        { id: "e", dependsOn: ["d"] },
      );
      expect(only(await world.submit({ maxQueued: 5 })).rejection).toEqual({ full: "agent", queued: 5 });
      world.clock.step(10);
      await world.storage.tasks.expire({ limit: 5 });
      await world.storage.tasks.cancel({ tenant: TENANT, ids: ["d"], error: "stop" });
      expect(await state(world, "b")).toBe("failed: deadline exceeded while queued");
      expect(await state(world, "c")).toBe("cancelled: dependency b failed");
      expect(await state(world, "e")).toBe("cancelled: dependency d cancelled");
    });

    test("come before the moment a task waits for, and before its default deadline", async () => {
      const world = await open();
      const runAt = world.clock.now() + 50;
      await world.submit({ id: "a" });
      const [later, soon] = await world.submit(
        { id: "later", dependsOn: ["a"], runAt, deadlineAfterMs: 100 },
        { id: "soon", dependsOn: ["a"], deadlineAfterMs: 100 },
      );
      expect([later, soon]).toMatchObject(Array(2).fill({ state: "waiting_dependency", deadline: null }));
      world.clock.step(20);
      await run(world);
      expect(await world.task("later")).toMatchObject({ state: "delayed", deadline: runAt + 100 });
      expect(await world.task("soon")).toMatchObject({ state: "queued", deadline: world.clock.now() + 100 });
    });

    test("that are done already are not counted again when the rest of their dependants follow", async () => {
      const world = await open();
      const { tasks } = world.storage;
      await world.submit({ id: "a" }, { id: "z", runAt: world.clock.now() + 10 });
      await world.submit(...Array.from({ length: 150 }, () => ({ dependsOn: ["a"] })));
      await world.finish(only(await world.claim()), { to: "done", result: null });
      // Some dependants of "a" have not been notified of its end yet, and this one comes after them.
      await world.submit({ id: "late", dependsOn: ["a", "z"] });
      await tasks.release({ limit: 1_000 });
      expect(await state(world, "late")).toBe("waiting_dependency");
      expect(await world.storage.counters.recountAll()).toEqual([]);
    });

    test("are passed on to a hundred at once, and to the rest in slices", async () => {
      const world = await open();
      const { tasks } = world.storage;
      await world.submit({ id: "a" });
      await world.submit(...Array.from({ length: 250 }, () => ({ dependsOn: ["a"] })));
      await run(world);
      const queued = async () => (await tasks.counts({ tenant: TENANT })).queued;
      expect(await queued()).toBe(100);
      expect(await tasks.release({ limit: 60 })).toEqual({ more: true });
      expect(await queued()).toBe(160);
      expect(await tasks.release({ limit: 100 })).toEqual({ more: false });
      expect(await queued()).toBe(250);
    });

    test("of several tenants are passed on in equal shares: many of one do not delay those of another", async () => {
      const world = await open();
      const { tasks } = world.storage;
      const zeta = { tenant: "zeta" };
      const queued = async (tenant: string) => (await tasks.counts({ tenant })).queued ?? 0;
      // Two fan-outs of one tenant, of which the first is not passed on wholly when the other tenant's ends.
      await world.submit({ id: "a" }, { id: "b" }, { id: "z", ...zeta });
      for (const id of ["a", "b"]) {
        await world.submit(...Array.from({ length: 200 }, () => ({ dependsOn: [id] })));
      }
      await world.submit(...Array.from({ length: 80 }, () => ({ ...zeta, dependsOn: ["z"] })));
      const claimed = await world.claim({ limit: 3 });
      const end = async (id: string) => {
        const attempt = claimed.find(({ task }) => task.id === id);
        if (attempt === undefined) throw new Error(`${id} was not claimed`);
        await world.finish(attempt, { to: "done", result: null });
      };
      await end("a");
      await end("b");
      expect(await queued(TENANT)).toBe(200);
      await end("z");
      // To see that no dependant of "a" is left counts as one.
      expect([await queued(TENANT), await queued("zeta")]).toEqual([249, 50]);
      expect(await tasks.release({ limit: 60 })).toEqual({ more: true });
      expect([await queued(TENANT), await queued("zeta")]).toEqual([279, 80]);
      while ((await tasks.release({ limit: 100 })).more);
      expect([await queued(TENANT), await queued("zeta")]).toEqual([400, 80]);
      expect(await world.storage.counters.recountAll()).toEqual([]);
    });

    test("of a long chain fail in slices, without a deep stack", async () => {
      const world = await open();
      const { tasks } = world.storage;
      const chain = Array.from({ length: 1_000 }, (_, n) => ({
        id: `n${n}`,
        dependsOn: n === 0 ? [] : [`n${n - 1}`],
      }));
      for (let from = 0; from < chain.length; from += 250)
        await world.submit(...chain.slice(from, from + 250));
      await tasks.cancel({ tenant: TENANT, ids: ["n0"], error: null });
      let slices = 0;
      while ((await tasks.release({ limit: 100 })).more) slices += 1;
      expect(slices).toBeGreaterThan(5);
      expect(await tasks.counts({ tenant: TENANT })).toEqual({ cancelled: 1_000 });
      expect(await state(world, "n999")).toBe("cancelled: dependency n0 cancelled");
    });

    test("of tasks that have ended keep nothing, and a retry does not wait for what was done and is gone", async () => {
      const world = await open();
      const { tasks } = world.storage;
      const left = async () => (await tasks.list({ tenant: TENANT, limit: 100 })).tasks.map(({ id }) => id);
      for (let n = 0; n < 5; n += 1) {
        await world.submit({ id: `n${n}`, dependsOn: n === 0 ? [] : [`n${n - 1}`] });
        await run(world, n === 4 ? "failed" : "done");
        world.clock.step(400);
        await tasks.prune({ retentionMs: 500, rejectedMax: 10, limit: 1_000 });
      }
      expect(await left()).toEqual(["n4"]);
      await tasks.retry({ tenant: TENANT, id: "n4" });
      expect(await run(world)).toEqual(["n4"]);
      expect(await world.storage.counters.recountAll()).toEqual([]);
    });

    test("are kept as long as a task depends on them, and go with the last", async () => {
      const world = await open();
      const { tasks } = world.storage;
      const prune = () => tasks.prune({ retentionMs: 100, rejectedMax: 10, limit: 1_000 });
      const left = async () => (await tasks.list({ tenant: TENANT, limit: 100 })).tasks.map(({ id }) => id);
      await world.submit({ id: "a" }, { id: "b", dependsOn: ["a"] }, { id: "c", dependsOn: ["b"] });
      await run(world);
      world.clock.step(1_000);
      await prune();
      expect(await left()).toEqual(["c", "b", "a"]);
      await run(world);
      await prune();
      expect(await left()).toEqual(["c", "b", "a"]);
      await run(world);
      world.clock.step(1_000);
      await prune();
      expect(await left()).toEqual([]);
      expect(await world.storage.counters.recountAll()).toEqual([]);
    });
  });
}
