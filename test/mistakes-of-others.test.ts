import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import type { RotaOptions } from "../src/interface/options.ts";
import type { Rota } from "../src/interface/rota.ts";
import type { Clock } from "../src/model/clock.ts";
import type { Task } from "../src/model/task.ts";
import { isTerminal } from "../src/model/task-state.ts";
import { openPostgres } from "../src/storage/postgres/connection/open.ts";
import type { FinishAndClaimParams, Storage } from "../src/storage/storage.ts";
import { ManualClock } from "../src/testing/manual-clock.ts";
import { Latch, until } from "../src/testing/signals.ts";
import { prepareDatabaseCopies } from "./postgres/database-copies.ts";
import { newTask, ROOMY } from "./support/engine.ts";
import { serve } from "./support/http-server.ts";
import { openTestRota } from "./support/rota.ts";
import { asSharedStorage, away, type Call, openMemory } from "./support/storages.ts";

/*
 * What schedulers before this one got wrong, each kept as a test against the whole product. What belongs to schedules and
 * sessions comes with them.
 */

const copies = await prepareDatabaseCopies(async (url) => (await openPostgres({ url })).close());
afterAll(() => copies.drop());

/** For one test: what opens its database, once for each node. */
type OpenStorage = () => Promise<Storage>;

/** Of a database in memory there can be but one; the nodes share it. */
async function onSqlite(clock: Clock): Promise<OpenStorage> {
  const storage = await openMemory(clock);
  onTestFinished(() => storage.close());
  return async () => asSharedStorage(storage);
}

async function onPostgres(clock: Clock): Promise<OpenStorage> {
  const { url } = await copies.copy();
  return () => openPostgres({ url, clock });
}

describe.each([
  ["SQLite", onSqlite],
  ["PostgreSQL", onPostgres],
])("mistakes of others, on %s", (_database, prepare) => {
  /** A database, and nodes on it whose time stands still. */
  async function install() {
    const clock = new ManualClock();
    const openStorage = await prepare(clock);
    let underWay = 0;
    const openNode = async (options: Omit<RotaOptions, "storage" | "clock" | "log"> = {}) => {
      const node = { isGone: false };
      const before = (_call: Call) => {
        if (node.isGone) throw away();
        underWay += 1;
      };
      const after = () => {
        underWay -= 1;
      };
      const storage = await openStorage();
      const { rota } = await openTestRota({ clock, storage, options, meddler: { before, after } });
      /** As `kill -9` does: from here on nothing of it reaches the storage. */
      const crash = () => {
        node.isGone = true;
      };
      return { rota, crash, storage };
    };
    /** Moves time in small steps. In each, every call of the storage returns, however slow it is. */
    const advance = async (ms: number) => {
      for (let left = ms; left > 0; left -= 1_000) {
        await clock.advance(Math.min(left, 1_000));
        await until(() => underWay === 0, "the storage to come to rest");
      }
    };
    /** The task once it has ended. Time moves a little meanwhile: some work that is due at once takes a millisecond. */
    const ended = async (rota: Rota, taskId: string): Promise<Task> => {
      await until(async () => {
        await clock.advance(1);
        return isTerminal((await rota.tasks.get(taskId)).state);
      }, `${taskId} to end`);
      return rota.tasks.get(taskId);
    };
    return { clock, openNode, advance, ended };
  }

  async function untilState(rota: Rota, taskId: string, state: string): Promise<void> {
    await until(async () => (await rota.tasks.get(taskId)).state === state, `${taskId} to be ${state}`);
  }

  test("waiting tasks at the head of the line do not block those behind them", async () => {
    const { openNode, ended } = await install();
    const { rota } = await openNode({ scheduler: { workerCount: 2 } });
    const finish = new Latch();
    rota.agent("full", { maxInflight: 1 }, () => finish.opened);
    rota.agent("a", () => "done");
    const high = { priority: "high" } as const;
    await rota.tasks.submitMany([
      ...Array(3).fill({ agentId: "full", payload: 1, ...high }),
      { agentId: "a", payload: 2, ...high, runAt: "2100-01-01T00:00:00Z" },
      { agentId: "a", payload: 3, ...high, dependsOn: ["tsk_unknown"] },
    ]);
    await rota.tasks.submitBatch({
      parallelism: 1,
      tasks: [
        { agentId: "full", payload: 4, priority: "critical" },
        { agentId: "a", payload: 4, ...high },
      ],
    });
    const { taskId } = await rota.tasks.submit({ agentId: "a", payload: 5, priority: "low" });
    await rota.start();
    expect(await ended(rota, taskId)).toMatchObject({ state: "done" });
    finish.open();
  });

  test("dependants are not cancelled while the parent merely waits for its retry", async () => {
    const { openNode, advance, ended } = await install();
    const { rota } = await openNode();
    let tries = 0;
    rota.agent("flaky", () => {
      tries += 1;
      if (tries === 1) throw new Error("not yet");
      return "now";
    });
    await rota.start();
    const parent = await rota.tasks.submit({ agentId: "flaky", instruction: "try" });
    const child = await rota.tasks.submit({ payload: 1, dependsOn: [parent.taskId] });
    await untilState(rota, parent.taskId, "delayed");
    expect(await rota.tasks.get(child.taskId)).toMatchObject({ state: "waiting_dependency" });
    await advance(1_000);
    expect(await ended(rota, child.taskId)).toMatchObject({ state: "done" });
  });

  test("a crash leaves no task running for ever", async () => {
    const { openNode, advance, ended } = await install();
    const [north, south] = [await openNode(), await openNode()];
    north.rota.agent("worker", () => new Promise(() => {}));
    south.rota.agent("worker", () => "done by another");
    await north.rota.start();
    const retried = await north.rota.tasks.submit({ agentId: "worker", instruction: "go" });
    const unique = await north.rota.tasks.submit({ agentId: "worker", payload: "only once" });
    await untilState(north.rota, retried.taskId, "running");
    await untilState(north.rota, unique.taskId, "running");
    north.crash();
    await south.rota.start();
    await advance(25_000);
    expect(await ended(south.rota, retried.taskId)).toMatchObject({
      state: "done",
      result: "done by another",
      attempts: [{ outcome: "lost" }, { outcome: "done" }],
    });
    expect(await ended(south.rota, unique.taskId)).toMatchObject({
      state: "failed",
      error: "worker lost",
    });
  });

  test("retry timers outlive the process", async () => {
    const { openNode, advance, ended } = await install();
    const [first, second] = [await openNode(), await openNode()];
    first.rota.agent("worker", () => {
      throw new Error("no luck");
    });
    second.rota.agent("worker", () => "better luck");
    await first.rota.start();
    const retryPolicy = { maxRetries: 1, backoffMs: 5_000 };
    const { taskId } = await first.rota.tasks.submit({ agentId: "worker", payload: 1, retryPolicy });
    await untilState(first.rota, taskId, "delayed");
    first.crash();
    await second.rota.start();
    await advance(4_000);
    expect(await second.rota.tasks.get(taskId)).toMatchObject({ state: "delayed" });
    await advance(1_000);
    expect(await ended(second.rota, taskId)).toMatchObject({ state: "done", result: "better luck" });
  });

  test("a rescue does not overwrite a task that finished in the meantime", async () => {
    const { openNode } = await install();
    const { storage } = await openNode();
    const north = { node: "north", finishes: [], progress: [], claims: [] } satisfies FinishAndClaimParams;
    await storage.nodes.register({ node: "north", slots: { tasks: 4 } });
    const tasks = [newTask({ maxRetriesIfLost: 1 }), newTask({ maxRetriesIfLost: 1 })];
    await storage.tasks.insert({ tasks, limits: ROOMY });
    const { claimed } = await storage.tasks.finishAndClaim({
      ...north,
      claims: [{ lane: "tasks", limit: 2 }],
    });
    const ends = claimed.map(({ token, task: { seq } }) => ({
      seq,
      token,
      settlement: { to: "done", result: "north" } as const,
    }));
    await storage.tasks.finishAndClaim({ ...north, finishes: ends.slice(0, 1) });
    const [seen] = await storage.nodes.list();
    expect(await storage.nodes.markDead({ node: "north", beat: seen?.beat ?? 0 })).toBe(true);
    expect((await storage.tasks.rescue({ node: "north", limit: 10 })).requeued).toHaveLength(1);
    // Nor is the end of the attempt stored that was taken back.
    expect((await storage.tasks.finishAndClaim({ ...north, finishes: ends })).finished).toEqual([]);
    const found = tasks.map(({ id }) => storage.tasks.get({ tenant: "default", id }));
    expect(await Promise.all(found)).toMatchObject([
      { state: "done", result: "north", attempts: [{ outcome: "done" }] },
      { state: "queued", result: undefined, attempts: [{ outcome: "lost" }] },
    ]);
  });

  test.each([0, 0.999])("ties between agents are not decided by chance, be it %d", async (chance) => {
    const { openNode } = await install();
    const { rota } = await openNode({ scheduler: { workerCount: 1 }, random: () => chance });
    const order: string[] = [];
    for (const agent of ["a", "b", "c"]) rota.agent(agent, () => void order.push(agent));
    const inputs = ["b", "c", "a"].flatMap((agentId) => Array(3).fill({ agentId, payload: 1 }));
    await rota.tasks.submitMany(inputs);
    await rota.start();
    await until(() => order.length === 9, "all to be done");
    expect(order.join("")).toBe("bcabcabca");
  });

  test("a stream of urgent tasks does not starve the rest", async () => {
    const { openNode, ended } = await install();
    const { rota } = await openNode({ scheduler: { workerCount: 1 } });
    const order: string[] = [];
    const submitUrgent = () =>
      rota.tasks.submit({ agentId: "urgent", payload: 1, priority: "critical" }).catch(() => {});
    rota.agent("urgent", async () => {
      order.push("u");
      // There is always another one before this one is over.
      await submitUrgent();
    });
    rota.agent("patient", () => void order.push("p"));
    for (let count = 0; count < 3; count += 1) await submitUrgent();
    const patient = await rota.tasks.submitMany(Array(3).fill({ agentId: "patient", payload: 1 }));
    await rota.start();
    for (const { taskId } of patient) await ended(rota, taskId);
    expect(order.slice(0, 24).join("")).toBe("uuuuuuup".repeat(3));
  });

  test("waiting in the queue does not count as running time", async () => {
    const { openNode, advance, ended } = await install();
    const { rota } = await openNode({ scheduler: { workerCount: 1 } });
    const finish = new Latch();
    rota.agent("slow", () => finish.opened);
    await rota.start();
    const slow = await rota.tasks.submit({ agentId: "slow", payload: 1 });
    await untilState(rota, slow.taskId, "running");
    const { taskId } = await rota.tasks.submit({ payload: 2, timeout: 1_000 });
    await advance(20_000);
    finish.open();
    const task = await ended(rota, taskId);
    expect(task.state).toBe("done");
    expect(task.latencyMs).toBeLessThan(1_000);
    expect(task.executionTimeMs).toBeLessThan(1_000);
    expect(Date.parse(task.startedAt ?? "") - Date.parse(task.createdAt)).toBeGreaterThanOrEqual(20_000);
  });

  test("listing something changes nothing", async () => {
    const { openNode, clock } = await install();
    const { rota, storage } = await openNode({ scheduler: { maxQueueSize: 4 } });
    const { batchId, taskIds } = await rota.tasks.submitBatch({
      parallelism: 1,
      tasks: [{ payload: 1, deadline: new Date(clock.now() + 1_000) }, { payload: 2 }],
    });
    await rota.tasks.submit({ payload: 3, runAt: new Date(clock.now() + 1_000) });
    await rota.tasks.submit({ payload: 4, dependsOn: ["tsk_unknown"] });
    await rota.tasks.submit({ payload: 5 }).catch(() => {});
    const look = async () => [
      await rota.tasks.list(),
      await rota.tasks.list({ state: ["queued", "rejected"] }),
      await rota.tasks.counts(),
      await rota.tasks.getBatch(batchId),
      ...(await Promise.all(taskIds.map((id) => rota.tasks.explain(id)))),
      (await rota.stats()).queue,
      await rota.webhooks.deliveries(),
      await rota.agents.list(),
      await storage.events.range(),
      await storage.counters.recountAll(),
    ];
    const before = await look();
    // Services handle what is due or overdue, and this test starts none.
    clock.set(clock.now() + 60_000);
    await look();
    expect(await look()).toEqual(before);
  });

  test("cancel works for a task that another process runs", async () => {
    const { openNode } = await install();
    const [front, back] = [await openNode(), await openNode()];
    const [runs, aborted] = [new Latch(), new Latch<string>()];
    back.rota.agent("worker", (_task, { signal }) => {
      runs.open();
      signal.addEventListener("abort", () => aborted.open(signal.reason.message));
      return new Promise(() => {});
    });
    await back.rota.start();
    const { taskId } = await front.rota.tasks.submit({ agentId: "worker", payload: 1 });
    await runs.opened;
    expect(await front.rota.tasks.cancel(taskId)).toEqual({ status: "cancelled", taskId });
    expect(await aborted.opened).toBe("cancelled");
    expect((await back.rota.stats()).queue.totalInflight).toBe(0);
  });

  test("a webhook receiver that hangs holds up nothing else", async () => {
    const { openNode, clock, ended } = await install();
    const { rota } = await openNode({ webhooks: { allow: ["127.0.0.1", "localhost"] } });
    let hanging = 0;
    const hang = await serve(() => {
      hanging += 1;
    });
    let received = 0;
    const url = await serve((_request, response) => {
      received += 1;
      response.end();
    });
    // Another host: ports do not make one.
    const answer = url.replace("127.0.0.1", "localhost");
    await rota.start();
    await rota.tasks.submitMany(Array(30).fill({ payload: 1, callbackUrl: hang }));
    await until(() => hanging > 0, "the first callback to hang");
    const others = await rota.tasks.submitMany(Array(5).fill({ payload: 2, callbackUrl: answer }));
    for (const { taskId } of others) await ended(rota, taskId);
    await until(async () => {
      // One receiver gets a few at a time, the others a moment later.
      await clock.advance(10);
      return received === 5;
    }, "the callbacks to a receiver that responds");
    expect((await rota.tasks.counts()).counts).toEqual({ done: 35 });
  });
});
