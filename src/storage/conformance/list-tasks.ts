import { describe, expect, test } from "vitest";
import type { ListTasksParams } from "../storage.ts";
import { AGENT, LANE, newTask, type OpenWorld, OTHER_LANE, only, TENANT, type World } from "./world.ts";

export function describeListTasks(open: OpenWorld): void {
  describe("list", () => {
    async function listIds(world: World, filter: Partial<ListTasksParams>): Promise<string> {
      const { tasks } = await world.storage.tasks.list({ tenant: TENANT, limit: 100, ...filter });
      return tasks.map(({ id }) => id).join(" ");
    }

    test("shows the newest first, each as `get` does", async () => {
      const world = await open();
      await world.submit({ id: "a" }, { id: "b", priority: 0 }, { id: "c" });
      await world.finish(only(await world.claim()), { to: "queued", error: "again" });
      await world.claim();
      const { tasks, nextCursor } = await world.storage.tasks.list({ tenant: TENANT, limit: 100 });
      expect(nextCursor).toBeNull();
      expect(tasks).toEqual([await world.task("c"), await world.task("b"), await world.task("a")]);
      expect(tasks[1]?.attempts).toHaveLength(2);
    });

    test("filters by agent, state, priority and lane, and by all together", async () => {
      const world = await open();
      await world.submit(
        { id: "a", priority: 1 },
        { id: "b", priority: 1 },
        { id: "c", agent: "other", priority: 1 },
        { id: "d", lane: OTHER_LANE, priority: 1 },
        { id: "e", runAt: world.clock.now() + 100 },
        { id: "f", priority: 1 },
      );
      await world.claim({ limit: 1 });
      await world.storage.tasks.cancel({ tenant: TENANT, ids: ["b"], error: null });
      expect(await listIds(world, { agent: "other" })).toBe("c");
      expect(await listIds(world, { states: ["running"] })).toBe("a");
      expect(await listIds(world, { states: ["queued"] })).toBe("f d c");
      expect(await listIds(world, { states: ["delayed", "cancelled"] })).toBe("e b");
      expect(await listIds(world, { states: ["running", "queued"] })).toBe("f d c a");
      expect(await listIds(world, { priority: 2 })).toBe("e");
      expect(await listIds(world, { lane: OTHER_LANE })).toBe("d");
      expect(await listIds(world, { states: ["done", "failed", "assigned"] })).toBe("");
      const all = { agent: AGENT, states: ["queued", "running"], priority: 1, lane: LANE } as const;
      expect(await listIds(world, all)).toBe("f a");
    });

    test("filters by the largest priority, which can be together with others", async () => {
      const world = await open();
      await world.submit(
        { id: "a", priority: 0 },
        { id: "b", priority: 1 },
        { id: "c", priority: -5 },
        { id: "d", priority: -1_000_000, agent: "other" },
        { id: "e" },
      );
      expect(await listIds(world, { priorityMax: 0 })).toBe("d c a");
      expect(await listIds(world, { priorityMax: 1 })).toBe("d c b a");
      expect(await listIds(world, { priorityMax: -1, agent: AGENT })).toBe("c");
      expect(await listIds(world, { priorityMax: 0, states: ["queued"] })).toBe("d c a");
      expect(await listIds(world, { priority: 0 }), "a number is exact").toBe("a");
    });

    test("filters by batch, and by anything else within it", async () => {
      const world = await open();
      const batch = "together";
      await world.submit(
        { id: "a", batch },
        { id: "b" },
        { id: "c", batch, agent: "other" },
        { id: "d", batch: "else" },
        { id: "e", batch, priority: 1, lane: OTHER_LANE },
        { id: "f", batch, runAt: world.clock.now() + 100 },
      );
      await world.finish(only(await world.claim()), { to: "done", result: null });
      expect(await listIds(world, { batch })).toBe("f e c a");
      expect(await listIds(world, { batch, states: ["done"] })).toBe("a");
      expect(await listIds(world, { batch, states: ["queued", "delayed"] })).toBe("f e c");
      expect(await listIds(world, { batch, agent: "other" })).toBe("c");
      expect(await listIds(world, { batch, priority: 1, lane: OTHER_LANE })).toBe("e");
      expect(await listIds(world, { batch: "unknown" })).toBe("");
      await world.claim({ lane: OTHER_LANE });
      expect(await listIds(world, { batch, states: ["running"] })).toBe("e");
      expect((await world.task("e")).batch).toBe(batch);
    });

    test("goes page by page, each task once, whatever is added meanwhile", async () => {
      const world = await open();
      await world.submit(...["a", "b", "c", "d", "e"].map((id) => ({ id })), { id: "x", agent: "other" });
      const seen: string[] = [];
      let cursor: number | null = null;
      do {
        const page: Awaited<ReturnType<World["storage"]["tasks"]["list"]>> = await world.storage.tasks.list({
          tenant: TENANT,
          agent: AGENT,
          limit: 2,
          ...(cursor === null ? {} : { cursor }),
        });
        expect(page.tasks.length).toBeGreaterThan(0);
        seen.push(...page.tasks.map(({ id }) => id));
        cursor = page.nextCursor;
        await world.submit({});
      } while (cursor !== null);
      expect(seen).toEqual(["e", "d", "c", "b", "a"]);
    });

    test("names no next page after the last task, even when the page is full", async () => {
      const world = await open();
      await world.submit({}, {});
      expect((await world.storage.tasks.list({ tenant: TENANT, limit: 2 })).nextCursor).toBeNull();
      expect((await world.storage.tasks.list({ tenant: TENANT, limit: 1 })).nextCursor).not.toBeNull();
    });
  });

  describe("counts and queueDepth", () => {
    test("count what is there, state by state and agent by agent", async () => {
      const { storage, submit, claim, finish, clock } = await open();
      expect(await storage.tasks.counts({ tenant: TENANT })).toEqual({});
      expect(await storage.tasks.queueDepth({ tenant: TENANT })).toEqual({
        queued: 0,
        inflight: 0,
        agents: {},
        ready: {},
      });
      await submit(
        { agent: "a" },
        { agent: "a", lane: OTHER_LANE },
        { agent: "a" },
        { agent: "b" },
        { agent: "b" },
      );
      await submit({ agent: "c", runAt: clock.now() + 5 });
      const claimed = await claim({ limit: 3 });
      expect(claimed.map(({ task }) => task.agent)).toEqual(["a", "b", "a"]);
      await finish(only(claimed.slice(0, 1)), { to: "failed", error: "x" });
      expect(await storage.tasks.counts({ tenant: TENANT })).toEqual({
        queued: 2,
        running: 2,
        failed: 1,
        delayed: 1,
      });
      const depth = { queued: 3, inflight: 2, agents: { a: 1, b: 1, c: 1 }, ready: { a: 1, b: 1 } };
      expect(await storage.tasks.queueDepth({ tenant: TENANT })).toEqual(depth);
    });

    test("count as queued what admission counts", async () => {
      const world = await open();
      const { storage, clock } = world;
      const session = { key: "s", maxConcurrent: 1 };
      await world.submit(
        { id: "a" },
        { id: "later", runAt: clock.now() + 5 },
        { id: "child", agent: "other", dependsOn: ["a"] },
        { id: "said", origin: "message", session },
        { id: "held", origin: "message", session },
        { id: "fired", origin: "run" },
      );
      expect(await storage.tasks.queueDepth({ tenant: TENANT })).toEqual({
        queued: 3,
        inflight: 0,
        agents: { [AGENT]: 2, other: 1 },
        ready: { [AGENT]: 4 },
      });
      const limits = { maxQueueSize: 3, maxQueueSizeTotal: 1_000, maxPerAgent: 9 };
      const [refused] = await storage.tasks.insert({ tasks: [newTask()], limits });
      expect(refused?.rejection).toEqual({ full: "global", queued: 3 });
    });
  });
}
