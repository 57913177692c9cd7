import { describe, expect, test } from "vitest";
import type { ListTasksParams } from "../../storage.ts";
import {
  AGENT,
  customSpec,
  LANE,
  NODE,
  newTask,
  type OpenWorld,
  OTHER_LANE,
  only,
  TENANT,
  type World,
} from "../world.ts";

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

    test("searches by id, by its beginning, by batch and by key, and by anything else within that", async () => {
      const world = await open();
      const batch = "bat_1";
      await world.submit(
        { id: "tsk_aa1", batch, spec: { ...customSpec(1), key: "fetch" } },
        { id: "tsk_aa2", batch: "bat_2", spec: { ...customSpec(1), key: "fetch" }, priority: 1 },
        { id: "tsk_ab1", spec: { ...customSpec(1), key: "fetch" } },
        { id: "tsk_aa3", tenant: "other", batch: "bat_3", spec: { ...customSpec(1), key: "fetch" } },
      );
      expect(await listIds(world, { search: "tsk_aa1" })).toBe("tsk_aa1");
      expect(await listIds(world, { search: "tsk_aa" })).toBe("tsk_aa2 tsk_aa1");
      expect(await listIds(world, { search: "tsk_" })).toBe("tsk_ab1 tsk_aa2 tsk_aa1");
      expect(await listIds(world, { search: batch })).toBe("tsk_aa1");
      expect(await listIds(world, { search: "fetch" }), "a key is one of a batch").toBe("tsk_aa2 tsk_aa1");
      expect(await listIds(world, { search: "fetch", priority: 1 })).toBe("tsk_aa2");
      expect(await listIds(world, { search: "fetc" }), "a key is named whole").toBe("");
      expect(await listIds(world, { search: "tsk_%" })).toBe("");
    });

    test("lists what was created in a span of time, also where the clock was set back", async () => {
      const world = await open();
      const start = world.clock.now();
      for (const [id, at] of Object.entries({ a: 0, b: 10, c: 20, d: 5, e: 30 })) {
        world.clock.step(start + at - world.clock.now());
        await world.submit({ id });
      }
      expect(await listIds(world, { from: start + 5, to: start + 20 })).toBe("d b");
      expect(await listIds(world, { from: start + 20 })).toBe("e c");
      expect(await listIds(world, { to: start + 6, order: "oldest" })).toBe("a d");
      expect(await listIds(world, { from: start + 31 })).toBe("");
    });

    test("lists ended tasks by their ends, each where it ended last", async () => {
      const world = await open();
      const start = world.clock.now();
      await world.submit({ id: "a" }, { id: "b" }, { id: "c" }, { id: "d" });
      const end = async (id: string, after: number) => {
        world.clock.step(after);
        await world.storage.tasks.cancel({ tenant: TENANT, ids: [id], error: null });
      };
      await end("c", 10);
      await end("a", 10);
      await world.finish(only(await world.claim()), { to: "done", result: 1 });
      expect(await listIds(world, { order: "completed" })).toBe("b a c");
      await world.storage.tasks.retry({ tenant: TENANT, id: "c" });
      expect(await listIds(world, { order: "completed" })).toBe("b a");
      await end("c", 10);
      // Ended twice within a millisecond.
      await world.storage.tasks.retry({ tenant: TENANT, id: "c" });
      await end("c", 0);
      expect(await listIds(world, { order: "completed" })).toBe("c b a");
      expect(await listIds(world, { order: "completed", states: ["cancelled", "queued"] })).toBe("c a");
      expect(await listIds(world, { order: "completed", states: ["queued"] })).toBe("");
      expect(await listIds(world, { order: "completed", from: start + 20, to: start + 30 })).toBe("b a");
      const { nextCursor: cursor } = await world.storage.tasks.list({
        tenant: TENANT,
        order: "completed",
        limit: 1,
      });
      expect(await listIds(world, { order: "completed", cursor: cursor as number })).toBe("b a");
    });

    test("ends a page when enough has been looked at, and goes on behind it", async () => {
      const world = await open();
      await world.submit({ id: "rare", agent: "other" }, ...Array.from({ length: 30 }, () => ({})));
      const filter = {
        tenant: TENANT,
        agent: "other",
        priority: 2,
        states: ["queued", "done"],
        limit: 5,
      } as const;
      let cursor: number | null = null;
      const pages: string[][] = [];
      do {
        const page: Awaited<ReturnType<World["storage"]["tasks"]["list"]>> = await world.storage.tasks.list({
          ...filter,
          lookedMax: 10,
          ...(cursor === null ? {} : { cursor }),
        });
        pages.push(page.tasks.map(({ id }) => id));
        cursor = page.nextCursor;
      } while (cursor !== null && pages.length < 50);
      expect(pages.flat()).toEqual(["rare"]);
    });

    test("reports how many it looked at where nothing fits, also in the order of ends", async () => {
      const world = await open();
      const given = Array.from({ length: 30 }, () => ({ priority: 2 }));
      await world.submit(...given);
      for (const claimed of await world.claim({ limit: 30 })) {
        await world.finish(claimed, { to: "done", result: null });
      }
      const looked = async (filter: Omit<ListTasksParams, "tenant" | "limit">) => {
        let entries = 0;
        const onLooked = (count: number) => {
          entries += count;
        };
        await world.storage.tasks.list({ tenant: TENANT, limit: 5, lookedMax: 10, ...filter, onLooked });
        await world.storage.tasks.listRows({ tenant: TENANT, limit: 5, lookedMax: 10, ...filter, onLooked });
        return entries / 2;
      };
      expect(await looked({ order: "completed", states: ["done"], lane: "other" })).toBeGreaterThanOrEqual(
        10,
      );
      expect(await looked({ states: ["failed", "done"], priorityMax: 1 })).toBeGreaterThanOrEqual(10);
      expect(await looked({})).toBeGreaterThanOrEqual(5);
      // It reached the end of the tasks before its limit.
      expect(await looked({ lookedMax: 100, priorityMax: 1 })).toBeGreaterThanOrEqual(30);
    });

    test("ends a page before it takes more than asked for, after one task at least", async () => {
      const world = await open();
      const large = customSpec("x".repeat(1_000));
      await world.submit({ id: "a", spec: large }, { id: "b", spec: large }, { id: "c", spec: large });
      const { tasks } = world.storage;
      const page = await tasks.list({ tenant: TENANT, limit: 9, bytesMax: 2_500 });
      expect(page.tasks.map(({ id }) => id)).toEqual(["c", "b"]);
      expect(page.bytes).toBeGreaterThan(2_000);
      const rest = await tasks.list({
        tenant: TENANT,
        limit: 9,
        bytesMax: 1,
        cursor: page.nextCursor as number,
      });
      expect([rest.tasks.map(({ id }) => id), rest.nextCursor]).toEqual([["a"], null]);
    });

    test("shows of each task what fits into a line", async () => {
      const world = await open();
      const said = {
        ...customSpec(null),
        work: { kind: "message", message: `say\n${"x".repeat(300)}` },
      } as const;
      const huge = customSpec("x".repeat(70_000));
      await world.submit({ id: "a", spec: said }, { id: "b", spec: huge, lane: OTHER_LANE });
      const claimed = only(await world.claim());
      const token = { to: "failed", error: `broken ${"e".repeat(300)}` } as const;
      world.clock.step(5);
      await world.storage.tasks.finishAndClaim({
        node: NODE,
        finishes: [
          {
            seq: claimed.task.seq,
            token: claimed.token,
            settlement: token,
            usage: { inputTokens: 30, outputTokens: 12 },
          },
        ],
        progress: [],
        claims: [{ lane: OTHER_LANE, limit: 1 }],
      });
      const { rows } = await world.storage.tasks.listRows({ tenant: TENANT, limit: 9 });
      const at = world.clock.now();
      expect(rows.map(({ seq: _seq, ...row }) => row)).toEqual([
        {
          id: "b",
          title: null,
          agent: AGENT,
          lane: OTHER_LANE,
          priority: 2,
          state: "running",
          createdAt: at - 5,
          startedAt: at,
          completedAt: null,
          attempts: 1,
          tokens: null,
          error: null,
        },
        {
          id: "a",
          title: `say ${"x".repeat(155)}…`,
          agent: AGENT,
          lane: LANE,
          priority: 2,
          state: "failed",
          createdAt: at - 5,
          startedAt: at - 5,
          completedAt: at,
          attempts: 1,
          tokens: 42,
          error: `broken ${"e".repeat(152)}…`,
        },
      ]);
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
