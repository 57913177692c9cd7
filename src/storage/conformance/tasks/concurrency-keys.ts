import { describe, expect, test } from "vitest";
import type { ClaimedTask, NewTask, StorageSignal } from "../../storage.ts";
import { KEYS_LOOKED_AT } from "../../storage.ts";
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

const DONE = { to: "done", result: null } as const;

/** Submits tasks that have the same key. */
function submitKeyed(world: World, ...tasks: Partial<NewTask>[]) {
  return world.submit(...tasks.map((task) => ({ concurrencyKey: "k", ...task })));
}

/** Claims from both lanes, one task at a time, and ends each before the next. Returns the order in which they ran. */
async function runAll(world: World): Promise<string[]> {
  const order: string[] = [];
  for (let left = 50; left > 0; left -= 1) {
    const [claimed] = [...(await world.claim()), ...(await world.claim({ lane: OTHER_LANE }))];
    if (claimed === undefined) return order;
    order.push(claimed.task.id);
    await world.finish(claimed, DONE);
  }
  throw new Error("There is no end of it.");
}

async function situationKey(world: World, id: string) {
  return (await world.storage.tasks.situation({ tenant: TENANT, id }))?.key;
}

/** Starts a task without a key, so that the agent runs its maximum of one. */
async function fillAgent(world: World, agent: string): Promise<ClaimedTask> {
  await world.storage.agents.configure({ tenant: TENANT, agent, maxInflight: 1 });
  await world.submit({ agent, id: `busy-${agent}` });
  return only(await world.claim());
}

async function expectRight(world: World): Promise<void> {
  expect(await world.storage.counters.recountAll()).toEqual([]);
}

export function describeConcurrencyKeys(open: OpenWorld): void {
  describe("tasks with the same concurrency key", () => {
    test("run one at a time, over nodes, lanes and agents", async () => {
      const world = await open();
      await submitKeyed(
        world,
        { id: "1" },
        { id: "2", agent: "b" },
        { id: "3", lane: OTHER_LANE, agent: "c" },
      );
      const first = await world.claim({ limit: 9 });
      expect(idsOf(first)).toEqual(["1"]);
      expect(await world.claim({ node: OTHER_NODE, limit: 9 })).toEqual([]);
      expect(await world.claim({ node: OTHER_NODE, lane: OTHER_LANE, limit: 9 })).toEqual([]);
      await world.finish(only(first), DONE);
      const second = await world.claim({ node: OTHER_NODE, limit: 9 });
      expect(idsOf(second)).toEqual(["2"]);
      expect(await world.claim({ lane: OTHER_LANE, limit: 9 })).toEqual([]);
      await world.finish(only(second), { to: "failed", error: "no" }, OTHER_NODE);
      expect(idsOf(await world.claim({ lane: OTHER_LANE, limit: 9 }))).toEqual(["3"]);
      await expectRight(world);
    });

    test("follow each other in the very step that ends the one before", async () => {
      const world = await open();
      await submitKeyed(world, { id: "1" }, { id: "2" });
      const { token, task } = only(await world.claim({ limit: 9 }));
      const { claimed } = await world.storage.tasks.finishAndClaim({
        node: NODE,
        finishes: [{ token, seq: task.seq, settlement: DONE }],
        progress: [],
        claims: [{ lane: LANE, limit: 9 }],
      });
      expect(idsOf(claimed)).toEqual(["2"]);
    });

    test("hold up neither those with another key, nor those without, nor those of another tenant", async () => {
      const world = await open();
      await submitKeyed(
        world,
        { id: "1" },
        { id: "2" },
        { id: "other", concurrencyKey: "other" },
        { id: "none", concurrencyKey: null },
        { id: "zeta", tenant: "zeta" },
      );
      const claimed = await world.claim({ limit: 9 });
      expect(idsOf(claimed).sort()).toEqual(["1", "none", "other", "zeta"]);
    });

    test("show their key", async () => {
      const world = await open();
      await submitKeyed(world, { id: "1" }, { id: "none", concurrencyKey: null });
      expect(await world.task("1")).toMatchObject({ concurrencyKey: "k" });
      expect(await world.task("none")).toMatchObject({ concurrencyKey: null });
      const [claimed] = await world.claim();
      expect(claimed?.task).toMatchObject({ id: "1", concurrencyKey: "k" });
    });

    test("come by priority, then in the order of acceptance", async () => {
      const world = await open();
      await submitKeyed(world, { id: "running" });
      const running = only(await world.claim());
      await submitKeyed(world, { id: "low", priority: 3 }, { id: "1" }, { id: "2", lane: OTHER_LANE });
      await submitKeyed(world, { id: "high", priority: 1, agent: "b" }, { id: "critical", priority: 0 });
      await world.finish(running, DONE);
      expect(await runAll(world)).toEqual(["critical", "high", "1", "2", "low"]);
    });

    test("take the key from one that is only ready when their priority is better, and not when it is the same", async () => {
      const world = await open();
      await submitKeyed(world, { id: "first", priority: 3 });
      await submitKeyed(world, { id: "second", priority: 3, lane: OTHER_LANE });
      expect(await world.claim({ lane: OTHER_LANE })).toEqual([]);
      await submitKeyed(world, { id: "better", lane: OTHER_LANE });
      expect(await world.claim()).toEqual([]);
      expect(idsOf(await world.claim({ lane: OTHER_LANE, limit: 9 }))).toEqual(["better"]);
      expect(await situationKey(world, "first")).toEqual({ name: "k", holder: "better" });
      await submitKeyed(world, { id: "best", priority: 0 });
      expect(await world.claim({ limit: 9 })).toEqual([]);
      await expectRight(world);
    });

    test("wait as queued tasks that count, and name the one they wait for", async () => {
      const world = await open();
      const answers = await submitKeyed(world, { id: "1" }, { id: "2" }, { id: "3" });
      expect(answers.map(({ state, position }) => [state, position])).toEqual([
        ["queued", 1],
        ["queued", 2],
        ["queued", 3],
      ]);
      expect(await situationKey(world, "2")).toEqual({ name: "k", holder: "1" });
      expect(await situationKey(world, "1")).toBeNull();
      await world.claim();
      expect((await world.task("2")).state).toBe("queued");
      expect(await world.storage.tasks.queueDepth({ tenant: TENANT })).toMatchObject({
        queued: 2,
        inflight: 1,
        agents: { [AGENT]: 2 },
      });
      const queued = { tenant: TENANT, agent: AGENT, states: ["queued"], limit: 9 } as const;
      expect((await world.storage.tasks.list(queued)).tasks.map(({ id }) => id)).toEqual(["3", "2"]);
      expect(await situationKey(world, "3")).toEqual({ name: "k", holder: "1" });
      expect(await world.storage.tasks.situation({ tenant: TENANT, id: "3" })).toMatchObject({
        batch: null,
        session: null,
        ahead: { ids: ["2"], count: 1 },
      });
    });

    test("wait for their key after their dependencies and their moment, not before", async () => {
      const world = await open();
      await submitKeyed(
        world,
        { id: "parent", concurrencyKey: null },
        { id: "child", dependsOn: ["parent"], priority: 1 },
        { id: "later", runAt: world.clock.now() + 10, priority: 0 },
        { id: "free" },
      );
      const claimed = await world.claim({ limit: 9 });
      expect(idsOf(claimed)).toEqual(["parent", "free"]);
      for (const each of claimed.slice(0, 1)) await world.finish(each, DONE);
      world.clock.step(10);
      await world.storage.tasks.promoteDue({ limit: 9 });
      expect(await situationKey(world, "child")).toEqual({ name: "k", holder: "free" });
      expect(await situationKey(world, "later")).toEqual({ name: "k", holder: "free" });
      await world.finish(claimed[1] as ClaimedTask, DONE);
      expect(await runAll(world)).toEqual(["later", "child"]);
    });

    test("get the key while the one before waits for its retry, and keep it until their attempt has ended", async () => {
      const world = await open();
      await submitKeyed(world, { id: "1" }, { id: "2" });
      const first = only(await world.claim({ limit: 9 }));
      await world.finish(first, { to: "delayed", error: "no", runAt: world.clock.now() + 10 });
      const second = only(await world.claim({ limit: 9 }));
      expect(second.task.id).toBe("2");
      world.clock.step(10);
      await world.storage.tasks.promoteDue({ limit: 9 });
      expect(await world.claim({ limit: 9 })).toEqual([]);
      await world.finish(second, DONE);
      expect(idsOf(await world.claim({ limit: 9 }))).toEqual(["1"]);
      await expectRight(world);
    });

    test("go by their position in the queue also when they come back: put back, or lost with their node", async () => {
      const world = await open();
      await submitKeyed(world, { id: "1" });
      const first = only(await world.claim());
      await submitKeyed(world, { id: "2" }, { id: "high", priority: 1 });
      await world.finish(first, { to: "queued", error: "shutdown" });
      const high = only(await world.claim({ node: OTHER_NODE, limit: 9 }));
      expect(high.task.id).toBe("high");
      await world.crash(OTHER_NODE);
      await world.storage.tasks.rescue({ node: OTHER_NODE, limit: 9 });
      expect(await runAll(world)).toEqual(["high", "1", "2"]);
      await expectRight(world);
    });

    test("get the key when the one before is cancelled, expires or was lost for good", async () => {
      const world = await open();
      await submitKeyed(
        world,
        { id: "running" },
        { id: "waiting" },
        { id: "overdue", priority: 1, deadline: world.clock.now() + 10 },
        { id: "lost", maxRetriesIfLost: 0 },
        { id: "last" },
      );
      const cancel = (...ids: string[]) => world.storage.tasks.cancel({ tenant: TENANT, ids, error: null });
      // The task with the better priority already holds the key.
      await cancel("waiting");
      world.clock.step(10);
      await world.storage.tasks.expire({ limit: 9 });
      expect(idsOf(await world.claim({ limit: 9 }))).toEqual(["running"]);
      await cancel("running");
      expect(idsOf(await world.claim({ node: OTHER_NODE, limit: 9 }))).toEqual(["lost"]);
      await world.crash(OTHER_NODE);
      await world.storage.tasks.rescue({ node: OTHER_NODE, limit: 9 });
      expect(idsOf(await world.claim({ limit: 9 }))).toEqual(["last"]);
      await expectRight(world);
    });

    test("keep their key when they are retried", async () => {
      const world = await open();
      await submitKeyed(world, { id: "1" });
      await world.finish(only(await world.claim()), { to: "failed", error: "no" });
      await submitKeyed(world, { id: "2" });
      const second = only(await world.claim());
      await world.storage.tasks.retry({ tenant: TENANT, id: "1" });
      expect(await world.claim({ limit: 9 })).toEqual([]);
      await world.finish(second, DONE);
      expect(idsOf(await world.claim({ limit: 9 }))).toEqual(["1"]);
    });

    test("are signalled as work when they get the key in another lane than that of the one that ended", async () => {
      const world = await open();
      await submitKeyed(world, { id: "1" }, { id: "2", lane: OTHER_LANE });
      const first = only(await world.claim());
      const signals: StorageSignal[] = [];
      world.storage.subscribe((signal) => signals.push(signal));
      await world.finish(first, DONE);
      await expect.poll(() => signals.map(({ kind }) => kind)).toContain("work");
    });
  });

  describe("a task that has its key and cannot start", () => {
    test("gives it up when its agent is at its limit", async () => {
      const world = await open();
      const busy = await fillAgent(world, "full");
      await submitKeyed(world, { id: "stuck", agent: "full", priority: 1 });
      expect(await world.claim({ limit: 9 })).toEqual([]);
      await submitKeyed(world, { id: "free", agent: "b" });
      expect(idsOf(await world.claim({ limit: 9 }))).toEqual(["free"]);
      expect(await situationKey(world, "stuck")).toEqual({ name: "k", holder: "free" });
      await world.finish(busy, DONE);
      expect(await world.claim({ limit: 9 })).toEqual([]);
      await expectRight(world);
    });

    test("gives it up also when that limit is reached later, and to the first that could start", async () => {
      const world = await open();
      await world.storage.agents.configure({ tenant: TENANT, agent: "full", maxInflight: 1 });
      await submitKeyed(world, { id: "stuck", agent: "full" });
      await submitKeyed(
        world,
        { id: "too", agent: "full" },
        { id: "elsewhere", agent: "b", lane: OTHER_LANE },
        { id: "first", agent: "c" },
        { id: "second", agent: "c" },
      );
      await world.submit({ id: "busy", agent: "full", priority: 1 });
      expect(idsOf(await world.claim())).toEqual(["busy"]);
      expect(idsOf(await world.claim({ limit: 9 }))).toEqual(["first"]);
      await expectRight(world);
    });

    test("gives it up also when it got it with the very end of the one before, ahead of those that waited", async () => {
      const world = await open();
      await fillAgent(world, "full");
      await submitKeyed(world, { id: "first", agent: "b" }, { id: "waits", agent: "b" });
      await submitKeyed(world, { id: "stuck", agent: "full", priority: 0, dependsOn: ["first"] });
      await world.finish(only(await world.claim({ limit: 9 })), DONE);
      expect(await situationKey(world, "waits")).toEqual({ name: "k", holder: "stuck" });
      await expectRight(world);
      expect(idsOf(await world.claim({ limit: 9 }))).toEqual(["waits"]);
      await expectRight(world);
    });

    test("gives it up when its lane is at its total, or has no free slot on any node", async () => {
      const world = await open();
      await world.configureLane(LANE, { total: 1 });
      await world.submit({ id: "busy" });
      const busy = only(await world.claim());
      await submitKeyed(world, { id: "stuck", agent: "b" }, { id: "free", agent: "c", lane: OTHER_LANE });
      const free = only(await world.claim({ lane: OTHER_LANE, limit: 9 }));
      expect(free.task.id).toBe("free");
      await world.finish(free, DONE);

      await world.configureLane(LANE, {});
      for (const node of [NODE, OTHER_NODE]) {
        await world.storage.nodes.setSlots({
          node,
          slots: { [LANE]: node === NODE ? 1 : 0, [OTHER_LANE]: 1 },
        });
      }
      await submitKeyed(world, { id: "next", agent: "c", lane: OTHER_LANE });
      const next = only(await world.claim({ lane: OTHER_LANE, limit: 9 }));
      expect(next.task.id).toBe("next");
      await world.finish(next, DONE);
      await world.finish(busy, DONE);
      await submitKeyed(world, { id: "last", agent: "c", lane: OTHER_LANE });
      expect(await world.claim({ lane: OTHER_LANE, limit: 9 })).toEqual([]);
      expect(idsOf(await world.claim({ limit: 9 }))).toEqual(["stuck"]);
      await expectRight(world);
    });

    test("gives it up where every slot is always taken, as often as something ends", async () => {
      const world = await open();
      await fillAgent(world, "full");
      await submitKeyed(world, { id: "stuck", agent: "full" }, { id: "free", agent: "b", priority: 3 });
      await world.submit({ id: "1", agent: "c" }, { id: "2", agent: "c" }, { id: "3", agent: "c" });
      const { token, task } = only(await world.claim());
      const { claimed } = await world.storage.tasks.finishAndClaim({
        node: NODE,
        finishes: [{ token, seq: task.seq, settlement: DONE }],
        progress: [],
        claims: [{ lane: LANE, limit: 1 }],
      });
      expect(idsOf(claimed)).toEqual(["free"]);
    });

    test("keeps it when no other task could start either", async () => {
      const world = await open();
      await world.storage.tenants.create({
        id: TENANT,
        name: TENANT,
        limits: {
          maxQueued: null,
          maxInflight: null,
          maxSchedules: null,
          maxSessions: null,
          maxStreams: null,
          maxAgents: null,
          maxStoredBytes: null,
        },
      });
      await submitKeyed(world, { id: "1", agent: "b" }, { id: "2", agent: "c" });
      await world.storage.tenants.setDisabled({ id: TENANT, disabled: true });
      expect(await world.claim({ limit: 9 })).toEqual([]);
      expect(await situationKey(world, "2")).toEqual({ name: "k", holder: "1" });
      await world.storage.tenants.setDisabled({ id: TENANT, disabled: false });
      expect(idsOf(await world.claim({ limit: 9 }))).toEqual(["1"]);
    });

    test("gives it up however many others there are: all have their turn", async () => {
      const world = await open();
      await fillAgent(world, "full");
      const keys = Array.from({ length: KEYS_LOOKED_AT.keys + 20 }, (_, n) => `k${n}`);
      // None of these can start.
      await world.submit(...keys.map((key) => ({ agent: "full", concurrencyKey: key })));
      await world.submit(...keys.map((key) => ({ agent: "full", lane: OTHER_LANE, concurrencyKey: key })));
      await world.submit(
        { agent: "full", concurrencyKey: "z" },
        { id: "free", agent: "b", concurrencyKey: "z" },
      );
      const claimed: ClaimedTask[] = [];
      for (let n = 0; n < 3; n += 1) {
        claimed.push(...(await world.claim({ limit: 9 })));
        world.clock.step(1);
      }
      expect(idsOf(claimed)).toEqual(["free"]);
      await expectRight(world);
    });

    test("gives it up also where hundreds wait before the one that could start", async () => {
      const world = await open();
      await fillAgent(world, "full");
      await world.submit(...Array.from({ length: 300 }, () => ({ agent: "full", concurrencyKey: "z" })));
      await world.submit({ id: "free", agent: "b", concurrencyKey: "z" });
      expect(idsOf(await world.claim({ limit: 9 }))).toEqual(["free"]);
    });

    test("is signalled as work, so that another lane is claimed from again", async () => {
      const world = await open();
      await world.storage.agents.configure({ tenant: TENANT, agent: "full", maxInflight: 1 });
      await submitKeyed(world, { id: "stuck", agent: "full" }, { id: "free", agent: "b", lane: OTHER_LANE });
      await world.submit({ id: "busy", agent: "full", priority: 1 });
      expect(await world.claim({ lane: OTHER_LANE })).toEqual([]);
      const signals: StorageSignal[] = [];
      world.storage.subscribe((signal) => signals.push(signal));
      expect(idsOf(await world.claim())).toEqual(["busy"]);
      await expect.poll(() => signals.map(({ kind }) => kind)).toContain("work");
      expect(idsOf(await world.claim({ lane: OTHER_LANE }))).toEqual(["free"]);
    });
  });

  describe("a concurrency key and pre-emption", () => {
    test("a task that had to give way goes to the front of its key, and one that waits for its key takes no slot", async () => {
      const world = await open();
      await world.storage.nodes.setSlots({ node: NODE, slots: { [LANE]: 1 } });
      await submitKeyed(world, { id: "victim", priority: 3, preemptible: true });
      await world.claim();
      await submitKeyed(world, { id: "high", priority: 1 }, { id: "held", priority: 0 });
      // The critical task has the same key, so pre-emption would not help it.
      expect((await world.task("victim")).state).toBe("running");
      await world.storage.tasks.cancel({ tenant: TENANT, ids: ["held"], error: null });
      await world.submit({ id: "urgent", priority: 0, agent: "b" });
      expect((await world.task("victim")).state).toBe("queued");
      expect(await situationKey(world, "high")).toEqual({ name: "k", holder: "victim" });
      expect(await runAll(world)).toEqual(["urgent", "victim", "high"]);
      await expectRight(world);
    });

    test("a critical task that gets the key with the end of another takes the slot of a third", async () => {
      const world = await open();
      await world.storage.nodes.setSlots({ node: NODE, slots: { [LANE]: 1, [OTHER_LANE]: 1 } });
      await submitKeyed(world, { id: "holder", lane: OTHER_LANE });
      const holder = only(await world.claim({ lane: OTHER_LANE }));
      await world.submit({ id: "third", priority: 3, preemptible: true, agent: "b" });
      await world.claim();
      await submitKeyed(world, { id: "critical", priority: 0 });
      expect((await world.task("third")).state).toBe("running");
      await world.finish(holder, DONE);
      expect((await world.task("third")).state).toBe("queued");
      expect(idsOf(await world.claim({ limit: 9 }))).toEqual(["critical", "third"]);
    });
  });

  describe("a concurrency key and a batch", () => {
    const batch = { id: "batch", tenant: TENANT, parallelism: 1, callbackUrl: null };
    const submitBatch = (world: World, parallelism: number, ...tasks: Partial<NewTask>[]) =>
      world.storage.tasks.insert({
        tasks: tasks.map((task) => newTask({ ...task, batch: batch.id })),
        batches: [{ ...batch, parallelism }],
        limits: ROOMY,
      });

    test("a task that waits for its key holds no slot of its batch", async () => {
      const world = await open();
      await submitKeyed(world, { id: "outside" });
      const outside = only(await world.claim());
      await submitBatch(world, 1, { id: "1", concurrencyKey: "k" }, { id: "2" }, { id: "3" });
      expect(await situationKey(world, "1")).toEqual({ name: "k", holder: "outside" });
      const second = only(await world.claim({ limit: 9 }));
      expect(second.task.id).toBe("2");
      // The key is free, but the batch is full: the task waits for the batch and does not take the key.
      await world.finish(outside, DONE);
      expect(await world.storage.tasks.situation({ tenant: TENANT, id: "1" })).toMatchObject({
        key: null,
        batch: { parallelism: 1, active: ["2"] },
      });
      await submitKeyed(world, { id: "quick" });
      await world.finish(only(await world.claim({ limit: 9 })), DONE);
      await world.finish(second, DONE);
      expect(idsOf(await world.claim({ limit: 9 }))).toEqual(["1"]);
      await expectRight(world);
    });

    test("a batch whose tasks all have one key goes one by one, and others of it go meanwhile", async () => {
      const world = await open();
      const keyed = ["1", "2", "3"].map((id) => ({ id, concurrencyKey: "k" }));
      await submitBatch(world, 2, ...keyed, { id: "4" }, { id: "5" });
      const claimed = await world.claim({ limit: 9 });
      expect(idsOf(claimed)).toEqual(["1", "4"]);
      await world.finish(claimed[0] as ClaimedTask, DONE);
      expect(idsOf(await world.claim({ limit: 9 }))).toEqual(["2"]);
      await expectRight(world);
    });

    test("one that loses its key to a better one gives its slot of the batch to the next", async () => {
      const world = await open();
      await submitBatch(world, 1, { id: "1", concurrencyKey: "k" }, { id: "2", lane: OTHER_LANE });
      expect(await world.claim({ lane: OTHER_LANE })).toEqual([]);
      await submitKeyed(world, { id: "better", priority: 1 });
      expect(idsOf(await world.claim({ lane: OTHER_LANE }))).toEqual(["2"]);
      expect(idsOf(await world.claim({ limit: 9 }))).toEqual(["better"]);
      await expectRight(world);
    });

    test("one that comes back and does not get its key gives its slot of the batch to the next", async () => {
      const world = await open();
      await submitBatch(world, 1, { id: "1", concurrencyKey: "k" }, { id: "2" });
      const first = only(await world.claim({ limit: 9 }));
      await submitKeyed(world, { id: "better", priority: 1 });
      await world.finish(first, { to: "queued", error: "shutdown" });
      expect(idsOf(await world.claim({ limit: 9 })).sort()).toEqual(["2", "better"]);
      await expectRight(world);
    });
  });

  describe("a concurrency key and a session", () => {
    const session = { key: "s", maxConcurrent: 1 };

    test("a task that waits for its key keeps its position in its session", async () => {
      const world = await open();
      await submitKeyed(world, { id: "outside" });
      const outside = only(await world.claim());
      await submitKeyed(world, { id: "1", session }, { id: "2", session, concurrencyKey: null, priority: 1 });
      expect(await world.claim({ limit: 9 })).toEqual([]);
      expect(await situationKey(world, "1")).toEqual({ name: "k", holder: "outside" });
      expect(await world.storage.tasks.situation({ tenant: TENANT, id: "2" })).toMatchObject({
        session: { active: ["1"] },
      });
      await world.finish(outside, DONE);
      expect(await runAll(world)).toEqual(["1", "2"]);
      await expectRight(world);
    });

    test("a session whose tasks all have one key keeps their order, whatever their priorities", async () => {
      const world = await open();
      const two = { ...session, maxConcurrent: 2 };
      await submitKeyed(
        world,
        { id: "1", session: two, priority: 3 },
        { id: "2", session: two },
        { id: "3", session: two, priority: 1 },
      );
      expect(await runAll(world)).toEqual(["1", "2", "3"]);
    });

    test("one that steps back lets go of its key", async () => {
      const world = await open();
      await submitKeyed(world, { id: "outside", priority: 3 });
      const outside = only(await world.claim());
      const two = { ...session, maxConcurrent: 2 };
      await world.submit({ id: "1", session: two }, { id: "2", session: two, concurrencyKey: "k" });
      const changes = { maxConcurrent: 1 };
      await world.finish(outside, DONE);
      await submitKeyed(world, { id: "3", priority: 3 });
      expect(await situationKey(world, "3")).toEqual({ name: "k", holder: "2" });
      await world.storage.sessions.update({ tenant: TENANT, key: "s", defaultMax: 1, changes });
      const claimed = await world.claim({ limit: 9 });
      expect(idsOf(claimed).sort()).toEqual(["1", "3"]);
      for (const each of claimed) await world.finish(each, DONE);
      expect(idsOf(await world.claim({ limit: 9 }))).toEqual(["2"]);
      await expectRight(world);
    });

    test("stopping a session ends those that wait for their key, and frees the key of those that have it", async () => {
      const world = await open();
      await submitKeyed(world, { id: "1", session }, { id: "2", session }, { id: "outside" });
      await world.claim();
      const stopped = await world.storage.sessions.stop({ tenant: TENANT, key: "s", scope: "all", limit: 9 });
      expect(stopped.stopped.map(({ id }) => id)).toEqual(["1"]);
      expect(idsOf(await world.claim({ limit: 9 }))).toEqual(["outside"]);
      await expectRight(world);
    });
  });
}
