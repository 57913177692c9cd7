import { describe, expect, test } from "vitest";
import { NEWCOMER_LEAD } from "../../../model/lane.ts";
import { CONSECUTIVE_CRITICAL_MAX } from "../../../model/priority.ts";
import type { NewTask, TenantLimits } from "../../storage.ts";
import { idsOf, LANE, NODE, type OpenWorld, OTHER_LANE, OTHER_NODE, only, type World } from "../world.ts";

export const UNBOUNDED: TenantLimits = {
  maxQueued: null,
  maxInflight: null,
  maxSchedules: null,
  maxSessions: null,
  maxStreams: null,
  maxAgents: null,
  maxStoredBytes: null,
};

export function describeTenantFairness(open: OpenWorld): void {
  const done = { to: "done", result: null } as const;

  /** Submits `count` tasks named `<tenant><number from 1>`, each of an agent of its own unless `task` says which. */
  function submitMany(world: World, tenant: string, count: number, task: Partial<NewTask> = {}) {
    return world.submit(
      ...Array.from({ length: count }, (_, n) => ({
        id: `${tenant}${n + 1}`,
        tenant,
        agent: `${n}`,
        ...task,
      })),
    );
  }

  async function createTenant({ storage }: World, id: string, limits: Partial<TenantLimits> = {}) {
    await storage.tenants.create({ id, name: id, limits: { ...UNBOUNDED, ...limits } });
  }

  function tenantsOf(claimed: Awaited<ReturnType<World["claim"]>>): string {
    return claimed.map(({ task }) => task.tenant).join("");
  }

  describe("between tenants", () => {
    test("one with many agents does not crowd out another with one", async () => {
      const world = await open();
      await submitMany(world, "a", 40);
      await submitMany(world, "b", 4, { agent: "only" });
      expect(tenantsOf(await world.claim({ limit: 6 }))).toBe("ababab");
      expect(tenantsOf(await world.claim({ limit: 6 }))).toBe("abaaaa");
    });

    test("the tenant with the fewest in flight in the lane is served first, ties to the one served longest ago", async () => {
      const world = await open();
      await submitMany(world, "a", 5);
      const running = await world.claim({ limit: 3 });
      await submitMany(world, "b", 5);
      await submitMany(world, "c", 5);
      expect(tenantsOf(await world.claim({ limit: 7 }))).toBe("bcbcbca");
      for (const one of running) await world.finish(one, done);
      expect(tenantsOf(await world.claim({ limit: 3 }))).toBe("abc");
    });

    test("however many there are, each is served in its turn", async () => {
      const world = await open();
      const names = Array.from({ length: 50 }, (_, n) => `t${String(n).padStart(2, "0")}`);
      for (const tenant of names) await submitMany(world, tenant, 3);
      const first = await world.claim({ limit: 60 });
      expect(first.map(({ task }) => task.tenant)).toEqual([...names, ...names.slice(0, 10)]);
      await createTenant(world, "t10", { maxInflight: 1 });
      for (const one of first.slice(20, 30)) await world.finish(one, done);
      const served = (await world.claim({ limit: 50 })).map(({ task }) => task.tenant);
      expect(served).toEqual([
        ...names.slice(20, 30),
        ...names.slice(11, 20),
        ...names.slice(30),
        ...names.slice(20, 30),
        names[0],
      ]);
      expect(await world.storage.counters.recountAll()).toEqual([]);
    });

    test("what runs in other lanes does not count", async () => {
      const world = await open();
      await submitMany(world, "a", 3, { lane: OTHER_LANE });
      await world.claim({ lane: OTHER_LANE, limit: 3 });
      await world.submit({ tenant: "a" }, { tenant: "b" }, { tenant: "a" });
      expect(tenantsOf(await world.claim({ limit: 3 }))).toBe("aba");
    });

    test("agents of one are served as ever, whatever the others do", async () => {
      const world = await open();
      for (const id of ["x1", "x2", "x3"]) await world.submit({ id, tenant: "a", agent: "x" });
      for (const id of ["y1", "y2"]) await world.submit({ id, tenant: "a", agent: "y" });
      for (const id of ["b1", "b2", "b3"]) await world.submit({ id, tenant: "b", agent: "x" });
      expect(idsOf(await world.claim({ limit: 8 }))).toEqual([
        "x1",
        "b1",
        "y1",
        "b2",
        "x2",
        "b3",
        "y2",
        "x3",
      ]);
    });

    test("one does not wait for ever behind tenants that are new", async () => {
      const world = await open();
      await world.submit({ tenant: "old" });
      await world.finish(only(await world.claim()), done);
      await world.submit({ id: "waiting", tenant: "old" });
      let newcomers = 0;
      for (;;) {
        await world.submit({ tenant: `new-${newcomers}` });
        const started = only(await world.claim());
        await world.finish(started, done);
        if (started.task.id === "waiting") break;
        newcomers += 1;
        expect(newcomers).toBeLessThan(NEWCOMER_LEAD);
      }
      expect(newcomers).toBeGreaterThan(10);
    });

    test("critical tasks of one go ahead of its own alone, and not for ever", async () => {
      const world = await open();
      await submitMany(world, "b", 12);
      await world.submit({ id: "normal", tenant: "a", agent: "patient" });
      await submitMany(world, "a", 12, { priority: 0, agent: "urgent" });
      const claimed = await world.claim({ limit: 20 });
      expect(tenantsOf(claimed)).toBe("ba".repeat(10));
      expect(
        idsOf(claimed)
          .filter((id) => !id.startsWith("b"))
          .indexOf("normal"),
      ).toBe(CONSECUTIVE_CRITICAL_MAX);
    });

    test("each has consecutive critical tasks of its own", async () => {
      const world = await open();
      for (const tenant of ["a", "b"]) {
        await world.submit({ id: `${tenant}-normal`, tenant, agent: "patient" });
        await submitMany(world, tenant, 8, { priority: 0, agent: "urgent" });
      }
      expect(idsOf(await world.claim({ limit: 18 })).slice(14, 16)).toEqual(["a-normal", "b-normal"]);
    });

    test("priority-fifo goes by priority and order inside each, and is fair between them", async () => {
      const world = await open();
      await world.configureLane(LANE, { strategy: "priority-fifo" });
      await world.submit({ id: "a1", tenant: "a" }, { id: "a2", tenant: "a", priority: 1, agent: "x" });
      await world.submit({ id: "a3", tenant: "a", priority: 0, agent: "y" });
      await world.submit({ id: "b1", tenant: "b", priority: 9 }, { id: "b2", tenant: "b", priority: 8 });
      expect(idsOf(await world.claim({ limit: 5 }))).toEqual(["a3", "b2", "a2", "b1", "a1"]);
    });

    test("one whose agents are all full is passed over", async () => {
      const world = await open();
      await world.configureLane(LANE, { perAgent: 1 });
      await submitMany(world, "a", 3, { agent: "busy" });
      await world.claim();
      await submitMany(world, "b", 3);
      await world.claim({ limit: 2 });
      expect(tenantsOf(await world.claim({ limit: 5 }))).toBe("b");
    });
  });

  describe("a tenant's bound on what is in flight", () => {
    test("holds over all lanes and nodes, and frees with the first end", async () => {
      const world = await open();
      await createTenant(world, "a", { maxInflight: 3 });
      await submitMany(world, "a", 5);
      await world.submit(...["l1", "l2"].map((id) => ({ id, tenant: "a", lane: OTHER_LANE })));
      const [first] = await world.claim({ limit: 2 });
      expect(idsOf(await world.claim({ node: OTHER_NODE, lane: OTHER_LANE, limit: 5 }))).toEqual(["l1"]);
      expect(await world.claim({ limit: 5 })).toEqual([]);
      if (first === undefined) throw new Error("Two of them run.");
      await world.finish(first, done);
      expect(idsOf(await world.claim({ limit: 5 }))).toEqual(["a3"]);
      expect(await world.storage.counters.recountAll()).toEqual([]);
    });

    test("leaves the slots to others", async () => {
      const world = await open();
      await createTenant(world, "a", { maxInflight: 2 });
      await submitMany(world, "a", 9);
      await submitMany(world, "b", 9);
      expect(tenantsOf(await world.claim({ limit: 8 }))).toBe("ababbbbb");
    });

    test("holds from the moment it is set, and what runs beyond it ends by itself", async () => {
      const world = await open();
      await createTenant(world, "a");
      await submitMany(world, "a", 5);
      const [first, second] = await world.claim({ limit: 2 });
      await world.storage.tenants.update({ id: "a", limits: { maxInflight: 1 } });
      expect(await world.claim({ limit: 5 })).toEqual([]);
      if (first === undefined || second === undefined) throw new Error("Two of them run.");
      await world.finish(first, done);
      expect(await world.claim({ limit: 5 })).toEqual([]);
      await world.finish(second, done);
      expect(await world.claim({ limit: 5 })).toHaveLength(1);
      await world.storage.tenants.update({ id: "a", limits: { maxInflight: null } });
      expect(await world.claim({ limit: 5 })).toHaveLength(2);
    });

    test("holds for a lane that the tenant has not used before", async () => {
      const world = await open();
      await createTenant(world, "a", { maxInflight: 1 });
      await submitMany(world, "a", 1);
      await world.claim();
      await world.submit({ tenant: "a", lane: OTHER_LANE });
      expect(await world.claim({ lane: OTHER_LANE })).toEqual([]);
    });

    test("is part of a task's situation", async () => {
      const world = await open();
      await createTenant(world, "a", { maxInflight: 1 });
      await submitMany(world, "a", 2);
      await world.claim();
      const situation = await world.storage.tasks.situation({ tenant: "a", id: "a2" });
      expect(situation?.tenant).toEqual({ disabled: false, inflight: 1, max: 1 });
      await world.submit({ id: "t", tenant: "unknown" });
      const other = await world.storage.tasks.situation({ tenant: "unknown", id: "t" });
      expect(other?.tenant).toEqual({ disabled: false, inflight: 0, max: null });
    });
  });

  describe("a tenant that is disabled", () => {
    test("starts nothing until it is enabled; what runs ends by itself, and what comes in waits", async () => {
      const world = await open();
      await createTenant(world, "a");
      await submitMany(world, "a", 2);
      const running = only(await world.claim());
      await world.storage.tenants.setDisabled({ id: "a", disabled: true });
      expect(await world.claim({ limit: 5 })).toEqual([]);
      await world.submit({ id: "later", tenant: "a" }, { id: "elsewhere", tenant: "a", lane: OTHER_LANE });
      expect(await world.claim({ limit: 5 })).toEqual([]);
      expect(await world.claim({ lane: OTHER_LANE, limit: 5 })).toEqual([]);
      const { finished } = await world.finish(running, done);
      expect(finished).toEqual([{ token: running.token, state: "done" }]);
      const situation = await world.storage.tasks.situation({ tenant: "a", id: "later" });
      expect(situation?.tenant).toEqual({ disabled: true, inflight: 0, max: null });
      await world.storage.tenants.setDisabled({ id: "a", disabled: false });
      expect(idsOf(await world.claim({ limit: 5 }))).toEqual(["a2", "later"]);
      expect(idsOf(await world.claim({ lane: OTHER_LANE }))).toEqual(["elsewhere"]);
    });

    test("does not keep others from starting, however urgent its tasks are", async () => {
      const world = await open();
      await createTenant(world, "a");
      await submitMany(world, "a", 5, { priority: 0 });
      await world.storage.tenants.setDisabled({ id: "a", disabled: true });
      await submitMany(world, "b", 2);
      expect(tenantsOf(await world.claim({ limit: 9 }))).toBe("bb");
    });

    test("takes no slot for its critical tasks until it is enabled", async () => {
      const world = await open();
      await world.storage.nodes.setSlots({ node: NODE, slots: { [LANE]: 1 } });
      await createTenant(world, "a");
      await world.submit({ id: "runs", tenant: "a", preemptible: true });
      await world.claim();
      await world.storage.tenants.setDisabled({ id: "a", disabled: true });
      await world.submit({ id: "urgent", tenant: "a", priority: 0 });
      expect((await world.task("runs", "a")).state).toBe("running");
      await world.storage.tenants.setDisabled({ id: "a", disabled: false });
      expect((await world.task("runs", "a")).state).toBe("queued");
      expect(idsOf(await world.claim())).toEqual(["urgent"]);
    });
  });

  describe("a slot that a critical task takes from a running one", () => {
    test("is its tenant's, although another has fewer in flight", async () => {
      const world = await open();
      await world.storage.nodes.setSlots({ node: NODE, slots: { [LANE]: 3 } });
      await submitMany(world, "a", 3, { preemptible: true });
      await world.claim({ limit: 3 });
      await submitMany(world, "b", 3);
      await world.submit({ id: "urgent", tenant: "a", priority: 0 });
      expect(idsOf(await world.claim({ limit: 1 }))).toEqual(["urgent"]);
      expect(await world.storage.counters.recountAll()).toEqual([]);
    });

    test("is taken although a slot is free that is another tenant's to take", async () => {
      const world = await open();
      await world.storage.nodes.setSlots({ node: NODE, slots: { [LANE]: 3 } });
      await submitMany(world, "a", 2, { preemptible: true });
      await world.claim({ limit: 2 });
      await submitMany(world, "b", 3);
      await world.submit({ id: "urgent", tenant: "a", priority: 0 });
      expect((await world.task("a2", "a")).state).toBe("queued");
      expect(idsOf(await world.claim({ limit: 2 }))).toEqual(["urgent", "b1"]);
    });

    test("is not taken where a slot is free that would be the tenant's", async () => {
      const world = await open();
      await world.storage.nodes.setSlots({ node: NODE, slots: { [LANE]: 4 } });
      await submitMany(world, "a", 1, { preemptible: true });
      await submitMany(world, "b", 3);
      await world.claim({ limit: 3 });
      await world.submit({ id: "urgent", tenant: "a", priority: 0 });
      expect((await world.task("a1", "a")).state).toBe("running");
      expect(idsOf(await world.claim())).toEqual(["urgent"]);
    });

    test("is taken where the tenant's own bound leaves none, however many are free", async () => {
      const world = await open();
      await world.storage.nodes.setSlots({ node: NODE, slots: { [LANE]: 9 } });
      await createTenant(world, "a", { maxInflight: 2 });
      await submitMany(world, "a", 2, { preemptible: true });
      await world.claim({ limit: 2 });
      await world.submit({ id: "urgent", tenant: "a", priority: 0, agent: "other" });
      expect((await world.task("a2", "a")).state).toBe("queued");
      expect(idsOf(await world.claim({ limit: 9 }))).toEqual(["urgent"]);
    });

    test("is never another tenant's", async () => {
      const world = await open();
      await world.storage.nodes.setSlots({ node: NODE, slots: { [LANE]: 1 } });
      await submitMany(world, "a", 1, { preemptible: true });
      await world.claim();
      await world.submit({ tenant: "b", priority: 0 });
      expect((await world.task("a1", "a")).state).toBe("running");
    });
  });
}
