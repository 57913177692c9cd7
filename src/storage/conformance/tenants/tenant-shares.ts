import { describe, expect, test } from "vitest";
import type { NewTask, TenantSlots } from "../../storage.ts";
import { idsOf, LANE, NODE, type OpenWorld, OTHER_LANE, OTHER_NODE, only, type World } from "../world.ts";
import { UNBOUNDED } from "./share-out.ts";

export function describeTenantShares(open: OpenWorld): void {
  const done = { to: "done", result: null } as const;

  /** A world with the enabled tenants "a" and "b", besides the default one, which is disabled. */
  async function openWithTwo(): Promise<World> {
    const world = await open();
    await disable(world, "default");
    for (const id of ["a", "b"]) await world.storage.tenants.create({ id, name: id, limits: UNBOUNDED });
    return world;
  }

  async function disable({ storage }: World, id: string, disabled = true) {
    await storage.tenants.setDisabled({ id, disabled });
  }

  function submitMany(world: World, tenant: string, count: number, task: Partial<NewTask> = {}) {
    return world.submit(...Array.from({ length: count }, (_, n) => ({ tenant, agent: `${n}`, ...task })));
  }

  async function claimAs(
    { storage }: World,
    params: { node?: string; lane?: string; limit: number; max: number; left?: Record<string, number> },
  ) {
    const { node = NODE, lane = LANE, limit, max, left = {} } = params;
    const perTenant: TenantSlots = { max, left: new Map(Object.entries(left)) };
    const claims = [{ lane, limit, perTenant }];
    return [...(await storage.tasks.finishAndClaim({ node, finishes: [], progress: [], claims })).claimed];
  }

  function tenantsOf(claimed: Awaited<ReturnType<World["claim"]>>): string {
    return claimed.map(({ task }) => task.tenant).join("");
  }

  async function expectCounted({ storage }: World) {
    expect(await storage.counters.recountAll()).toEqual([]);
  }

  describe("a tenant's share of a lane", () => {
    test("holds over all nodes, whether or not others have work", async () => {
      const world = await openWithTwo();
      await world.configureLane(LANE, { total: 5, perTenant: 4 });
      await submitMany(world, "a", 9);
      expect(await world.claim({ limit: 3 })).toHaveLength(3);
      const [last] = await world.claim({ node: OTHER_NODE, limit: 3 });
      expect(await world.claim({ limit: 3 })).toEqual([]);
      await submitMany(world, "b", 9);
      expect(tenantsOf(await world.claim({ limit: 3 }))).toBe("b");
      if (last !== undefined) await world.finish(last, done, OTHER_NODE);
      expect(tenantsOf(await world.claim({ limit: 3 }))).toBe("b");
      await expectCounted(world);
    });

    test("holds on a node by what that says it holds, however many it asks for", async () => {
      const world = await openWithTwo();
      await submitMany(world, "a", 20);
      await submitMany(world, "b", 3);
      expect(tenantsOf(await claimAs(world, { limit: 8, max: 4 }))).toBe("abababa");
      expect(tenantsOf(await claimAs(world, { limit: 5, max: 4, left: { a: 1 } }))).toBe("a");
      expect(await claimAs(world, { limit: 5, max: 4, left: { a: 0 } })).toEqual([]);
      expect(await claimAs(world, { limit: 5, max: 4, left: { a: -2 } })).toEqual([]);
      expect(tenantsOf(await claimAs(world, { node: OTHER_NODE, limit: 9, max: 4 }))).toBe("aaaa");
      await expectCounted(world);
    });

    test("counts in its own lane alone", async () => {
      const world = await openWithTwo();
      for (const lane of [LANE, OTHER_LANE]) await world.configureLane(lane, { total: 3, perTenant: 2 });
      await submitMany(world, "a", 5);
      await submitMany(world, "a", 5, { lane: OTHER_LANE });
      expect(await world.claim({ limit: 9 })).toHaveLength(2);
      expect(await world.claim({ limit: 9, lane: OTHER_LANE })).toHaveLength(2);
    });

    test("holds from the moment a second enabled tenant exists, and no longer once there is none", async () => {
      const world = await open();
      const { tenants } = world.storage;
      await world.configureLane(LANE, { total: 10, perTenant: 2 });
      await submitMany(world, "default", 12);
      expect(await world.claim({ limit: 3 })).toHaveLength(3);
      const claim = () => claimAs(world, { limit: 1, max: 1 });
      await tenants.create({ id: "b", name: "b", limits: UNBOUNDED });
      await expectCounted(world);
      expect(await claim()).toEqual([]);
      await disable(world, "b");
      expect(await claim()).toHaveLength(1);
      await expectCounted(world);
      await disable(world, "b", false);
      expect(await claim()).toEqual([]);
      await tenants.delete({ id: "b", limit: 10 });
      expect(await claim()).toHaveLength(1);
      await expectCounted(world);
      await tenants.create({ id: "c", name: "c", limits: UNBOUNDED });
      expect(await claim()).toEqual([]);
      await disable(world, "default");
      await disable(world, "default", false);
      expect(await claim()).toEqual([]);
      await expectCounted(world);
    });

    test("follows the lane's limits while tasks run", async () => {
      const world = await openWithTwo();
      await world.configureLane(LANE, { total: 10, perTenant: 4 });
      await submitMany(world, "a", 20);
      expect(await world.claim({ limit: 9 })).toHaveLength(4);
      await world.configureLane(LANE, { total: 5, perTenant: 2 });
      await expectCounted(world);
      expect(await world.claim({ limit: 9 })).toEqual([]);
      await world.configureLane(LANE, { total: 10, perTenant: 6 });
      expect(await world.claim({ limit: 9 })).toHaveLength(2);
      await world.configureLane(LANE, {});
      expect(await world.claim({ limit: 3 })).toHaveLength(3);
      await expectCounted(world);
    });

    test("holds for a lane that is made later, and for a tenant that comes to it later", async () => {
      const world = await openWithTwo();
      await world.configureLane("late", { total: 3, perTenant: 2 });
      await submitMany(world, "b", 5, { lane: "late" });
      expect(await world.claim({ lane: "late", limit: 9 })).toHaveLength(2);
      await expectCounted(world);
    });

    test("lets others pass that find many tenants at theirs", async () => {
      const world = await openWithTwo();
      const names = Array.from({ length: 50 }, (_, n) => `t${String(n).padStart(2, "0")}`);
      await world.configureLane(LANE, { total: 100, perTenant: 1 });
      for (const tenant of names) await submitMany(world, tenant, 2);
      expect(await world.claim({ limit: 49 })).toHaveLength(49);
      expect((await world.claim({ limit: 3 })).map(({ task }) => task.tenant)).toEqual(["t49"]);
      await world.configureLane(LANE, {});
      const left = Object.fromEntries(names.slice(0, 40).map((tenant) => [tenant, 0]));
      const claimed = await claimAs(world, { limit: 3, max: 1, left });
      expect(claimed.map(({ task }) => task.tenant)).toEqual(["t40", "t41", "t42"]);
      await expectCounted(world);
    });

    test("holds for agents that only some lines of a lane are open to", async () => {
      const world = await openWithTwo();
      await world.storage.nodes.setAbilities({
        node: NODE,
        abilities: { agents: new Map(), kinds: ["message"] },
      });
      await world.storage.nodes.setAbilities({
        node: OTHER_NODE,
        abilities: { agents: new Map(), kinds: ["message"] },
      });
      await submitMany(world, "a", 5, {
        spec: { work: { kind: "message", message: "hi" }, retryPolicy: RETRY, timeoutMs: null },
      });
      expect(await claimAs(world, { limit: 5, max: 4, left: { a: 2 } })).toHaveLength(2);
      await world.configureLane(LANE, { total: 5, perTenant: 3 });
      expect(await claimAs(world, { limit: 5, max: 4 })).toHaveLength(1);
    });

    test("passes a concurrency key on to a task that may start in another lane", async () => {
      const world = await openWithTwo();
      for (const lane of [LANE, OTHER_LANE]) await world.configureLane(lane, { total: 2, perTenant: 1 });
      await world.submit({ tenant: "a", agent: "x" });
      await world.claim();
      await world.submit(
        { id: "holds", tenant: "a", agent: "y", concurrencyKey: "k" },
        { id: "waits", tenant: "a", agent: "z", concurrencyKey: "k", lane: OTHER_LANE },
      );
      expect(await world.claim()).toEqual([]);
      // The holder is at the tenant's share of its lane: the key goes to a task that can start.
      expect(idsOf(await world.claim({ lane: OTHER_LANE }))).toEqual(["waits"]);
      await expectCounted(world);
    });
  });

  describe("a critical task of a tenant at its share", () => {
    const yielding = { tenant: "a", agent: "low", priority: 3, preemptible: true } as const;
    const critical = { id: "critical", tenant: "a", agent: "top", priority: 0 } as const;

    async function setSlots({ storage }: World, perTenant: number, slots = 5) {
      await storage.nodes.setSlots({
        node: NODE,
        slots: { [LANE]: slots },
        perTenant: { [LANE]: perTenant },
      });
    }

    test("takes the slot of one of its own tenant, though others are free", async () => {
      const world = await openWithTwo();
      await setSlots(world, 2);
      await world.submit({ ...yielding, id: "one" }, { ...yielding, id: "two", agent: "low2" });
      await claimAs(world, { limit: 5, max: 2 });
      await world.submit(critical);
      expect((await world.task("two", "a")).attempts[0]?.outcome).toBe("preempted");
      expect(idsOf(await claimAs(world, { limit: 4, max: 2, left: { a: 1 } }))).toEqual(["critical"]);
      await expectCounted(world);
    });

    test("does so at its share of all nodes, too", async () => {
      const world = await openWithTwo();
      await world.configureLane(LANE, { total: 5, perTenant: 2 });
      await setSlots(world, 4);
      await world.submit({ ...yielding, id: "one" }, { ...yielding, id: "two", agent: "low2" });
      await world.claim({ limit: 5 });
      await world.submit(critical);
      expect((await world.task("two", "a")).state).toBe("queued");
      expect(idsOf(await world.claim({ limit: 4 }))).toEqual(["critical"]);
      await expectCounted(world);
    });

    test("takes nothing where its share leaves it a free slot on another node", async () => {
      const world = await openWithTwo();
      await setSlots(world, 1);
      const { nodes } = world.storage;
      await nodes.setSlots({ node: OTHER_NODE, slots: { [LANE]: 2 }, perTenant: { [LANE]: 1 } });
      await world.submit({ ...yielding, id: "one" });
      await claimAs(world, { limit: 5, max: 1 });
      await world.submit(critical);
      expect((await world.task("one", "a")).state).toBe("running");
      expect(idsOf(await claimAs(world, { node: OTHER_NODE, limit: 2, max: 1 }))).toEqual(["critical"]);
    });

    test("takes nothing while its tenant holds more than its share: it could not use the slot", async () => {
      const world = await openWithTwo();
      await setSlots(world, 2);
      await world.submit(
        yielding,
        { ...yielding, agent: "low2" },
        { ...yielding, id: "three", agent: "low3" },
      );
      await world.claim({ limit: 3 });
      await world.submit(critical);
      expect((await world.task("three", "a")).state).toBe("running");
      await setSlots(world, 3);
      expect((await world.task("three", "a")).state).toBe("queued");
    });

    test("takes it as soon as a second tenant leaves it no other slot", async () => {
      const world = await openWithTwo();
      await disable(world, "b");
      await setSlots(world, 2);
      await world.submit({ ...yielding, id: "one" }, { ...yielding, id: "two", agent: "low2" });
      await world.claim({ limit: 2 });
      await world.submit(critical);
      expect((await world.task("two", "a")).state).toBe("running");
      await disable(world, "b", false);
      expect((await world.task("two", "a")).state).toBe("queued");
      await expectCounted(world);
    });
  });

  describe("what holds a task of a tenant at its share", () => {
    /** The reasons that `explain` and `waiting` give. */
    async function shareOf({ storage }: World, id: string) {
      const share = (await storage.tasks.situation({ tenant: "a", id }))?.laneShare;
      const { queues } = await storage.tasks.waiting({ tenant: "a" });
      expect(queues.map(({ limits }) => limits.laneShare)).toEqual([share]);
      return share;
    }

    test("is reported with what it holds and may hold, over all nodes or on those with a free slot", async () => {
      const world = await openWithTwo();
      await world.configureLane(LANE, { total: 4, perTenant: 3 });
      await submitMany(world, "a", 2);
      await world.submit({ id: "waits", tenant: "a", agent: "z", priority: 3 });
      await world.claim({ limit: 2 });
      expect(await shareOf(world, "waits")).toBeNull();
      await world.configureLane(LANE, { total: 3, perTenant: 2 });
      expect(await shareOf(world, "waits")).toEqual({ inflight: 2, max: 2 });
      await world.configureLane(LANE, {});
      const { nodes } = world.storage;
      await nodes.setSlots({ node: NODE, slots: { [LANE]: 3 }, perTenant: { [LANE]: 2 } });
      expect(await shareOf(world, "waits")).toEqual({ inflight: 2, max: 2 });
      await nodes.setSlots({ node: OTHER_NODE, slots: { [LANE]: 3 }, perTenant: { [LANE]: 2 } });
      expect(await shareOf(world, "waits")).toBeNull();
      await nodes.setSlots({ node: OTHER_NODE, slots: {} });
      await disable(world, "b");
      expect(await shareOf(world, "waits")).toBeNull();
    });
  });

  test("shares leave one slot for a later tenant on each node that claims at once", async () => {
    const world = await openWithTwo();
    await world.configureLane(LANE, { total: 8, perTenant: 6 });
    await submitMany(world, "a", 20);
    const nodes = [NODE, OTHER_NODE];
    const claimed = await Promise.all(nodes.map((node) => claimAs(world, { node, limit: 4, max: 3 })));
    expect(claimed.map((tasks) => tasks.length)).toEqual([3, 3]);
    await submitMany(world, "b", 1, { id: "victim" });
    expect(only(await claimAs(world, { limit: 1, max: 3, left: { a: 0 } })).task.id).toBe("victim");
  });
}

const RETRY = { maxRetries: 0, backoffMs: 1, backoffMultiplier: 1, maxBackoffMs: 1, jitter: 0 };
