import { describe, expect, test } from "vitest";
import type { AdmissionLimits, InsertedTask, NewTask } from "../../storage.ts";
import { UNBOUNDED } from "../tenants/share-out.ts";
import { newTask, type OpenWorld, OTHER_LANE, only, ROOMY, TENANT, type World } from "../world.ts";

export function describeAdmission(open: OpenWorld): void {
  describe("admission", () => {
    function submitWithin(world: World, limits: Partial<AdmissionLimits>, ...tasks: Partial<NewTask>[]) {
      return world.storage.tasks.insert({ tasks: tasks.map(newTask), limits: { ...ROOMY, ...limits } });
    }

    test("rejects what comes when the tenant's queue is full, task by task", async () => {
      const world = await open();
      const inserted = await submitWithin(world, { maxQueueSize: 2 }, {}, { agent: "b" }, { agent: "c" }, {});
      expect(inserted.map(({ rejection }) => rejection)).toEqual([
        null,
        null,
        { full: "global", queued: 2 },
        { full: "global", queued: 2 },
      ]);
    });

    const zeta = { tenant: "zeta" };

    async function createTenant({ storage }: World, id: string) {
      await storage.tenants.create({ id, name: id, limits: UNBOUNDED });
    }

    function fullOf(inserted: readonly InsertedTask[]) {
      return inserted.map(({ rejection }) => rejection?.full ?? null);
    }

    test("counts each tenant's tasks by themselves: a full queue of one refuses nothing of another", async () => {
      const world = await open();
      const later = { runAt: world.clock.now() + 1_000_000 };
      const inserted = await submitWithin(
        world,
        { maxQueueSize: 2 },
        { ...zeta, ...later },
        { ...zeta, ...later, lane: OTHER_LANE },
        { ...zeta, ...later },
        {},
        {},
        zeta,
        {},
      );
      expect(fullOf(inserted)).toEqual([null, null, "global", null, null, "global", "global"]);
    });

    test("rejects what comes when the queue of all tenants is full, no matter which tenant fills it", async () => {
      const world = await open();
      await world.submit(zeta, zeta, {});
      const inserted = await submitWithin(world, { maxQueueSizeTotal: 4 }, {}, {}, zeta, { tenant: "eta" });
      // A tenant must not learn how many tasks of others wait.
      expect(inserted.map(({ rejection }) => rejection)).toEqual([
        null,
        { full: "server", queued: 2 },
        { full: "server", queued: 2 },
        { full: "server", queued: 0 },
      ]);
      const repeated = await world.storage.tasks.list({ tenant: "eta", limit: 1 });
      expect(repeated.tasks[0]?.error).toBe("rejected: server queue full");
    });

    test("keeps half of the queue of all for others once a second tenant exists", async () => {
      const world = await open();
      expect(fullOf(await submitWithin(world, { maxQueueSizeTotal: 5 }, {}, {}, {}))).toEqual([
        null,
        null,
        null,
      ]);
      await createTenant(world, "zeta");
      expect(only(await submitWithin(world, { maxQueueSizeTotal: 5 }, {})).rejection).toEqual({
        full: "server",
        queued: 3,
      });
      const inserted = await submitWithin(world, { maxQueueSizeTotal: 7 }, zeta, zeta, zeta, zeta);
      expect(fullOf(inserted)).toEqual([null, null, null, "server"]);
      expect(fullOf(await submitWithin(world, { maxQueueSizeTotal: 8, maxQueueSize: 3 }, zeta))).toEqual([
        "global",
      ]);
    });

    test("never refuses a retry, and counts no more than half of the queue of all of what one tenant has", async () => {
      const world = await open();
      await createTenant(world, "zeta");
      const dependsOn = ["parent"];
      await world.submit({ id: "parent" }, ...Array.from({ length: 5 }, () => ({ dependsOn })));
      await world.storage.tasks.cancel({ tenant: TENANT, ids: ["parent"], error: null });
      await world.storage.tasks.retry({ tenant: TENANT, id: "parent", dependants: true });
      await world.storage.tasks.release({ limit: 100 });
      expect((await world.storage.tasks.counts({ tenant: TENANT })).waiting_dependency).toBe(5);
      const within = (...tasks: Partial<NewTask>[]) =>
        submitWithin(world, { maxQueueSizeTotal: 4 }, ...tasks);
      expect(fullOf(await within({}, zeta, zeta, zeta, { tenant: "eta" }))).toEqual([
        "server",
        null,
        null,
        "server",
        "server",
      ]);
      expect(fullOf(await within(zeta, {}))).toEqual(["server", "server"]);
      // A tenant that is alone again has the whole queue: no task of it is beyond its half.
      await world.storage.tenants.setDisabled({ id: "zeta", disabled: true });
      expect(fullOf(await within({ tenant: "eta" }))).toEqual(["server"]);
      expect(await world.storage.counters.recountAll()).toEqual([]);
    });

    test("leaves a tenant all of the queue while the only other one is disabled", async () => {
      const world = await open();
      await createTenant(world, "zeta");
      await world.storage.tenants.setDisabled({ id: "zeta", disabled: true });
      const within = (...tasks: Partial<NewTask>[]) =>
        submitWithin(world, { maxQueueSizeTotal: 4 }, ...tasks);
      expect(fullOf(await within({}, {}, {}))).toEqual([null, null, null]);
      await world.storage.tenants.setDisabled({ id: "zeta", disabled: false });
      expect(fullOf(await within({}))).toEqual(["server"]);
    });

    test("counts nothing of a disabled tenant among all, and what is its own as ever", async () => {
      const world = await open();
      await createTenant(world, "zeta");
      await world.submit(zeta, zeta, { ...zeta, origin: "run" }, {});
      const within = (...tasks: Partial<NewTask>[]) =>
        submitWithin(world, { maxQueueSizeTotal: 4, maxQueueSize: 9 }, ...tasks);
      const disable = (disabled: boolean) => world.storage.tenants.setDisabled({ id: "zeta", disabled });
      await disable(true);
      await disable(true);
      expect(fullOf(await within({ tenant: "eta" }, { tenant: "eta" }, { tenant: "theta" }))).toEqual([
        null,
        null,
        null,
      ]);
      expect(fullOf(await within({ tenant: "theta" }, zeta, zeta))).toEqual(["server", null, null]);
      await world.storage.tasks.cancel({ tenant: "zeta", ids: ["none"], error: null });
      expect(await world.storage.counters.recountAll()).toEqual([]);
      await disable(false);
      expect(fullOf(await submitWithin(world, { maxQueueSizeTotal: 7 }, { tenant: "theta" }))).toEqual([
        "server",
      ]);
      expect(fullOf(await submitWithin(world, { maxQueueSizeTotal: 9 }, { tenant: "theta" }))).toEqual([
        null,
      ]);
      expect(await world.storage.counters.recountAll()).toEqual([]);
    });

    test("has room for others again as a disabled tenant is deleted, slice by slice", async () => {
      const world = await open();
      await createTenant(world, "zeta");
      await world.submit(zeta, zeta, zeta);
      let more = true;
      while (more) {
        const deleted = await world.storage.tenants.delete({ id: "zeta", limit: 2 });
        more = deleted.found && deleted.was === null && deleted.more;
        expect(await world.storage.counters.recountAll()).toEqual([]);
      }
      expect(fullOf(await submitWithin(world, { maxQueueSizeTotal: 2 }, {}, {}, {}))).toEqual([
        null,
        null,
        "server",
      ]);
    });

    test("goes by the share that an agent has of its own, where it has one", async () => {
      const world = await open();
      const few = { agent: "few", maxQueued: 1 };
      const many = { agent: "many", maxQueued: 3 };
      const inserted = await submitWithin(
        world,
        { maxPerAgent: 2 },
        few,
        many,
        {},
        many,
        few,
        {},
        many,
        many,
        {},
      );
      expect(inserted.map(({ position, rejection }) => rejection ?? position)).toEqual([
        1,
        1,
        1,
        2,
        { full: "agent", queued: 1 },
        2,
        3,
        { full: "agent", queued: 3 },
        { full: "agent", queued: 2 },
      ]);
    });

    test("rejects what comes when the agent's share is full, and takes others' tasks", async () => {
      const world = await open();
      const inserted = await submitWithin(
        world,
        { maxPerAgent: 1 },
        {},
        {},
        { agent: "b" },
        { tenant: "zeta" },
        {},
      );
      expect(inserted.map(({ rejection }) => rejection)).toEqual([
        null,
        { full: "agent", queued: 1 },
        null,
        null,
        { full: "agent", queued: 1 },
      ]);
    });

    test("looks at the tenant's queue before the agent's share of it", async () => {
      const world = await open();
      const inserted = await submitWithin(world, { maxQueueSize: 1, maxPerAgent: 1 }, {}, {});
      expect(inserted[1]?.rejection).toEqual({ full: "global", queued: 1 });
    });

    test("counts a tenant's tasks over all lanes, however many those are", async () => {
      const world = await open();
      const lanes = Array.from({ length: 40 }, (_, n) => `lane-${n}`);
      for (const lane of lanes) await world.configureLane(lane, {});
      await world.submit(...lanes.map((lane) => ({ lane })));
      const inserted = await submitWithin(world, { maxQueueSize: 41 }, {}, { lane: "lane-7" });
      expect(inserted.map(({ rejection }) => rejection)).toEqual([null, { full: "global", queued: 41 }]);
    });

    test("counts an agent's tasks over all lanes, also those submitted by the same call", async () => {
      const world = await open();
      const lanes = [{}, { lane: OTHER_LANE }, {}, { lane: OTHER_LANE }];
      const inserted = await submitWithin(world, { maxPerAgent: 2 }, ...lanes);
      expect(inserted.map(({ state }) => state)).toEqual(["queued", "queued", "rejected", "rejected"]);
      expect(inserted[3]?.rejection).toEqual({ full: "agent", queued: 2 });
    });

    test("counts delayed tasks as waiting, and neither rejected, running nor ended ones", async () => {
      const world = await open();
      await world.submit({ runAt: world.clock.now() + 1000 }, { id: "runs", priority: 0 }, { id: "gone" });
      await world.claim({ limit: 1 });
      await world.storage.tasks.cancel({ tenant: TENANT, ids: ["gone"], error: null });
      await submitWithin(world, { maxQueueSize: 0 }, {});
      const inserted = await submitWithin(world, { maxQueueSize: 2 }, {}, {});
      expect(inserted.map(({ rejection }) => rejection)).toEqual([null, { full: "global", queued: 2 }]);
    });

    test("has room again once a task has started, expired or been cancelled", async () => {
      const world = await open();
      await world.submit(
        { id: "starts", priority: 0 },
        { id: "expires", deadline: world.clock.now() + 1 },
        { id: "stops" },
      );
      const full = async () => only(await submitWithin(world, { maxPerAgent: 3 }, {})).state;
      expect(await full()).toBe("rejected");
      await world.claim();
      expect(await full()).toBe("queued");
      expect(await full()).toBe("rejected");
      world.clock.step(1);
      await world.storage.tasks.expire({ limit: 10 });
      expect(await full()).toBe("queued");
      await world.storage.tasks.cancel({ tenant: TENANT, ids: ["stops"], error: null });
      expect(await full()).toBe("queued");
      expect(await full()).toBe("rejected");
    });

    test("counts a task again that went back to waiting", async () => {
      const world = await open();
      await world.submit({});
      const claimed = only(await world.claim());
      await world.finish(claimed, { to: "delayed", error: "later", runAt: world.clock.now() + 10 });
      expect(only(await submitWithin(world, { maxQueueSize: 1 }, {})).rejection).toEqual({
        full: "global",
        queued: 1,
      });
    });

    test("keeps a rejected task, ended the moment it came", async () => {
      const world = await open();
      const now = world.clock.now();
      await submitWithin(world, { maxQueueSize: 0 }, { id: "all" });
      await submitWithin(world, { maxPerAgent: 0 }, { id: "own" });
      expect(await world.task("all")).toMatchObject({
        state: "rejected",
        position: 0,
        createdAt: now,
        completedAt: now,
        startedAt: null,
        error: "rejected: global queue full",
        attempts: [],
      });
      expect(await world.task("own")).toMatchObject({
        state: "rejected",
        error: "rejected: agent queue full",
      });
      expect(await world.claim({ limit: 10 })).toEqual([]);
      expect(
        (await world.events()).map(({ taskId, type, state, data }) => ({ taskId, type, state, data })),
      ).toEqual([
        {
          taskId: "all",
          type: "task.rejected",
          state: "rejected",
          data: { error: "rejected: global queue full" },
        },
        {
          taskId: "own",
          type: "task.rejected",
          state: "rejected",
          data: { error: "rejected: agent queue full" },
        },
      ]);
    });

    test("rejects a task for later like one for now", async () => {
      const world = await open();
      const inserted = await submitWithin(world, { maxQueueSize: 0 }, { runAt: world.clock.now() + 1000 });
      expect(only(inserted)).toMatchObject({ state: "rejected", position: 0 });
      expect(await world.storage.tasks.nextDueAt()).toBeNull();
    });
  });
}
