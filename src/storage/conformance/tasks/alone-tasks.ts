import { describe, expect, test } from "vitest";
import { UNBOUNDED } from "../tenants/share-out.ts";
import { AGENT, idsOf, LANE, NODE, type OpenWorld, OTHER_LANE, only, TENANT, type World } from "../world.ts";

const MAX_LOST = 5;
const LANES = [LANE, OTHER_LANE];

export function describeAloneTasks(open: OpenWorld): void {
  /** A node claims what it can in `lane`, and dies with it. */
  async function lose(
    { storage, claim, crash }: World,
    { lane = LANE, maxLost = MAX_LOST }: { lane?: string; maxLost?: number | null } = {},
  ) {
    await claim({ lane, limit: 100 });
    await storage.tasks.claimAlone({ node: NODE, lanes: [lane] });
    await crash(NODE);
    const rescued = await storage.tasks.rescue({
      node: NODE,
      limit: 100,
      ...(maxLost === null ? {} : { maxLost }),
    });
    await storage.nodes.remove({ node: NODE });
    await storage.nodes.register({ node: NODE });
    return rescued;
  }

  async function claimAlone({ storage }: World, lanes: readonly string[] = LANES, node = NODE) {
    return [...(await storage.tasks.claimAlone({ node, lanes })).claimed];
  }

  async function alone({ storage }: World, id: string) {
    return (await storage.tasks.situation({ tenant: TENANT, id }))?.alone;
  }

  describe("a task whose process died with it", () => {
    test("fails after so many times, whatever its retries, and says how often", async () => {
      const world = await open();
      await world.submit({ id: "t", maxRetriesIfLost: 100 });
      for (let time = 1; time < MAX_LOST; time += 1) {
        expect((await lose(world)).requeued).toHaveLength(1);
      }
      const labels = { tenant: TENANT, agent: AGENT, lane: LANE };
      expect(await lose(world)).toEqual({ requeued: [], failed: [labels] });
      const task = await world.task("t");
      expect(task).toMatchObject({ state: "failed", error: "lost 5 times", retryCount: 4 });
      expect(task.attempts.map(({ outcome, error }) => [outcome, error])).toEqual([
        ...Array.from({ length: 4 }, () => ["lost", "worker lost"]),
        ["lost", "lost 5 times"],
      ]);
      expect((await world.events()).at(-1)).toMatchObject({
        type: "task.failed",
        data: { error: "lost 5 times" },
      });
    });

    test("fails before that when it has no retry left", async () => {
      const world = await open();
      await world.submit({ id: "t", maxRetriesIfLost: 1 });
      await lose(world);
      await lose(world);
      expect(await world.task("t")).toMatchObject({ state: "failed", error: "worker lost" });
    });

    test("loses nothing with a process that lives on", async () => {
      const world = await open();
      await world.submit({ id: "t", maxRetriesIfLost: 100 });
      for (let time = 0; time < 7; time += 1) await lose(world, { maxLost: null });
      expect(await alone(world, "t")).toBeNull();
      expect(only(await world.claim()).task.id).toBe("t");
    });

    test("begins anew when it is retried by hand", async () => {
      const world = await open();
      await world.submit({ id: "t", maxRetriesIfLost: 100 });
      for (let time = 0; time < 3; time += 1) await lose(world, { maxLost: 3 });
      expect(await world.task("t")).toMatchObject({ state: "failed", error: "lost 3 times" });
      await world.storage.tasks.retry({ tenant: TENANT, id: "t" });
      expect(await alone(world, "t")).toBeNull();
      for (let time = 0; time < 2; time += 1) {
        expect((await lose(world, { maxLost: 3 })).requeued).toHaveLength(1);
      }
      await lose(world, { maxLost: 3 });
      expect(await world.task("t")).toMatchObject({ state: "failed", error: "lost 3 times" });
      expect(await world.storage.counters.recountAll()).toEqual([]);
    });
  });

  describe("a task that was lost twice", () => {
    /** Loses tasks with these ids twice, in `lane`. */
    async function lostTwice(world: World, tasks: Parameters<World["submit"]>, lane = LANE): Promise<void> {
      await world.submit(...tasks.map((task) => ({ maxRetriesIfLost: 100, lane, ...task })));
      await lose(world, { lane });
      await lose(world, { lane });
    }

    test("is claimed alone, and by no ordinary claim", async () => {
      const world = await open();
      await lostTwice(world, [{ id: "a" }, { id: "b" }]);
      await world.submit({ id: "c" });
      expect(await alone(world, "a")).toEqual({ losses: 2 });
      expect(await alone(world, "c")).toBeNull();
      expect(idsOf(await world.claim({ limit: 10 }))).toEqual(["c"]);
      expect(await world.storage.tasks.isAloneWaiting({ node: NODE, lanes: LANES })).toBe(true);
      const first = only(await claimAlone(world));
      expect(first.task).toMatchObject({ id: "a", state: "running", retryCount: 2, lane: LANE });
      expect(first.task.attempts).toHaveLength(3);
      expect(await alone(world, "a")).toBeNull();
      expect((await world.events()).at(-1)).toMatchObject({ type: "task.started", taskId: "a" });
      expect(idsOf(await claimAlone(world))).toEqual(["b"]);
      expect(await claimAlone(world)).toEqual([]);
      expect(await world.storage.tasks.isAloneWaiting({ node: NODE, lanes: LANES })).toBe(false);
      await world.finish(first, { to: "done", result: 1 });
      expect(await world.task("a")).toMatchObject({ state: "done", result: 1 });
      expect(await world.storage.counters.recountAll()).toEqual([]);
    });

    test("is none of the others that its process ran only once", async () => {
      const world = await open();
      await world.submit({ id: "poison", maxRetriesIfLost: 100 });
      await lose(world);
      await world.submit({ id: "bystander", maxRetriesIfLost: 100 });
      await lose(world);
      expect([await alone(world, "poison"), await alone(world, "bystander")]).toEqual([{ losses: 2 }, null]);
      expect(idsOf(await world.claim({ limit: 10 }))).toEqual(["bystander"]);
    });

    test("runs alone after a retry of its own, too", async () => {
      const world = await open();
      await lostTwice(world, [{ id: "t" }]);
      const runAt = world.clock.now() + 10;
      await world.finish(only(await claimAlone(world)), { to: "delayed", error: "try again", runAt });
      expect(await claimAlone(world)).toEqual([]);
      world.clock.step(10);
      await world.storage.tasks.promoteDue({ limit: 5 });
      expect(await world.claim({ limit: 5 })).toEqual([]);
      expect(idsOf(await claimAlone(world))).toEqual(["t"]);
    });

    test("is claimed in the lanes that are asked for, the agents in turn", async () => {
      const world = await open();
      await lostTwice(world, [{ id: "a1" }, { id: "a2" }, { id: "b1", agent: "other" }]);
      await lostTwice(world, [{ id: "m", agent: "third" }], OTHER_LANE);
      expect(idsOf(await claimAlone(world, [OTHER_LANE]))).toEqual(["m"]);
      const order: string[] = [];
      for (let time = 0; time < 3; time += 1) order.push(...idsOf(await claimAlone(world)));
      expect(order).toEqual(["a1", "b1", "a2"]);
    });

    test("counts in the limits of its lane, its agent and its tenant, and they hold it", async () => {
      const world = await open();
      await lostTwice(world, [{ id: "a" }, { id: "b" }]);
      await world.configureLane(LANE, { perAgent: 1 });
      const { task: first, token } = only(await claimAlone(world));
      await world.submit({ id: "c" });
      expect([await claimAlone(world), await world.claim()]).toEqual([[], []]);
      await world.finish({ task: first, token, bytes: 0 }, { to: "done", result: null });
      await world.configureLane(LANE, { total: 1 });
      const running = only(await world.claim());
      expect(running.task.id).toBe("c");
      expect(await claimAlone(world)).toEqual([]);
      await world.finish(running, { to: "done", result: null });
      await world.submit({ lane: OTHER_LANE });
      await world.claim({ lane: OTHER_LANE });
      await world.storage.agents.configure({ tenant: TENANT, agent: AGENT, maxInflight: 1 });
      expect(await claimAlone(world)).toEqual([]);
      await world.storage.agents.configure({ tenant: TENANT, agent: AGENT, maxInflight: null });
      expect(idsOf(await claimAlone(world))).toEqual(["b"]);
      expect(await world.storage.counters.recountAll()).toEqual([]);
    });

    test("waits while its tenant has its share of the lane", async () => {
      const world = await open();
      for (const id of [TENANT, "other"])
        await world.storage.tenants.create({ id, name: id, limits: UNBOUNDED });
      await lostTwice(world, [{ id: "a" }]);
      await world.configureLane(LANE, { perTenant: 1 });
      await world.submit({ id: "b" });
      const running = only(await world.claim());
      expect(await claimAlone(world)).toEqual([]);
      await world.finish(running, { to: "done", result: null });
      expect(idsOf(await claimAlone(world))).toEqual(["a"]);
      expect(await world.storage.counters.recountAll()).toEqual([]);
    });

    test("waits while its tenant is disabled, and ends when it is cancelled or overdue", async () => {
      const world = await open();
      await world.storage.tenants.create({ id: TENANT, name: TENANT, limits: UNBOUNDED });
      const deadline = world.clock.now() + 500;
      await lostTwice(world, [{ id: "a" }, { id: "b", deadline }, { id: "c" }]);
      await world.storage.tenants.setDisabled({ id: TENANT, disabled: true });
      expect(await world.storage.tasks.isAloneWaiting({ node: NODE, lanes: LANES })).toBe(false);
      expect(await claimAlone(world)).toEqual([]);
      await world.storage.tenants.setDisabled({ id: TENANT, disabled: false });
      await world.storage.tasks.cancel({ tenant: TENANT, ids: ["a"], error: null });
      world.clock.step(500);
      const { claimed, expired } = await world.storage.tasks.claimAlone({ node: NODE, lanes: LANES });
      expect([idsOf([...claimed]), expired.length]).toEqual([["c"], 1]);
      expect(await world.task("b")).toMatchObject({
        state: "failed",
        error: "deadline exceeded while queued",
      });
      expect(await world.storage.counters.recountAll()).toEqual([]);
    });

    test("gives its concurrency key up to others while it waits, and takes it again", async () => {
      const world = await open();
      const concurrencyKey = "site";
      await lostTwice(world, [{ id: "a", concurrencyKey }]);
      await world.submit({ id: "b", concurrencyKey });
      const other = only(await world.claim({ limit: 5 }));
      expect(other.task.id).toBe("b");
      expect(await claimAlone(world)).toEqual([]);
      await world.finish(other, { to: "done", result: null });
      expect(idsOf(await claimAlone(world))).toEqual(["a"]);
      expect(await world.storage.counters.recountAll()).toEqual([]);
    });

    test("is handed to no node that is dead or unknown", async () => {
      const world = await open();
      await lostTwice(world, [{ id: "t" }]);
      expect(await claimAlone(world, LANES, "stranger")).toEqual([]);
      expect(await world.storage.tasks.isAloneWaiting({ node: "stranger", lanes: LANES })).toBe(false);
    });

    test("is counted apart from others of its agent, by whether a live node can execute it", async () => {
      const world = await open();
      await lostTwice(world, [{ id: "a" }, { id: "b" }]);
      await world.submit({}, {}, {});
      const { nodes, tasks } = world.storage;
      const counted = async () => {
        const { queues } = await tasks.waiting({ tenant: TENANT });
        return queues.map(({ ready, executable, alone: isAlone }) => ({ ready, executable, isAlone }));
      };
      expect(await counted()).toEqual([
        { ready: 3, executable: true, isAlone: false },
        { ready: 2, executable: true, isAlone: true },
      ]);
      for (const { node } of await nodes.list())
        await nodes.setAbilities({ node, abilities: { agents: new Map(), kinds: ["message"] } });
      expect(await counted()).toEqual([
        { ready: 3, executable: false, isAlone: false },
        { ready: 2, executable: false, isAlone: true },
      ]);
      for (const { node } of await nodes.list())
        await nodes.setAbilities({ node, abilities: { agents: new Map([[AGENT, true]]), kinds: [] } });
      expect((await counted()).map(({ executable }) => executable)).toEqual([true, true]);
    });

    test("waits for a node that can execute it, and says so", async () => {
      const world = await open();
      const kinds = ["custom", "message"] as const;
      await lostTwice(world, [{ id: "t" }]);
      const { nodes, tasks } = world.storage;
      for (const { node } of await nodes.list())
        await nodes.setAbilities({ node, abilities: { agents: new Map(), kinds: ["message"] } });
      expect(await claimAlone(world)).toEqual([]);
      expect(await tasks.isAloneWaiting({ node: NODE, lanes: LANES })).toBe(false);
      expect((await tasks.situation({ tenant: TENANT, id: "t" }))?.noExecutor).toMatchObject({
        served: false,
      });
      for (const { node } of await nodes.list())
        await nodes.setAbilities({ node, abilities: { agents: new Map(), kinds } });
      expect((await tasks.situation({ tenant: TENANT, id: "t" }))?.noExecutor).toBeNull();
      expect(idsOf(await claimAlone(world))).toEqual(["t"]);
    });
  });
}
