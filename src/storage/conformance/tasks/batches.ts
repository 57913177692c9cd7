import { describe, expect, test } from "vitest";
import type { ClaimedTask, NewBatch, NewTask } from "../../storage.ts";
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
  ROOMY_SHARES,
  TENANT,
  type World,
} from "../world.ts";

const BATCH: NewBatch = { id: "batch", tenant: TENANT, parallelism: null, callbackUrl: null };

/** Submits tasks as one batch. */
function submitBatch(
  world: World,
  batch: Partial<NewBatch>,
  tasks: readonly Partial<NewTask>[],
  limits = ROOMY,
) {
  const whole = { ...BATCH, ...batch };
  return world.storage.tasks.insert({
    tasks: tasks.map((task) => newTask({ ...task, batch: whole.id })),
    batches: [whole],
    limits,
  });
}

async function completions(world: World) {
  const events = await world.events();
  return events.flatMap(({ type, batch, taskId, data }) =>
    type === "batch.completed" ? [{ batch, taskId, counts: data?.counts }] : [],
  );
}

function getBatch(world: World, id = BATCH.id) {
  return world.storage.tasks.getBatch({ tenant: TENANT, id });
}

export function describeBatches(open: OpenWorld): void {
  describe("a batch", () => {
    test("lists its tasks, oldest first, without what they were given or resulted in", async () => {
      const world = await open();
      const spec = { ...newTask().spec, key: "first" };
      await submitBatch(world, {}, [
        { id: "a", spec },
        { id: "b", dependsOn: ["a"], spec: { ...newTask().spec, dependsOn: ["a"] } },
        { id: "c", agent: "other" },
      ]);
      await world.submit({ id: "elsewhere" });
      const [a] = await world.claim({ limit: 1 });
      if (a === undefined) throw new Error("It can start.");
      const list = (params = {}) =>
        world.storage.tasks.batchTasks({ tenant: TENANT, batch: BATCH.id, limit: 10, ...params });
      const first = { id: "a", agent: AGENT, state: "running", error: null, key: "first", dependsOn: [] };
      const second = { id: "b", agent: AGENT, state: "waiting_dependency", error: null, key: null };
      expect(await list()).toEqual([
        first,
        { ...second, dependsOn: ["a"] },
        { id: "c", agent: "other", state: "queued", error: null, key: null, dependsOn: [] },
      ]);
      await world.finish(a, { to: "failed", error: "no" });
      expect(await list({ limit: 1 })).toEqual([{ ...first, state: "failed", error: "no" }]);
      expect([await list({ tenant: "zeta" }), await list({ batch: "unknown" })]).toEqual([[], []]);
    });

    test("is there with its bound, for its tenant alone", async () => {
      const world = await open();
      await submitBatch(world, { parallelism: 3 }, [{}]);
      const createdAt = world.clock.now();
      expect(await getBatch(world)).toEqual({ id: "batch", parallelism: 3, createdAt, completedAt: null });
      expect(await getBatch(world, "other")).toBeNull();
      expect(await world.storage.tasks.getBatch({ tenant: "zeta", id: "batch" })).toBeNull();
    });

    test("runs no more at once than it may, whichever node asks, whatever agents and lanes it spans", async () => {
      const world = await open();
      await submitBatch(world, { parallelism: 2 }, [
        { id: "1" },
        { id: "2", agent: "b" },
        { id: "3", agent: "c", lane: OTHER_LANE },
        { id: "4", agent: "b" },
      ]);
      const first = await world.claim({ limit: 9 });
      expect(idsOf(first)).toEqual(["1", "2"]);
      expect(await world.claim({ node: OTHER_NODE, limit: 9 })).toEqual([]);
      expect(await world.claim({ lane: OTHER_LANE, limit: 9 })).toEqual([]);
      await world.finish(first[0] as ClaimedTask, { to: "done", result: 1 });
      expect(idsOf(await world.claim({ lane: OTHER_LANE, limit: 9 }))).toEqual(["3"]);
      await world.finish(first[1] as ClaimedTask, { to: "failed", error: "no" });
      expect(idsOf(await world.claim({ node: OTHER_NODE, limit: 9 }))).toEqual(["4"]);
    });

    test("lets the next one in with the very finish that makes room", async () => {
      const world = await open();
      await submitBatch(world, { parallelism: 1 }, [{ id: "1" }, { id: "2" }]);
      const { token, task } = only(await world.claim({ limit: 9 }));
      const { claimed } = await world.storage.tasks.finishAndClaim({
        node: NODE,
        finishes: [{ token, seq: task.seq, settlement: { to: "done", result: null } }],
        progress: [],
        claims: [{ lane: LANE, limit: 9 }],
      });
      expect(idsOf(claimed)).toEqual(["2"]);
    });

    test("admits by priority, then by order of acceptance", async () => {
      const world = await open();
      await submitBatch(world, { parallelism: 1 }, [{ id: "1" }, { id: "2" }, { id: "urgent", priority: 1 }]);
      const order: string[] = [];
      for (let n = 0; n < 3; n += 1) {
        const claimed = only(await world.claim({ limit: 9 }));
        order.push(claimed.task.id);
        await world.finish(claimed, { to: "done", result: null });
      }
      expect(order).toEqual(["urgent", "1", "2"]);
    });

    test("gives the slot of one that waits for its retry to the next, and not that of one that goes right back", async () => {
      const world = await open();
      await submitBatch(world, { parallelism: 1 }, [{ id: "1" }, { id: "2" }]);
      await world.finish(only(await world.claim()), { to: "queued", error: "shutdown" });
      const again = only(await world.claim({ limit: 9 }));
      expect(again.task.id).toBe("1");
      await world.finish(again, { to: "delayed", error: "no", runAt: world.clock.now() + 10 });
      const next = only(await world.claim({ limit: 9 }));
      expect(next.task.id).toBe("2");
      world.clock.step(10);
      await world.storage.tasks.promoteDue({ limit: 10 });
      expect(await world.claim({ limit: 9 })).toEqual([]);
      await world.finish(next, { to: "done", result: null });
      expect(idsOf(await world.claim({ limit: 9 }))).toEqual(["1"]);
    });

    test("keeps its bound when a node is lost, a task is cancelled, expires or is retried", async () => {
      const world = await open();
      const deadline = world.clock.now() + 10;
      await submitBatch(world, { parallelism: 1 }, [
        { id: "lost" },
        { id: "cancelled" },
        { id: "overdue", deadline },
        { id: "last" },
      ]);
      await world.claim({ node: OTHER_NODE });
      await world.crash(OTHER_NODE);
      await world.storage.tasks.rescue({ node: OTHER_NODE, limit: 10 });
      expect(idsOf(await world.claim({ limit: 9 }))).toEqual(["lost"]);
      await world.storage.tasks.cancel({ tenant: TENANT, ids: ["lost", "cancelled"], error: null });
      world.clock.step(10);
      await world.storage.tasks.expire({ limit: 10 });
      await world.storage.tasks.retry({ tenant: TENANT, id: "cancelled" });
      const last = only(await world.claim({ limit: 9 }));
      expect(last.task.id).toBe("last");
      await world.finish(last, { to: "done", result: null });
      expect(idsOf(await world.claim({ limit: 9 }))).toEqual(["cancelled"]);
      expect(await world.storage.counters.recountAll()).toEqual([]);
    });

    test("does not count those that wait for others or for their moment", async () => {
      const world = await open();
      await submitBatch(world, { parallelism: 1 }, [
        { id: "parent" },
        { id: "child", dependsOn: ["parent"] },
        { id: "later", runAt: world.clock.now() + 10 },
        { id: "free" },
      ]);
      const parent = only(await world.claim({ limit: 9 }));
      await world.finish(parent, { to: "done", result: null });
      // Both can start now; the one that was accepted first goes first.
      expect(idsOf(await world.claim({ limit: 9 }))).toEqual(["child"]);
    });

    test("counts what is parked as queued, and says that the batch is what holds it", async () => {
      const world = await open();
      await submitBatch(world, { parallelism: 1 }, [{ id: "1" }, { id: "2" }]);
      await world.claim();
      expect((await world.task("2")).state).toBe("queued");
      const queued = { tenant: TENANT, agent: AGENT, states: ["queued"], limit: 9 } as const;
      expect((await world.storage.tasks.list(queued)).tasks.map(({ id }) => id)).toEqual(["2"]);
      expect(await world.storage.tasks.queueDepth({ tenant: TENANT })).toEqual({
        queued: 1,
        inflight: 1,
        agents: { [AGENT]: 1 },
        ready: { [AGENT]: 1 },
      });
      const situation = await world.storage.tasks.situation({ tenant: TENANT, id: "2" });
      expect(situation).toMatchObject({ batch: { parallelism: 1, active: ["1"] }, ahead: { count: 0 } });
      expect(await world.storage.tasks.situation({ tenant: TENANT, id: "1" })).toMatchObject({ batch: null });
    });
  });

  describe("the end of a batch", () => {
    test("is reported once, after that of its last task, with how many ended how", async () => {
      const world = await open();
      await submitBatch(world, {}, [{ id: "1" }, { id: "2" }, { id: "3", dependsOn: ["2"] }]);
      const [one, two] = await world.claim({ limit: 9 });
      await world.finish(one as ClaimedTask, { to: "done", result: null });
      expect(await completions(world)).toEqual([]);
      world.clock.step(5);
      await world.finish(two as ClaimedTask, { to: "failed", error: "no" });
      const counts = { done: 1, failed: 1, cancelled: 1 };
      expect(await completions(world)).toEqual([{ batch: "batch", taskId: "3", counts }]);
      expect((await world.events()).at(-1)?.type).toBe("batch.completed");
      expect(await getBatch(world)).toMatchObject({ completedAt: world.clock.now() });

      await world.storage.tasks.retry({ tenant: TENANT, id: "2" });
      await world.finish(only(await world.claim({ limit: 9 })), { to: "done", result: null });
      expect(await completions(world)).toHaveLength(1);
    });

    test("comes at once when none of its tasks is admitted", async () => {
      const world = await open();
      const tasks = [{ id: "1" }, { id: "2" }];
      await submitBatch(world, { callbackUrl: "https://example.com/b" }, tasks, {
        ...ROOMY,
        maxQueueSize: 0,
      });
      expect(await completions(world)).toEqual([{ batch: "batch", taskId: "2", counts: { rejected: 2 } }]);
      const { deliveries } = await world.storage.deliveries.list({ tenant: TENANT, limit: 9 });
      expect(deliveries).toHaveLength(1);
    });

    test("leaves a delivery, besides those of its tasks", async () => {
      const world = await open();
      const url = "https://example.com/batch";
      await submitBatch(world, { callbackUrl: url, parallelism: 4 }, [
        { id: "1" },
        { id: "2", callbackUrl: "https://example.com/task" },
      ]);
      const createdAt = world.clock.now();
      world.clock.step(7);
      for (const claimed of await world.claim({ limit: 9 })) {
        await world.finish(claimed, { to: "done", result: null });
      }
      const completedAt = world.clock.now();
      const { deliveries } = await world.storage.deliveries.list({ tenant: TENANT, limit: 9 });
      expect(deliveries.map((delivery) => [delivery.url, delivery.taskId, delivery.end?.state])).toEqual([
        [url, "2", undefined],
        ["https://example.com/task", "2", "done"],
      ]);
      const end = { id: "batch", parallelism: 4, createdAt, completedAt, counts: { done: 2 } };
      expect(deliveries[0]).toMatchObject({ batch: end, dueAt: completedAt, status: "pending" });
    });

    test("is that of a batch that was submitted twice, because its answer got lost", async () => {
      const world = await open();
      const tasks = [newTask({ id: "1", batch: "batch" }), newTask({ id: "2", batch: "batch" })];
      const insert = { tasks, batches: [{ ...BATCH, parallelism: 1 }], limits: ROOMY };
      await world.storage.tasks.insert(insert);
      await world.storage.tasks.insert(insert);
      for (let n = 0; n < 2; n += 1) {
        await world.finish(only(await world.claim({ limit: 9 })), { to: "done", result: null });
      }
      expect(await completions(world)).toHaveLength(1);
    });

    test("counts tasks that ended long before it: none is pruned until it is past its time", async () => {
      const world = await open();
      await submitBatch(world, {}, [{ id: "1" }, { id: "2" }]);
      const [one, two] = await world.claim({ limit: 9 });
      await world.finish(one as ClaimedTask, { to: "failed", error: "no" });
      world.clock.step(100);
      const prune = { retentionMs: 10, rejectedMax: 0, limit: 100 };
      await world.storage.tasks.prune(prune);
      expect((await world.task("1")).state).toBe("failed");
      await world.finish(two as ClaimedTask, { to: "done", result: null });
      expect(await completions(world)).toMatchObject([{ counts: { done: 1, failed: 1 } }]);
      world.clock.step(100);
      await world.storage.tasks.prune(prune);
      expect(await getBatch(world)).toBeNull();
      expect((await world.storage.tasks.list({ tenant: TENANT, limit: 9 })).tasks).toEqual([]);
    });

    test("keeps rejected tasks until it has come, and until its delivery is settled", async () => {
      const world = await open();
      const limits = { ...ROOMY, maxQueueSize: 1 };
      await submitBatch(world, { callbackUrl: "https://example.com/b" }, [{ id: "1" }, { id: "2" }], limits);
      const prune = { retentionMs: 1_000, rejectedMax: 0, limit: 100 };
      await world.storage.tasks.prune(prune);
      await world.finish(only(await world.claim()), { to: "done", result: null });
      await world.storage.tasks.prune(prune);
      expect(await completions(world)).toMatchObject([{ taskId: "2", counts: { done: 1, rejected: 1 } }]);
      const { claimed: all } = await world.storage.deliveries.claim({
        shares: ROOMY_SHARES,
        held: [],
        holdMs: 10,
      });
      const [claimed] = all;
      const { seq, tries } = claimed?.delivery ?? { seq: 0, tries: 0 };
      const delivered = {
        seq,
        tries,
        status: "delivered",
        dueAt: null,
        responseStatus: 200,
        error: null,
      } as const;
      await world.storage.deliveries.settle({ tries: [delivered] });
      await world.storage.tasks.prune(prune);
      expect(await world.storage.tasks.get({ tenant: TENANT, id: "2" })).toBeNull();
    });

    test("never comes for one that has a key which was used for something else: it is refused whole", async () => {
      const world = await open();
      await world.submit({ id: "first", idempotency: { key: "k", hash: "one" } });
      const again = { id: "again", idempotency: { key: "k", hash: "other" } };
      await expect(submitBatch(world, {}, [{ id: "new" }, again])).rejects.toMatchObject({
        code: "idempotency_conflict",
        details: { taskId: "first", refused: "again" },
      });
      expect(await world.storage.tasks.get({ tenant: TENANT, id: "new" })).toBeNull();
      expect(await getBatch(world)).toBeNull();
      expect(await world.storage.counters.recountAll()).toEqual([]);
    });

    test("does not exist for a batch all of whose tasks were there before", async () => {
      const world = await open();
      const idempotency = { key: "k", hash: "h" };
      await world.submit({ id: "first", idempotency });
      const [answer] = await submitBatch(world, {}, [{ id: "again", idempotency }]);
      expect(answer).toMatchObject({ id: "first", repeats: "same" });
      expect(await getBatch(world)).toBeNull();
      expect(await completions(world)).toEqual([]);
    });
  });
}
