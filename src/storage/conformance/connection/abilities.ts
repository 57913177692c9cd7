import { describe, expect, test } from "vitest";
import type { TaskKind, TaskWork } from "../../../model/task.ts";
import { ALONE_AFTER_LOSSES } from "../../alone-queue.ts";
import { noExecutorError } from "../../no-executor-error.ts";
import { type Abilities, AGENT_MEMORY_MS, type NewTask } from "../../storage.ts";
import { idsOf, LANE, NODE, newTask, type OpenWorld, OTHER_NODE, TENANT, type World } from "../world.ts";

/** What a node can execute: these agents with executors of their own, and these kinds for all other agents. */
function able(agents: readonly string[], kinds: readonly TaskKind[] = []): Abilities {
  return { agents: new Map(agents.map((agent) => [agent, true])), kinds };
}

function work(kind: TaskKind): TaskWork {
  switch (kind) {
    case "action":
      return { kind, action: "click" };
    case "instruction":
      return { kind, instruction: "look" };
    case "message":
      return { kind, message: "hello" };
    case "custom":
      return { kind, payload: 1 };
  }
}

function ofKind(kind: TaskKind, more: Partial<NewTask>): Partial<NewTask> {
  return { ...more, spec: { ...newTask({}).spec, work: work(kind) } };
}

/** Both nodes get the same abilities: a storage for one process knows no other case. */
async function allAble(world: World, abilities: Abilities): Promise<void> {
  for (const node of [NODE, OTHER_NODE]) await world.storage.nodes.setAbilities({ node, abilities });
}

/** `nodesDiffer`: whether live nodes may differ in what they can execute. */
export function describeAbilities(open: OpenWorld, { nodesDiffer }: { nodesDiffer: boolean }): void {
  describe("abilities of nodes", () => {
    test("tasks of an agent that no live node serves wait and hold up no other task", async () => {
      const world = await open();
      await allAble(world, able(["writer"]));
      await allAble(world, able(["reader"]));
      await world.submit({ id: "w", agent: "writer" }, { id: "r", agent: "reader" });
      expect(idsOf(await world.claim({ limit: 5 }))).toEqual(["r"]);
      expect(await world.task("w")).toMatchObject({ state: "queued", attempts: [] });
      await allAble(world, able(["writer", "reader"]));
      expect(idsOf(await world.claim({ limit: 5 }))).toEqual(["w"]);
    });

    test("a kind that no live node can execute does not block the kinds behind it", async () => {
      const world = await open();
      await allAble(world, able([], ["instruction"]));
      const [first] = await world.submit(
        ofKind("custom", { id: "p" }),
        ofKind("instruction", { id: "i" }),
        ofKind("custom", { id: "q", priority: 0 }),
      );
      expect(first).toMatchObject({ state: "queued", unserved: true });
      expect(idsOf(await world.claim({ limit: 5 }))).toEqual(["i"]);
      await allAble(world, able([], ["instruction", "custom"]));
      expect(idsOf(await world.claim({ limit: 5 }))).toEqual(["q", "p"]);
    });

    test("kinds that every node can execute keep their order by priority within the agent", async () => {
      const world = await open();
      await allAble(world, able([], ["instruction", "custom"]));
      await world.submit(
        ofKind("custom", { id: "low", priority: 3 }),
        ofKind("instruction", { id: "high", priority: 1 }),
        ofKind("custom", { id: "normal", priority: 2 }),
      );
      expect(idsOf(await world.claim({ limit: 5 }))).toEqual(["high", "normal", "low"]);
    });

    test("a kind that no node can execute any more leaves those behind it free to start", async () => {
      const world = await open();
      await allAble(world, able([], ["instruction", "custom"]));
      await world.submit(ofKind("custom", { id: "p" }), ofKind("instruction", { id: "i" }));
      await allAble(world, able([], ["instruction"]));
      expect(idsOf(await world.claim({ limit: 5 }))).toEqual(["i"]);
      expect(await world.storage.counters.recountAll()).toEqual([]);
    });

    test("an agent with an executor of its own is not run by the executor of a kind", async () => {
      const world = await open();
      await allAble(world, able(["writer"], ["instruction"]));
      await allAble(world, able([], ["instruction"]));
      await world.submit(
        ofKind("instruction", { id: "w", agent: "writer" }),
        ofKind("instruction", { id: "x" }),
      );
      expect(idsOf(await world.claim({ limit: 5 }))).toEqual(["x"]);
    });

    test("an agent that its node still names, but without an executor, is run by that of the kind", async () => {
      const world = await open();
      await allAble(world, able(["writer"], ["instruction"]));
      await world.submit(
        ofKind("custom", { id: "p", agent: "writer" }),
        ofKind("instruction", { id: "i", agent: "writer" }),
      );
      await allAble(world, { agents: new Map([["writer", false]]), kinds: ["instruction"] });
      expect(idsOf(await world.claim({ limit: 5 }))).toEqual(["i"]);
      expect(await world.storage.tasks.failUnserved({ afterMs: 0, limit: 5 })).toMatchObject({
        failed: [{ agent: "writer" }],
      });
      expect(await world.storage.counters.recountAll()).toEqual([]);
    });

    test("a stored agent with an executor can be run by every node", async () => {
      const world = await open();
      await allAble(world, able([]));
      await world.submit({ id: "a", agent: "stored" });
      expect(await world.claim({ limit: 5 })).toEqual([]);
      const record = { tenant: TENANT, agent: "stored", maxInflight: null };
      // What databases cannot read in JSON.
      const request = { nul: "\u0000", halves: "\ud83d!\udc69" };
      await world.storage.agents.create({ ...record, definition: { executor: { type: "openai", request } } });
      const [claimed] = await world.claim({ limit: 5 });
      expect(claimed?.task.id).toBe("a");
      await world.submit({ id: "b", agent: "stored" });
      await world.storage.agents.update({ ...record, definition: {} });
      expect(await world.claim({ limit: 5 })).toEqual([]);
    });

    test("a stored agent that is sealed can be run by nodes that have its key or an executor of their own", async () => {
      const world = await open();
      const name = { tenant: TENANT, agent: "stored", maxInflight: null };
      const executor = { type: "echo" };
      await allAble(world, { ...able([]), keys: ["k1"] });
      await world.storage.agents.create({ ...name, definition: { executor, sealedWith: "k2" } });
      await world.submit({ id: "a", agent: "stored" });
      expect(await world.claim({ limit: 5 })).toEqual([]);
      expect(await world.storage.tasks.failUnserved({ afterMs: 0, limit: 5 })).toMatchObject({ failed: [] });
      await allAble(world, { ...able([]), keys: ["k1", "k2"] });
      expect(idsOf(await world.claim({ limit: 5 }))).toEqual(["a"]);
      await allAble(world, able([]));
      await world.submit({ id: "b", agent: "stored" });
      expect(await world.claim({ limit: 5 })).toEqual([]);
      await allAble(world, able(["stored"]));
      expect(idsOf(await world.claim({ limit: 5 }))).toEqual(["b"]);
      await allAble(world, able([]));
      await world.submit({ id: "c", agent: "stored" });
      expect(await world.claim({ limit: 5 })).toEqual([]);
      await world.storage.agents.update({ ...name, definition: { executor } });
      expect(idsOf(await world.claim({ limit: 5 }))).toEqual(["c"]);
      expect(await world.storage.counters.recountAll()).toEqual([]);
    });

    test.runIf(nodesDiffer)("a sealed agent is run by that one of two nodes which has its key", async () => {
      const world = await open();
      await world.storage.nodes.setAbilities({ node: NODE, abilities: able([]) });
      await world.storage.nodes.setAbilities({ node: OTHER_NODE, abilities: { ...able([]), keys: ["k"] } });
      const definition = { executor: { type: "echo" }, sealedWith: "k" };
      await world.storage.agents.create({ tenant: TENANT, agent: "stored", maxInflight: null, definition });
      await world.submit({ id: "a", agent: "stored" });
      expect(await world.claim({ node: NODE, limit: 5 })).toEqual([]);
      expect(idsOf(await world.claim({ node: OTHER_NODE, limit: 5 }))).toEqual(["a"]);
    });

    test("the agent that always exists can be run by every node, unless one serves it", async () => {
      const world = await open();
      await allAble(world, able([]));
      await world.submit(ofKind("custom", { id: "a", agent: "index" }));
      expect(idsOf(await world.claim())).toEqual(["a"]);
      await allAble(world, able(["index"]));
      await allAble(world, able([]));
      await world.submit(ofKind("custom", { id: "b", agent: "index" }));
      expect(await world.claim()).toEqual([]);
    });

    test("limits of an agent span its kinds", async () => {
      const world = await open();
      await world.configureLane(LANE, { perAgent: 2 });
      await allAble(world, able([], ["instruction"]));
      await world.submit(
        ...[1, 2, 3].map((n) => ofKind("custom", { id: `p${n}` })),
        ...[1, 2, 3].map((n) => ofKind("instruction", { id: `i${n}` })),
      );
      expect(await world.claim({ limit: 1 })).toHaveLength(1);
      await allAble(world, able([], ["instruction", "custom"]));
      expect(await world.claim({ limit: 9 })).toHaveLength(1);
      expect(await world.claim({ limit: 9 })).toHaveLength(0);
      expect(await world.storage.counters.recountAll()).toEqual([]);
    });

    test("a critical task that no node can execute takes no slot of another", async () => {
      const world = await open();
      await world.storage.nodes.setSlots({ node: NODE, slots: { [LANE]: 1 } });
      await world.storage.nodes.setSlots({ node: OTHER_NODE, slots: {} });
      await allAble(world, able(["a"]));
      await world.submit({ id: "yields", agent: "a", preemptible: true });
      await world.claim();
      await world.submit(ofKind("custom", { id: "critical", agent: "unheard-of", priority: 0 }));
      expect(await world.task("yields")).toMatchObject({ state: "running" });
      await allAble(world, able(["a"], ["custom"]));
      expect(await world.task("yields")).toMatchObject({ state: "queued" });
      expect(idsOf(await world.claim())).toEqual(["critical"]);
    });

    test("fails what no node has been able to execute for long, and only of agents that are not served", async () => {
      const world = await open();
      await allAble(world, able(["served"]));
      await allAble(world, able([]));
      await world.submit(
        ofKind("custom", { id: "lost", agent: "reserch" }),
        { id: "waits", agent: "served" },
        ofKind("custom", { id: "later", agent: "reserch", runAt: world.clock.now() + 50_000 }),
      );
      expect(await world.storage.tasks.failUnserved({ afterMs: 60_000, limit: 10 })).toEqual({
        failed: [],
        nextAt: world.clock.now() + 60_000,
      });
      world.clock.step(59_999);
      expect(await world.storage.tasks.failUnserved({ afterMs: 60_000, limit: 10 })).toMatchObject({
        failed: [],
      });
      world.clock.step(1);
      const failed = await world.storage.tasks.failUnserved({ afterMs: 60_000, limit: 10 });
      expect(failed).toEqual({ failed: [{ tenant: TENANT, agent: "reserch", lane: LANE }], nextAt: null });
      expect(await world.task("lost")).toMatchObject({
        state: "failed",
        error: noExecutorError("reserch", "custom"),
        attempts: [],
      });
      expect(await world.task("waits")).toMatchObject({ state: "queued" });
      expect(await world.task("later")).toMatchObject({ state: "delayed" });
    });

    test("counts the time anew when an executor was there in between, and after a retry", async () => {
      const world = await open();
      const { tasks } = world.storage;
      await world.configureLane(LANE, { total: 1 });
      await allAble(world, able(["busy"]));
      await world.submit({ agent: "busy" }, ofKind("custom", { id: "a", agent: "x" }));
      await world.claim();
      await tasks.failUnserved({ afterMs: 100, limit: 10 });
      world.clock.step(99);
      await allAble(world, able(["busy"], ["custom"]));
      await allAble(world, able(["busy"]));
      world.clock.step(1);
      expect(await tasks.failUnserved({ afterMs: 100, limit: 10 })).toMatchObject({ failed: [] });
      world.clock.step(100);
      expect(await tasks.failUnserved({ afterMs: 100, limit: 10 })).toMatchObject({
        failed: [{ agent: "x" }],
      });
      expect(await tasks.retry({ tenant: TENANT, id: "a" })).toMatchObject({ task: { unserved: true } });
      expect(await tasks.failUnserved({ afterMs: 100, limit: 10 })).toMatchObject({ failed: [] });
    });

    test("fails in slices and says that there is more", async () => {
      const world = await open();
      await allAble(world, able([]));
      await world.submit(...[1, 2, 3].map((n) => ofKind("custom", { id: `t${n}` })));
      const first = await world.storage.tasks.failUnserved({ afterMs: 0, limit: 2 });
      expect(first).toMatchObject({ failed: [{}, {}], nextAt: world.clock.now() });
      const second = await world.storage.tasks.failUnserved({ afterMs: 0, limit: 2 });
      expect(second).toMatchObject({ failed: [{}], nextAt: null });
    });

    test("says of a task that no live node can execute it, and when one was last seen", async () => {
      const world = await open();
      await allAble(world, able(["writer"]));
      world.clock.step(1_000);
      await allAble(world, able([]));
      const gone = world.clock.now();
      await world.submit({ id: "w", agent: "writer" }, ofKind("custom", { id: "x", agent: "unheard-of" }));
      const situation = async (id: string) =>
        (await world.storage.tasks.situation({ tenant: TENANT, id }))?.noExecutor;
      expect(await situation("w")).toEqual({ served: true, byWorkers: false, lastSeenAt: gone, since: null });
      expect(await situation("x")).toEqual({
        served: false,
        byWorkers: false,
        lastSeenAt: null,
        since: null,
      });
      await world.storage.tasks.failUnserved({ afterMs: 60_000, limit: 10 });
      expect(await situation("x")).toEqual({
        served: false,
        byWorkers: false,
        lastSeenAt: null,
        since: world.clock.now(),
      });
      await allAble(world, able(["writer"], ["custom"]));
      expect(await situation("w")).toBeNull();
    });

    test("knows an agent that a node names or named, or that is stored, and forgets it after seven days", async () => {
      const world = await open();
      const { agents } = world.storage;
      await allAble(world, {
        agents: new Map([
          ["named", false],
          ["served", true],
        ]),
        kinds: [],
      });
      await agents.create({ tenant: TENANT, agent: "stored", maxInflight: null, definition: {} });
      const isKnown = (agent: string) => agents.isKnown({ tenant: TENANT, agent });
      expect(await Promise.all(["named", "served", "stored", "unknown"].map(isKnown))).toEqual([
        true,
        true,
        true,
        false,
      ]);
      expect(await agents.isKnown({ tenant: "other", agent: "stored" })).toBe(false);
      expect(await agents.knownNames({ tenant: TENANT, limit: 10 })).toEqual(["named", "served", "stored"]);
      expect(await agents.knownNames({ tenant: TENANT, limit: 1 })).toEqual(["named"]);
      await allAble(world, able([]));
      await world.submit(ofKind("custom", { id: "s", agent: "served" }));
      world.clock.step(AGENT_MEMORY_MS - 1);
      await agents.forget();
      expect(await Promise.all(["named", "served"].map(isKnown))).toEqual([true, true]);
      expect(await world.storage.tasks.failUnserved({ afterMs: 0, limit: 10 })).toMatchObject({ failed: [] });
      world.clock.step(1);
      await agents.forget();
      expect(await Promise.all(["named", "served"].map(isKnown))).toEqual([false, false]);
      expect(await world.storage.tasks.failUnserved({ afterMs: 0, limit: 10 })).toMatchObject({
        failed: [{ agent: "served" }],
      });
    });

    test("forgets the agents of a dead node after seven days, also while it is not removed", async () => {
      const world = await open();
      const { agents, nodes } = world.storage;
      await nodes.setAbilities({ node: NODE, abilities: able(["here"]) });
      await nodes.setAbilities({ node: OTHER_NODE, abilities: able(["here", "there"]) });
      await world.crash(OTHER_NODE);
      world.clock.step(AGENT_MEMORY_MS);
      await agents.forget();
      const isKnown = (agent: string) => agents.isKnown({ tenant: TENANT, agent });
      expect(await Promise.all(["here", "there"].map(isKnown))).toEqual([true, false]);
      expect(await agents.knownNames({ tenant: TENANT, limit: 10 })).toEqual(["here"]);
    });

    test.runIf(nodesDiffer)("a task that runs alone waits only for a node that can execute it", async () => {
      const world = await open();
      const { nodes, tasks } = world.storage;
      await world.submit({ id: "t", agent: "writer", maxRetriesIfLost: 100 });
      for (let loss = 1; loss <= ALONE_AFTER_LOSSES; loss += 1) {
        await world.claim({ limit: 1 });
        await world.crash(NODE);
        await tasks.rescue({ node: NODE, limit: 1, maxLost: 5 });
        await nodes.remove({ node: NODE });
        await nodes.register({ node: NODE });
      }
      await nodes.setAbilities({ node: NODE, abilities: able(["reader"]) });
      await nodes.setAbilities({ node: OTHER_NODE, abilities: able(["writer"]) });
      const lanes = [LANE];
      expect(await tasks.isAloneWaiting({ node: NODE, lanes })).toBe(false);
      expect((await tasks.claimAlone({ node: NODE, lanes })).claimed).toEqual([]);
      expect(await tasks.isAloneWaiting({ node: OTHER_NODE, lanes })).toBe(true);
      expect(idsOf([...(await tasks.claimAlone({ node: OTHER_NODE, lanes })).claimed])).toEqual(["t"]);
    });

    test.runIf(nodesDiffer)(
      "each node is handed what it can execute, in order and within limits",
      async () => {
        const world = await open();
        const { nodes } = world.storage;
        await world.configureLane(LANE, { total: 4, perAgent: 2 });
        await nodes.setAbilities({ node: NODE, abilities: able(["writer", "both"]) });
        await nodes.setAbilities({ node: OTHER_NODE, abilities: able(["researcher", "both"]) });
        await world.submit(
          ...[1, 2, 3].flatMap((n) => [
            { id: `w${n}`, agent: "writer" },
            { id: `r${n}`, agent: "researcher" },
            { id: `b${n}`, agent: "both" },
          ]),
        );
        expect(idsOf(await world.claim({ limit: 2 }))).toEqual(["w1", "b1"]);
        expect(idsOf(await world.claim({ node: OTHER_NODE, limit: 9 }))).toEqual(["r1", "b2"]);
        expect(await world.claim({ limit: 9 })).toEqual([]);
        await world.configureLane(LANE, { total: null, perAgent: 2 });
        expect(idsOf(await world.claim({ limit: 9 }))).toEqual(["w2"]);
        expect(idsOf(await world.claim({ node: OTHER_NODE, limit: 9 }))).toEqual(["r2"]);
        expect(await world.storage.counters.recountAll()).toEqual([]);
      },
    );

    test.runIf(nodesDiffer)("kinds that only another node can execute hold up nothing", async () => {
      const world = await open();
      const { nodes } = world.storage;
      await nodes.setAbilities({ node: NODE, abilities: able([], ["instruction"]) });
      await nodes.setAbilities({ node: OTHER_NODE, abilities: able([], ["custom"]) });
      await world.submit(
        ofKind("custom", { id: "p1", priority: 0 }),
        ofKind("instruction", { id: "i1" }),
        ofKind("custom", { id: "p2" }),
        ofKind("instruction", { id: "i2" }),
      );
      expect(idsOf(await world.claim({ limit: 9 }))).toEqual(["i1", "i2"]);
      expect(idsOf(await world.claim({ node: OTHER_NODE, limit: 9 }))).toEqual(["p1", "p2"]);
    });

    test.runIf(nodesDiffer)(
      "the death of the only node that can execute an agent leaves its tasks waiting",
      async () => {
        const world = await open();
        const { nodes } = world.storage;
        await nodes.setAbilities({ node: NODE, abilities: able(["a"]) });
        await nodes.setAbilities({ node: OTHER_NODE, abilities: able(["b"]) });
        await world.submit({ id: "b1", agent: "b" }, { id: "a1", agent: "a" });
        await world.crash(OTHER_NODE);
        expect(idsOf(await world.claim({ limit: 9 }))).toEqual(["a1"]);
        expect(await world.storage.tasks.situation({ tenant: TENANT, id: "b1" })).toMatchObject({
          noExecutor: { served: true },
        });
        await nodes.register({ node: "east", abilities: able(["b"]) });
        expect(idsOf(await world.claim({ node: "east", limit: 9 }))).toEqual(["b1"]);
      },
    );

    test.runIf(nodesDiffer)(
      "a critical task takes the slot of a node that can execute it, and of no other",
      async () => {
        const world = await open();
        const { nodes } = world.storage;
        for (const node of [NODE, OTHER_NODE]) await nodes.setSlots({ node, slots: { [LANE]: 1 } });
        await nodes.setAbilities({ node: NODE, abilities: able(["a", "both"]) });
        await nodes.setAbilities({ node: OTHER_NODE, abilities: able(["b", "both"]) });
        await world.submit({ id: "here", agent: "both", preemptible: true });
        await world.claim();
        await world.submit({ id: "for-b", agent: "b", priority: 0 });
        expect(await world.task("here")).toMatchObject({ state: "running" });
        await world.submit({ id: "for-a", agent: "a", priority: 0 });
        expect(await world.task("here")).toMatchObject({ state: "queued" });
        expect(idsOf(await world.claim())).toEqual(["for-a"]);
        expect(idsOf(await world.claim({ node: OTHER_NODE }))).toEqual(["for-b"]);
      },
    );
  });
}
