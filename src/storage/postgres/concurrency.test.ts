import { describe, expect, test } from "vitest";
import {
  allEvents,
  chance,
  done,
  drain,
  type Node,
  openNodes,
  peaks,
  prepareDatabases,
  settle,
  submit,
  tasksOf,
} from "../../../test/postgres/several-nodes.ts";
import { LANE, newTask, OTHER_LANE, ROOMY, ROOMY_SHARES, TENANT } from "../conformance/world.ts";
import type { ClaimedTask, NewTask, Storage, StorageSignal } from "../storage.ts";

prepareDatabases();

describe("nodes that claim at once", () => {
  test("are handed every task once", async () => {
    const { nodes, first } = await openNodes(4);
    await submit(first, tasksOf(20, 1200));
    const claims = [{ lane: LANE, limit: 7 }];
    const handedOut = await Promise.all(
      nodes.map(async ({ storage, node }) => {
        const mine: string[] = [];
        for (;;) {
          const { claimed } = await storage.tasks.finishAndClaim({
            node,
            finishes: [],
            progress: [],
            claims,
          });
          if (claimed.length === 0) return mine;
          mine.push(...claimed.map(({ task }) => task.id));
        }
      }),
    );
    expect(handedOut.flat()).toHaveLength(1200);
    expect(new Set(handedOut.flat()).size).toBe(1200);
    expect(await first.counters.recountAll()).toEqual([]);
  });

  test("claim every delivery once: the first node that asks gets it", async () => {
    const { nodes, first } = await openNodes(4);
    const tenants = ["one", "two", "three"];
    for (const tenant of tenants) {
      const tasks = Array.from({ length: 60 }, (_, n) =>
        newTask({ tenant, callbackUrl: `https://host-${n % 7}.test/` }),
      );
      await first.tasks.insert({ tasks, limits: ROOMY });
      await first.tasks.cancel({ tenant, ids: tasks.map(({ id }) => id), error: null });
    }
    const shares = { ...ROOMY_SHARES, slots: 5, perUnprovenHost: 2 };
    const handedOut = await Promise.all(
      nodes.map(async ({ storage }) => {
        const mine: number[] = [];
        for (;;) {
          const { claimed } = await storage.deliveries.claim({ shares, held: [], holdMs: 60_000 });
          if (claimed.length === 0) return mine;
          mine.push(...claimed.map(({ delivery }) => delivery.seq));
          const outcome = { status: "delivered", dueAt: null, responseStatus: 200, error: null } as const;
          const tries = claimed.map(({ delivery: { seq, tries } }) => ({ seq, tries, ...outcome }));
          await storage.deliveries.settle({ tries });
        }
      }),
    );
    expect(handedOut.flat()).toHaveLength(180);
    expect(new Set(handedOut.flat()).size).toBe(180);
  });

  test("keep the limits of lane and agent at every moment", async () => {
    const { nodes, first } = await openNodes(4);
    await first.lanes.configure({
      lanes: [{ name: LANE, total: 9, perAgent: 2, perTenant: null, strategy: "fair-fifo", agingMs: 0 }],
    });
    await submit(first, tasksOf(6, 400));
    await Promise.all(nodes.map((node) => drain(node, [LANE], 4)));
    // A node that came away empty while the others held everything has left the rest to them.
    await drain(nodes[0] as Node, [LANE], 4);
    expect(await first.tasks.counts({ tenant: TENANT })).toEqual({ done: 400 });
    const events = await allEvents(first);
    expect(Math.max(...peaks(events, ({ lane }) => lane))).toBe(9);
    expect(Math.max(...peaks(events, ({ agent }) => agent))).toBe(2);
    expect(await first.counters.recountAll()).toEqual([]);
  });

  test("keep one agent's limit over two lanes", async () => {
    const { nodes, first } = await openNodes(2);
    await first.agents.configure({ tenant: TENANT, agent: "agent-0", maxInflight: 3 });
    await submit(first, [...tasksOf(1, 150), ...tasksOf(1, 150, { lane: OTHER_LANE })]);
    await Promise.all(nodes.map((node, index) => drain(node, index === 0 ? [LANE] : [OTHER_LANE], 2)));
    for (const node of nodes) await drain(node, [LANE, OTHER_LANE], 5);
    expect(await first.tasks.counts({ tenant: TENANT })).toEqual({ done: 300 });
    expect(peaks(await allEvents(first), ({ agent }) => agent)).toEqual([3]);
    expect(await first.counters.recountAll()).toEqual([]);
  });
});

describe("nodes that share lanes between tenants", () => {
  test("keep a tenant's bound over lanes and nodes at every moment, and every counter right", async () => {
    const { nodes, first } = await openNodes(4);
    const limits = {
      maxQueued: null,
      maxInflight: 3,
      maxSchedules: null,
      maxSessions: null,
      maxStreams: null,
      maxAgents: null,
      maxStoredBytes: null,
    };
    await first.tenants.create({ id: "bounded", name: "bounded", limits });
    for (const tenant of ["bounded", "free"]) {
      for (const lane of [LANE, OTHER_LANE]) await submit(first, tasksOf(5, 80, { tenant, lane }));
    }
    await Promise.all(nodes.map((node, index) => drain(node, index % 2 === 0 ? [LANE] : [OTHER_LANE], 3)));
    for (const node of nodes) await drain(node, [LANE, OTHER_LANE], 5);
    for (const tenant of ["bounded", "free"]) {
      expect(await first.tasks.counts({ tenant })).toEqual({ done: 160 });
    }
    const ofBounded = (await allEvents(first)).filter(({ tenant }) => tenant === "bounded");
    expect(peaks(ofBounded, ({ tenant }) => tenant)).toEqual([3]);
    expect(await first.counters.recountAll()).toEqual([]);
  });

  test("get signals of each other's tenants and keys", async () => {
    const { nodes, first } = await openNodes(2);
    const second = (nodes[1] as Node).storage;
    const signalled = (kind: StorageSignal["kind"]) =>
      new Promise<void>((resolve) => second.subscribe((signal) => signal.kind === kind && resolve()));
    const limits = {
      maxQueued: null,
      maxInflight: null,
      maxSchedules: null,
      maxSessions: null,
      maxStreams: null,
      maxAgents: null,
      maxStoredBytes: null,
    };
    const tenants = signalled("tenants");
    await first.tenants.create({ id: "t", name: "t", limits });
    await tenants;
    const key = { id: "k", tenant: "t", name: "k", role: "viewer", agent: null, hash: "h", expiresAt: null };
    await first.keys.create(key);
    const keys = signalled("keys");
    await first.keys.delete({ tenant: "t", id: "k" });
    await keys;
    expect(await second.keys.findByHashes({ hashes: ["h"] })).toEqual([]);
  });

  test("delete a tenant while the others submit, claim and finish its tasks", async () => {
    const { nodes, first } = await openNodes(4);
    const limits = {
      maxQueued: null,
      maxInflight: null,
      maxSchedules: null,
      maxSessions: null,
      maxStreams: null,
      maxAgents: null,
      maxStoredBytes: null,
    };
    await first.tenants.create({ id: "gone", name: "gone", limits });
    for (const tenant of ["gone", "stays"]) await submit(first, tasksOf(10, 200, { tenant, priority: 1 }));
    const drained = nodes.slice(1).map((node) => drain(node, [LANE], 5));
    for (let more = true; more; ) {
      const answer = await first.tenants.delete({ id: "gone", limit: 20 });
      more = "more" in answer && answer.more;
    }
    await Promise.all(drained);
    expect(await first.tasks.counts({ tenant: "gone" })).toEqual({});
    expect(await first.tasks.counts({ tenant: "stays" })).toEqual({ done: 200 });
    expect(await first.counters.recountAll()).toEqual([]);
  });
});

describe("nodes that finish and claim at once", () => {
  test("keep every batch within its parallelism at every moment, and report its end once", async () => {
    const { nodes, first } = await openNodes(4);
    const batches = Array.from({ length: 8 }, (_, index) => `batch-${index}`);
    for (const id of batches)
      await submitBatch(first, { id, parallelism: 3 }, [
        ...tasksOf(5, 15),
        ...tasksOf(3, 10, { lane: OTHER_LANE, priority: 0 }),
      ]);
    await Promise.all(nodes.map((node, index) => workAtRandom(node, chance(index + 1))));
    expect(await first.counters.recountAll()).toEqual([]);
    await drain(nodes[0] as Node, [LANE, OTHER_LANE], 50);
    const events = await allEvents(first);
    expect(Math.max(...peaks(events, ({ batch }) => batch ?? ""))).toBe(3);
    const completed = events.filter(({ type }) => type === "batch.completed");
    expect(completed.map(({ batch }) => batch).sort()).toEqual(batches);
    expect(completed.map(({ data }) => data?.counts)).toEqual(batches.map(() => ({ done: 25 })));
    expect(await first.counters.recountAll()).toEqual([]);
  });

  test("keep tasks with one concurrency key apart at every moment, in all lanes, with and without batches", async () => {
    const { nodes, first } = await openNodes(4);
    await first.agents.configure({ tenant: TENANT, agent: "agent-1", maxInflight: 1 });
    const keyOf = new Map<string, string>();
    const keyed = (tasks: readonly Partial<NewTask>[], keys: number) =>
      tasks.map((task, index) => {
        const { id } = newTask();
        keyOf.set(id, `key-${index % keys}`);
        return { ...task, id, concurrencyKey: `key-${index % keys}` };
      });
    await submit(first, keyed(tasksOf(5, 200), 7));
    await submit(first, keyed(tasksOf(3, 100, { lane: OTHER_LANE, priority: 1 }), 7));
    for (const id of ["x", "y"]) await submitBatch(first, { id, parallelism: 2 }, keyed(tasksOf(4, 30), 5));
    await submit(first, tasksOf(3, 60));
    await Promise.all(nodes.map((node, index) => workAtRandom(node, chance(index + 11))));
    expect(await first.counters.recountAll()).toEqual([]);
    await drain(nodes[0] as Node, [LANE, OTHER_LANE], 50);
    const events = (await allEvents(first)).filter(({ taskId }) => keyOf.has(taskId));
    expect(new Set(peaks(events, ({ taskId }) => keyOf.get(taskId) ?? ""))).toEqual(new Set([1]));
    expect(await first.tasks.counts({ tenant: TENANT })).toEqual({ done: 420 });
    expect(await first.counters.recountAll()).toEqual([]);
  });

  test("get a signal when a concurrency key is not with the task that should hold it", async () => {
    const { first, admin } = await openNodes(1);
    await submit(first, tasksOf(2, 2, { concurrencyKey: "k" }));
    expect(await first.counters.recountAll()).toEqual([]);
    const wrong = async (sql: string) => {
      await admin.query(sql);
      return (await first.counters.recountAll()).map(({ counter, stored }) => [counter, stored]);
    };
    const [ofHolders, ofActive, ofWaiting] = [
      "concurrency keys of tasks that are ready or in flight",
      "ready tasks that have their concurrency key",
      "tasks that wait for a concurrency key that another has",
    ];
    expect(await wrong("update rota.key_hold set contested = false")).toEqual([[ofWaiting, 0]]);
    expect(await wrong("update rota.key_hold set contested = true, task_seq = task_seq + 1")).toEqual([
      [ofHolders, 0],
      [ofActive, 0],
    ]);
    expect(await wrong("delete from rota.key_hold")).toEqual([
      [ofActive, 0],
      [ofWaiting, 0],
    ]);
  });

  /** Ends some of the attempts that it holds, puts some back, and claims more. */
  async function workAtRandom(self: Node, random: (below: number) => number): Promise<void> {
    const { storage, node } = self;
    const claims = [LANE, OTHER_LANE].map((lane) => ({ lane, limit: 3 }));
    let held: readonly ClaimedTask[] = [];
    for (let round = 0; round < 25; round += 1) {
      const ends = [done, done, { to: "queued", error: "again" }] as const;
      const finishes = settle(held).map((finish) => ({ ...finish, settlement: ends[random(3)] ?? done }));
      held = (await storage.tasks.finishAndClaim({ node, finishes, progress: [], claims })).claimed;
    }
    await storage.tasks.finishAndClaim({ node, finishes: settle(held), progress: [], claims: [] });
  }
});

describe("critical tasks that come in on one connection while others claim", () => {
  test("take slots from those that give way, and no task runs twice at once", async () => {
    const { nodes, first } = await openNodes(3);
    const workers = nodes.slice(0, 2);
    for (const { node } of workers) await first.nodes.setSlots({ node, slots: { [LANE]: SLOTS } });
    await submit(first, tasksOf(6, 60, { preemptible: true }));
    let submitting = true;
    const working = workers.map((node, index) => workInSlots(node, chance(index + 1), () => submitting));
    const urgent: string[] = [];
    for (let round = 0; round < 40; round += 1) {
      const inserted = await submit((nodes[2] as Node).storage, tasksOf(4, 1, { priority: 0 }));
      urgent.push(...inserted.map(({ id }) => id));
    }
    submitting = false;
    await Promise.all(working);
    expect(await first.counters.recountAll()).toEqual([]);
    expect(await first.tasks.counts({ tenant: TENANT })).toEqual({ done: 100 });
    const events = await allEvents(first);
    expect(Math.max(...peaks(events, ({ taskId }) => taskId))).toBe(1);
    const gaveWay = events.flatMap(({ type, taskId }) => (type === "task.preempted" ? [taskId] : []));
    expect(gaveWay).not.toEqual([]);
    expect(gaveWay.filter((id) => urgent.includes(id))).toEqual([]);
    for (const times of Map.groupBy(gaveWay, (id) => id).values()) expect(times.length).toBeLessThan(4);
  });

  const SLOTS = 4;

  /** Fills its slots, ends one task at a time, and drops the attempts that the storage reports as lost. */
  async function workInSlots(
    { storage, node }: Node,
    random: (below: number) => number,
    expectsMore: () => boolean,
  ): Promise<void> {
    const held = new Map<number, ClaimedTask>();
    let lost = new Set<number>();
    storage.subscribe((signal) => {
      if (signal.kind !== "fenced" || signal.reason !== "preempted") return;
      for (const token of signal.tokens) if (!held.delete(token)) lost.add(token);
    });
    for (let isIdle = false; expectsMore() || !isIdle; ) {
      const ending = [...held.values()][random(held.size)];
      const finishes = settle(ending === undefined ? [] : [ending]);
      const claims = [{ lane: LANE, limit: SLOTS - held.size + finishes.length }];
      const { claimed } = await storage.tasks.finishAndClaim({ node, finishes, progress: [], claims });
      if (ending !== undefined) held.delete(ending.token);
      for (const each of claimed) if (!lost.has(each.token)) held.set(each.token, each);
      lost = new Set();
      isIdle = claimed.length === 0 && held.size === 0;
    }
  }
});

describe("everything at once on four connections", () => {
  test("reaches no caller as an error and ends every task once", async () => {
    const { nodes, first } = await openNodes(4);
    await first.lanes.configure({
      lanes: [{ name: LANE, total: 20, perAgent: 3, perTenant: null, strategy: "fair-fifo", agingMs: 0 }],
    });
    await first.agents.configure({ tenant: TENANT, agent: "agent-1", maxInflight: 2 });
    for (const { node } of nodes) await first.nodes.setSlots({ node, slots: SLOTS });
    const ids: string[] = [];
    await Promise.all(nodes.map((node, index) => doAnything(node, chance(index + 1), ids)));
    expect(await first.counters.recountAll()).toEqual([]);
    await finishEverything(first);
    const counts = await first.tasks.counts({ tenant: TENANT });
    expect(Object.keys(counts).filter((state) => !["done", "failed", "cancelled"].includes(state))).toEqual(
      [],
    );
    expect(Object.values(counts).reduce((sum, count) => sum + count, 0)).toBe(ids.length);
    expect(await first.counters.recountAll()).toEqual([]);
    const types = new Set((await allEvents(first)).map(({ type }) => type));
    expect([...types]).toEqual(expect.arrayContaining(["task.preempted", "batch.completed"]));
  });

  const ROUNDS = 120;
  const SLOTS = { [LANE]: 5, [OTHER_LANE]: 5 };

  async function doAnything(self: Node, random: (below: number) => number, ids: string[]): Promise<void> {
    const { storage } = self;
    let node = self.node;
    let held: readonly ClaimedTask[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      const some = () => ids[random(ids.length)] ?? "none";
      switch (random(8)) {
        case 0: {
          const runAt = random(3) === 0 ? (await storage.now()) + random(20) : null;
          const lane = random(2) === 0 ? LANE : OTHER_LANE;
          const tasks = tasksOf(5, 1 + random(10), { runAt, lane, priority: random(4), preemptible: true });
          const inserted =
            random(2) === 0
              ? await submit(storage, tasks)
              : await submitBatch(storage, { id: `${node}/${round}`, parallelism: 1 + random(3) }, tasks);
          ids.push(...inserted.map(({ id }) => id));
          break;
        }
        case 1:
          await storage.tasks.cancel({ tenant: TENANT, ids: [some(), some(), some()], error: null });
          break;
        case 2:
          await storage.tasks.retry({ tenant: TENANT, id: some() });
          break;
        case 3:
          await storage.tasks.promoteDue({ limit: 10 });
          await storage.tasks.expire({ limit: 10 });
          break;
        case 4: {
          // The node is declared dead by a neighbour and comes back under a new name.
          await rescue(storage, node);
          node = `${self.node}-${round}`;
          held = [];
          await storage.nodes.register({ node, slots: SLOTS });
          break;
        }
        default: {
          const finishes = settle(held).map((finish) => ({ ...finish, settlement: anyEnd(random) }));
          const claims = [LANE, OTHER_LANE].map((lane) => ({ lane, limit: random(6) }));
          held = (await storage.tasks.finishAndClaim({ node, finishes, progress: [], claims })).claimed;
        }
      }
    }
    await rescue(storage, node);
  }

  function anyEnd(random: (below: number) => number) {
    const ends = [done, { to: "failed", error: "no" }, { to: "queued", error: "again" }] as const;
    return ends[random(ends.length)] ?? done;
  }

  async function rescue(storage: Storage, node: string): Promise<void> {
    const record = (await storage.nodes.list()).find((candidate) => candidate.node === node);
    await storage.nodes.markDead({ node, beat: record?.beat ?? -1 });
    for (let slice = 1; slice > 0; ) {
      const { requeued, failed } = await storage.tasks.rescue({ node, limit: 3 });
      slice = requeued.length + failed.length;
    }
    await storage.nodes.remove({ node });
  }

  async function finishEverything(storage: Storage): Promise<void> {
    await storage.nodes.register({ node: "last" });
    for (
      let dueAt = await storage.tasks.nextDueAt();
      dueAt !== null;
      dueAt = await storage.tasks.nextDueAt()
    ) {
      await storage.tasks.promoteDue({ limit: 1000 });
    }
    await drain({ storage, node: "last" }, [LANE, OTHER_LANE], 10);
  }
});

function submitBatch(
  storage: Storage,
  batch: { id: string; parallelism: number },
  tasks: readonly Partial<NewTask>[],
) {
  return storage.tasks.insert({
    tasks: tasks.map((task) => newTask({ ...task, batch: batch.id })),
    batches: [{ ...batch, tenant: TENANT, callbackUrl: "https://example.com/batch" }],
    limits: ROOMY,
  });
}

describe("nodes that submit for one bounded caller at once", () => {
  test("accept together exactly what the caller may, and count it right", async () => {
    const { nodes, first } = await openNodes(3);
    const bounds = {
      ...{ tenant: TENANT, owner: "key_1", maxSubmitsPerHour: 30, maxOpenTasks: 12 },
      descendants: { root: "root", max: 9 },
    };
    const spec = { ...newTask().spec, within: { taskId: "root", rootTaskId: "root", depth: 0 } };
    const insert = (n: number, task: Partial<NewTask>) =>
      (nodes[n % 3]?.storage ?? first).tasks.insert({ tasks: [newTask(task)], limits: ROOMY, bounds });
    const below = await Promise.allSettled(Array.from({ length: 20 }, (_, n) => insert(n, { spec })));
    expect(below.filter(({ status }) => status === "fulfilled")).toHaveLength(9);
    const others = { ...bounds, descendants: null };
    const open = await Promise.allSettled(
      Array.from({ length: 20 }, (_, n) =>
        (nodes[n % 3]?.storage ?? first).tasks.insert({ tasks: [newTask()], limits: ROOMY, bounds: others }),
      ),
    );
    expect(open.filter(({ status }) => status === "fulfilled")).toHaveLength(3);
    const refused = open.flatMap((each) => (each.status === "rejected" ? [each.reason.details] : []));
    expect(new Set(refused.map(({ bound, used }) => `${bound} ${used}`))).toEqual(
      new Set(["maxOpenTasks 12"]),
    );
    expect((await first.tasks.list({ tenant: TENANT, limit: 100 })).tasks).toHaveLength(12);
    expect(await first.counters.recountAll()).toEqual([]);
  });
});
