import { describe, expect, test } from "vitest";
import type { NewTask, StorageSignal } from "../../storage.ts";
import {
  AGENT,
  idsOf,
  LANE,
  NODE,
  newTask,
  type OpenWorld,
  OTHER_LANE,
  OTHER_NODE,
  only,
  ROOMY,
  TENANT,
  type World,
} from "../world.ts";

const CRITICAL = { priority: 0 };

/** A world whose node has one slot for each of these tasks and runs them all. */
async function busyWorld(open: OpenWorld, tasks: readonly Partial<NewTask>[]): Promise<World> {
  const world = await open();
  await world.storage.nodes.setSlots({ node: NODE, slots: { [LANE]: tasks.length } });
  await world.submit(...tasks.map((task) => ({ preemptible: true, ...task })));
  await world.claim({ limit: tasks.length });
  return world;
}

async function running(world: World): Promise<string[]> {
  const { tasks } = await world.storage.tasks.list({ tenant: TENANT, states: ["running"], limit: 100 });
  return tasks.map(({ id }) => id).sort();
}

async function preempted(world: World): Promise<string[]> {
  return (await world.events()).flatMap(({ type, taskId }) => (type === "task.preempted" ? [taskId] : []));
}

export function describePreemption(open: OpenWorld): void {
  describe("a critical task that finds no free slot", () => {
    test("takes the slot of one that gives way, which goes back to the queue with nothing counted", async () => {
      const world = await busyWorld(open, [{ id: "yielding" }]);
      const fenced = new Promise<StorageSignal>((resolve) => {
        world.storage.subscribe((signal) => signal.kind === "fenced" && resolve(signal));
      });
      const token = (await world.events()).at(-1)?.seq;
      await world.submit({ id: "urgent", ...CRITICAL });
      expect(await fenced).toEqual({ kind: "fenced", tokens: [token], reason: "preempted" });

      const victim = await world.task("yielding");
      expect(victim).toMatchObject({ state: "queued", retryCount: 0, error: null });
      const error = "pre-empted by the critical task urgent";
      expect(victim.attempts).toMatchObject([{ number: 1, outcome: "preempted", error }]);
      expect((await world.events()).at(-1)).toMatchObject({
        type: "task.preempted",
        taskId: "yielding",
        state: "queued",
        data: { attempt: 1, error },
      });
      expect(idsOf(await world.claim({ limit: 1 }))).toEqual(["urgent"]);
      expect(await world.storage.counters.recountAll()).toEqual([]);
    });

    test("lets the late answer of the one that gave way change nothing", async () => {
      const world = await open();
      await world.storage.nodes.setSlots({ node: NODE, slots: { [LANE]: 1 } });
      await world.submit({ id: "yielding", preemptible: true });
      const claimed = only(await world.claim());
      await world.submit({ id: "urgent", ...CRITICAL });
      expect((await world.finish(claimed, { to: "done", result: 1 })).finished).toEqual([]);
      expect((await world.task("yielding")).state).toBe("queued");
    });

    test("makes the least urgent give way, of those the one that started last, and never a critical one", async () => {
      const world = await busyWorld(open, [
        { id: "critical", priority: 0 },
        { id: "normal", priority: 2 },
        { id: "low-first", priority: 3 },
        { id: "low-last", priority: 3 },
        { id: "stubborn", priority: 9, preemptible: false },
      ]);
      for (const id of ["1", "2", "3", "4"]) await world.submit({ id, ...CRITICAL });
      expect(await preempted(world)).toEqual(["low-last", "low-first", "normal"]);
      expect(await running(world)).toEqual(["critical", "stubborn"]);
    });

    test("leaves tasks of other lanes and tenants alone", async () => {
      const world = await open();
      const slots = { [LANE]: 1, [OTHER_LANE]: 1 };
      await world.storage.nodes.setSlots({ node: NODE, slots });
      await world.submit({ preemptible: true, tenant: "zeta" }, { preemptible: true, lane: OTHER_LANE });
      await world.claim({ limit: 1 });
      await world.claim({ lane: OTHER_LANE, limit: 1 });
      await world.submit(CRITICAL);
      expect(await preempted(world)).toEqual([]);
    });

    test("makes only one of its own agent give way when that agent's limit holds it", async () => {
      const world = await open();
      await world.storage.nodes.setSlots({ node: NODE, slots: { [LANE]: 10 } });
      await world.configureLane(LANE, { perAgent: 1 });
      const low = { preemptible: true, priority: 3 };
      await world.submit({ id: "mine", ...low, priority: 2 }, { id: "other", ...low, agent: "b" });
      await world.claim({ limit: 9 });
      await world.submit({ id: "urgent", ...CRITICAL });
      expect(await preempted(world)).toEqual(["mine"]);
    });

    test("does so for an agent's bound over all lanes, too, but only in its own lane", async () => {
      const world = await open();
      await world.storage.nodes.setSlots({ node: NODE, slots: { [LANE]: 10, [OTHER_LANE]: 10 } });
      await world.storage.agents.configure({ tenant: TENANT, agent: AGENT, maxInflight: 2 });
      await world.submit(
        { id: "elsewhere", preemptible: true, lane: OTHER_LANE },
        { id: "here", preemptible: true },
      );
      await world.claim({ limit: 9 });
      await world.claim({ lane: OTHER_LANE, limit: 9 });
      await world.submit({ id: "urgent", ...CRITICAL }, { id: "second", ...CRITICAL });
      expect(await preempted(world)).toEqual(["here"]);
    });

    test("counts free slots of all nodes that live, and the lane's total", async () => {
      const world = await open();
      await world.storage.nodes.setSlots({ node: NODE, slots: { [LANE]: 1 } });
      await world.storage.nodes.setSlots({ node: OTHER_NODE, slots: { [LANE]: 2 } });
      await world.submit({ id: "a", preemptible: true }, { id: "b", preemptible: true });
      await world.claim({ limit: 1 });
      await world.claim({ node: OTHER_NODE, limit: 1 });
      // The third slot is free.
      await world.submit({ id: "1", ...CRITICAL });
      expect(await preempted(world)).toEqual([]);
      // The task that waited first takes it.
      await world.submit({ id: "2", ...CRITICAL });
      expect(await preempted(world)).toEqual(["b"]);
      await world.configureLane(LANE, { total: 1 });
      await world.submit({ id: "3", ...CRITICAL });
      expect(await preempted(world)).toEqual(["b", "a"]);
    });

    test("counts no slot of a node that is dead or has taken its slots back", async () => {
      const world = await open();
      for (const node of [NODE, OTHER_NODE]) {
        await world.storage.nodes.setSlots({ node, slots: { [LANE]: 1 } });
      }
      await world.submit({ id: "a", preemptible: true });
      await world.claim({ limit: 1 });
      await world.storage.nodes.setSlots({ node: OTHER_NODE, slots: {} });
      await world.submit({ id: "1", ...CRITICAL });
      expect(await preempted(world)).toEqual(["a"]);
    });

    test("takes no slot that its node would not fill again", async () => {
      const world = await open();
      await world.storage.nodes.setSlots({ node: NODE, slots: { [LANE]: 2 } });
      await world.storage.nodes.setSlots({ node: OTHER_NODE, slots: { [LANE]: 1 } });
      await world.submit({ id: "a", preemptible: true }, { id: "b", preemptible: true });
      await world.claim({ limit: 2 });
      // The node drains: its running tasks end there.
      await world.storage.nodes.setSlots({ node: NODE, slots: {} });
      await world.submit({ id: "1", ...CRITICAL }, { id: "2", ...CRITICAL });
      expect(await preempted(world)).toEqual([]);
    });

    test("does so also when its moment comes or its dependency is done", async () => {
      const world = await busyWorld(open, [{ id: "a" }, { id: "b" }, { id: "c" }]);
      await world.submit({ id: "parent", preemptible: false });
      await world.submit({ id: "timed", ...CRITICAL, runAt: world.clock.now() + 10 });
      await world.submit({ id: "child", ...CRITICAL, dependsOn: ["parent"] });
      const parent = only(await world.claim({ node: OTHER_NODE, limit: 1 }));
      expect(await preempted(world)).toEqual([]);
      world.clock.step(10);
      await world.storage.tasks.promoteDue({ limit: 10 });
      expect(await preempted(world)).toEqual(["c"]);
      await world.finish(parent, { to: "done", result: null }, OTHER_NODE);
      expect(await preempted(world)).toEqual(["c", "b"]);
    });

    test("does so later, too, when the slot it waited for is gone with its node", async () => {
      const world = await open();
      for (const node of [NODE, OTHER_NODE]) {
        await world.storage.nodes.setSlots({ node, slots: { [LANE]: 1 } });
      }
      await world.submit({ id: "yielding", preemptible: true });
      await world.claim({ limit: 1 });
      await world.submit({ id: "urgent", ...CRITICAL });
      expect(await preempted(world)).toEqual([]);
      await world.crash(OTHER_NODE);
      expect(await preempted(world)).toEqual(["yielding"]);
    });

    test("does so later, too, when the bound of its agent no longer holds it", async () => {
      const world = await open();
      await world.storage.nodes.setSlots({ node: NODE, slots: { [LANE]: 1, [OTHER_LANE]: 1 } });
      await world.storage.agents.configure({ tenant: TENANT, agent: "bound", maxInflight: 1 });
      await world.submit({ id: "yielding", preemptible: true }, { agent: "bound", lane: OTHER_LANE });
      await world.claim({ limit: 1 });
      const elsewhere = only(await world.claim({ lane: OTHER_LANE, limit: 1 }));
      await world.submit({ id: "1", ...CRITICAL, agent: "bound" }, { id: "2", ...CRITICAL, agent: "bound" });
      expect(await preempted(world)).toEqual([]);
      await world.finish(elsewhere, { to: "done", result: null });
      expect(await preempted(world)).toEqual(["yielding"]);
    });

    test("does so also when it is retried", async () => {
      const world = await open();
      await world.storage.nodes.setSlots({ node: NODE, slots: { [LANE]: 1 } });
      await world.submit({ id: "urgent", ...CRITICAL });
      await world.storage.tasks.cancel({ tenant: TENANT, ids: ["urgent"], error: null });
      await world.submit({ id: "yielding", preemptible: true });
      await world.claim();
      await world.storage.tasks.retry({ tenant: TENANT, id: "urgent" });
      expect(await preempted(world)).toEqual(["yielding"]);
    });

    test("goes next, even when the next start would have been one that ignores criticals", async () => {
      const world = await open();
      await world.storage.nodes.setSlots({ node: NODE, slots: { [LANE]: 1 } });
      for (let n = 0; n < 7; n += 1) {
        await world.submit({ ...CRITICAL });
        await world.finish(only(await world.claim()), { to: "done", result: null });
      }
      await world.submit({ id: "yielding", preemptible: true });
      // The eighth start is by fairness.
      await world.claim();
      await world.submit({ id: "other", agent: "b" });
      for (let n = 0; n < 7; n += 1) await world.submit({ id: `u${n}`, ...CRITICAL });
      expect(await preempted(world)).toEqual(["yielding"]);
      expect(idsOf(await world.claim({ limit: 1 }))).toEqual(["u0"]);
    });
  });

  describe("a task that gave way", () => {
    test("goes ahead of all that are not critical, across agents where priority rules", async () => {
      const world = await open();
      await world.configureLane(LANE, { strategy: "priority-fifo" });
      await world.storage.nodes.setSlots({ node: NODE, slots: { [LANE]: 1 } });
      await world.submit({ id: "yielding", preemptible: true, priority: 3 });
      await world.claim();
      await world.submit({ id: "high", priority: 1, agent: "b" }, { id: "urgent", ...CRITICAL });
      expect(idsOf(await world.claim({ limit: 9 }))).toEqual(["urgent", "yielding", "high"]);
    });

    test("gives way three times at most", async () => {
      const world = await busyWorld(open, [{ id: "yielding" }]);
      for (let times = 1; times <= 5; times += 1) {
        await world.submit({ id: `urgent-${times}`, ...CRITICAL });
        const yields = times <= 3;
        expect(await preempted(world)).toHaveLength(Math.min(times, 3));
        if (!yields) break;
        await world.finish(only(await world.claim({ limit: 1 })), { to: "done", result: null });
        expect(idsOf(await world.claim({ limit: 1 }))).toEqual(["yielding"]);
      }
      expect((await world.task("yielding")).attempts.map(({ outcome }) => outcome)).toEqual([
        "preempted",
        "preempted",
        "preempted",
        null,
      ]);
    });

    test("keeps its slot of its batch", async () => {
      const world = await open();
      await world.storage.nodes.setSlots({ node: NODE, slots: { [LANE]: 1 } });
      const tasks = ["yielding", "next"].map((id) => newTask({ id, batch: "b", preemptible: true }));
      const batches = [{ id: "b", tenant: TENANT, parallelism: 1, callbackUrl: null }];
      await world.storage.tasks.insert({ tasks, batches, limits: ROOMY });
      const { task: before } = only(await world.claim({ limit: 9 }));
      await world.submit({ id: "urgent", ...CRITICAL });
      const claimed = await world.claim({ limit: 9 });
      expect(idsOf(claimed)).toEqual(["urgent", "yielding"]);
      expect(claimed[1]?.task.startedAt).toBe(before.startedAt);
    });
  });
}
