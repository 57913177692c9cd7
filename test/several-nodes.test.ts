import { Client } from "pg";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import { createRota, type RotaEvent, type RotaOptions } from "../src/index.ts";
import { openPostgres } from "../src/storage/postgres/connection/open.ts";
import { Latch, ManualClock, nextEvent, until } from "../src/testing/index.ts";
import { prepareDatabaseCopies } from "./postgres/database-copies.ts";
import { serve } from "./support/http-server.ts";

const copies = await prepareDatabaseCopies(async (url) => (await openPostgres({ url })).close());
afterAll(() => copies.drop());

/** Nodes that share one PostgreSQL, with the time of the real world: the database has its own clock. */
async function makeNodes() {
  const { url } = await copies.copy();
  const admin = new Client({ connectionString: url });
  await admin.connect();
  onTestFinished(() => admin.end());
  return {
    openNode: async (options: Omit<RotaOptions, "storage"> = {}) => {
      const rota = await createRota({ ...options, storage: url });
      onTestFinished(() => rota.stop({ graceMs: 0 }));
      return rota;
    },
    /** Ends every connection that a node has to the database. */
    cutConnections: () =>
      admin.query(
        "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()",
      ),
  };
}

describe("nodes that share a database", () => {
  test("run each other's tasks, and wait for them", async () => {
    const { openNode } = await makeNodes();
    const [front, back] = [await openNode(), await openNode()];
    back.agent("worker", async (task) => ({ echoed: task.payload }));
    await back.start();
    const { taskId } = await front.tasks.submit({ agentId: "worker", payload: 7 });
    expect(await front.tasks.wait(taskId)).toMatchObject({ state: "done", result: { echoed: 7 } });
  });

  test("see the same events in the same order", async () => {
    const { openNode } = await makeNodes();
    const nodes = [await openNode(), await openNode()];
    const seen: RotaEvent[][] = [[], []];
    for (const [index, rota] of nodes.entries()) {
      rota.onEvent((event) => void seen[index]?.push(event));
      await rota.start();
    }
    await Promise.all(nodes.map((rota) => rota.tasks.submitMany(Array(50).fill({ payload: 1 }))));
    await until(() => seen.every((events) => events.length === 300), "three events of each of 100 tasks");
    expect(seen[0]).toEqual(seen[1]);
  });

  test("make each callback once, between them", async () => {
    const { openNode } = await makeNodes();
    const ids: unknown[] = [];
    const callbackUrl = await serve((request, response) => {
      ids.push(request.headers["webhook-id"]);
      response.end();
    });
    const options = { webhooks: { allow: ["127.0.0.1"] } };
    const nodes = [await openNode(options), await openNode(options)];
    for (const rota of nodes) await rota.start();
    await Promise.all(
      nodes.map((rota) => rota.tasks.submitMany(Array(40).fill({ payload: 1, callbackUrl }))),
    );
    const delivered = async () => (await nodes[0]?.webhooks.deliveries({ status: "delivered" }))?.count;
    await until(async () => (await delivered()) === 80, "all callbacks");
    expect(new Set(ids).size).toBe(80);
    expect(ids).toHaveLength(80);
  });

  test("know the agents that another one made, and no longer those it deleted", async () => {
    const { openNode } = await makeNodes();
    const options = { scheduler: { noExecutorSec: 0 } };
    const [front, back] = [await openNode(options), await openNode(options)];
    await back.start();
    const resultOf = async (payload: number) => {
      const { taskId } = await front.tasks.submit({ agentId: "made", payload });
      return front.tasks.wait(taskId);
    };
    expect((await resultOf(1)).error).toMatch(/^no executor for agent "made": add the agent/);
    await front.agents.create({ id: "made", executor: { type: "echo" }, lane: "team" });
    expect(await resultOf(2)).toMatchObject({ result: 2, lane: "team" });
    expect(await back.agents.get("made")).toMatchObject({ source: "stored", lane: "team" });
    await front.agents.delete("made");
    expect((await resultOf(3)).error).toMatch(/^no executor for agent "made": add the agent/);
  });

  test("run each what they can execute, and nothing fails on the way", async () => {
    const { openNode } = await makeNodes();
    const [one, two] = [await openNode(), await openNode()];
    one.agent("writer", async () => "by one");
    two.agent("researcher", async () => "by two");
    for (const rota of [one, two]) await rota.start();
    const inputs = Array.from({ length: 20 }, (_, n) => ({
      agentId: n % 2 === 0 ? "writer" : "researcher",
      payload: n,
    }));
    const tasks = await Promise.all(
      inputs.map(async (input, n) => {
        const rota = n % 3 === 0 ? one : two;
        const { taskId, warnings } = await rota.tasks.submit(input);
        expect(warnings).toBeUndefined();
        return rota.tasks.wait(taskId);
      }),
    );
    for (const { agentId, state, result, attempts } of tasks) {
      const by = agentId === "writer" ? "by one" : "by two";
      expect({ state, result, attempts: attempts.length }).toEqual({
        state: "done",
        result: by,
        attempts: 1,
      });
    }
    // The only one that can leaves: its agent is known, and its tasks wait.
    await two.stop();
    const { taskId, warnings } = await one.tasks.submit({ agentId: "researcher", payload: 1 });
    expect(warnings).toBeUndefined();
    expect((await one.tasks.explain(taskId)).reasons).toMatchObject([
      { code: "no_executor", message: expect.stringContaining("one was last seen at") },
    ]);
    await one.schedules.create({ schedule: "every hour", message: "later", agent: "researcher" });
    const three = await openNode();
    three.agent("researcher", async () => "by three");
    await three.start();
    expect(await one.tasks.wait(taskId)).toMatchObject({
      state: "done",
      result: "by three",
      attempts: [{ number: 1 }],
    });
  });

  test("keep to a limit that was changed on another one", async () => {
    const { openNode } = await makeNodes();
    const options = { scheduler: { maxInflight: 1 } };
    const [front, back] = [await openNode(options), await openNode(options)];
    const latches: Latch[] = [];
    back.agent("worker", async () => {
      const latch = new Latch();
      latches.push(latch);
      await latch.opened;
    });
    await back.start();
    await front.tasks.submitMany(Array(4).fill({ agentId: "worker", payload: 1 }));
    await until(() => latches.length === 1, "the first to start");
    expect(await front.reload({ scheduler: { maxInflight: 3 } })).toEqual({
      changed: ["scheduler.maxInflight"],
      needsRestart: [],
    });
    await until(() => latches.length === 3, "two more to start");
    for (const latch of latches.splice(0)) latch.open();
    await until(() => latches.length === 1, "the last to start");
    latches[0]?.open();
  });

  test("run as many tasks of a lane as another node has set, each and together, as soon as that call has returned", async () => {
    const { openNode } = await makeNodes();
    const [front, back] = [await openNode(), await openNode()];
    const latches: { node: string; latch: Latch }[] = [];
    for (const [node, rota] of Object.entries({ front, back })) {
      rota.agent("worker", async () => {
        const latch = new Latch();
        latches.push({ node, latch });
        await latch.opened;
      });
      await rota.start();
    }
    await front.lanes.put("crawl", { concurrency: 1 });
    const submitted = await back.tasks.submitMany(
      Array(9).fill({ agentId: "worker", lane: "crawl", payload: 1 }),
    );
    for (const { taskId } of submitted) expect((await back.tasks.get(taskId)).lane).toBe("crawl");
    await until(() => latches.length === 2, "one task on each node");
    expect(latches.map(({ node }) => node).sort()).toEqual(["back", "front"]);
    await back.lanes.put("crawl", { concurrency: 4, total: 5 });
    await until(() => latches.length === 5, "as many as the total");
    const crawl = (await front.lanes.list()).lanes.find(({ name }) => name === "crawl");
    expect(crawl).toMatchObject({ concurrency: 4, total: 5, running: 5, waiting: 4 });
    expect(crawl?.oldestWaitMs).toBeGreaterThanOrEqual(0);
    expect(await back.lanes.clear("crawl")).toEqual({ cancelled: 4 });
    expect((await front.tasks.counts()).counts).toEqual({ running: 5, cancelled: 4 });
    for (const { latch } of latches) latch.open();
    await until(async () => (await front.tasks.counts()).counts.done === 5, "all to end");
  });

  test.each([
    ["a session", { sessionKey: "s" }],
    ["a batch", {}],
  ])("start the tasks that %s admits, in any lane and on any node, without a poll", async (_what, input) => {
    const { openNode } = await makeNodes();
    // Time stands still for the nodes, and with it everything that looks now and then.
    const clock = new ManualClock();
    const nodes = [
      await openNode({ clock, lanes: { main: 1, team: 0, cron: 1 } }),
      await openNode({ clock, lanes: { main: 0, team: 1, cron: 0 } }),
    ] as const;
    const latches = new Map<string, Latch>();
    for (const rota of nodes) {
      rota.agent("worker", async (task) => {
        const latch = new Latch();
        latches.set(task.lane, latch);
        await latch.opened;
      });
      await rota.start();
    }
    const tasks = ["main", "team", "cron", "main"].map((lane) => ({
      agentId: "worker",
      message: "x",
      lane,
      ...input,
    }));
    if ("sessionKey" in input) await nodes[0].tasks.submitMany(tasks);
    else await nodes[0].tasks.submitBatch({ parallelism: 1, tasks });
    for (const { lane } of tasks) {
      await until(() => latches.size === 1, `the task in ${lane} to start`);
      expect([...latches.keys()]).toEqual([lane]);
      const latch = latches.get(lane);
      latches.clear();
      latch?.open();
    }
    await until(async () => (await nodes[1].tasks.counts()).counts.done === 4, "all to end");
  });

  test("cancel what another one runs: its signal fires", async () => {
    const { openNode } = await makeNodes();
    const [front, back] = [await openNode(), await openNode()];
    const [runs, aborted] = [new Latch(), new Latch<unknown>()];
    back.agent("worker", (_task, { signal }) => {
      runs.open();
      signal.addEventListener("abort", () => aborted.open(signal.reason.message));
      return new Promise(() => {});
    });
    await back.start();
    const { taskId } = await front.tasks.submit({ agentId: "worker", payload: 1 });
    await runs.opened;
    await front.tasks.cancel(taskId);
    expect(await aborted.opened).toBe("cancelled");
    expect(await back.tasks.get(taskId)).toMatchObject({ state: "cancelled" });
  });

  test("together run no more than the total, and each no more than its own", async () => {
    const { openNode } = await makeNodes();
    const scheduler = { workerCount: 4, maxInflight: 6, maxPerAgentInflight: 6 };
    let running = 0;
    let most = 0;
    const finished = new Latch();
    let ended = 0;
    const nodes = [await openNode({ scheduler }), await openNode({ scheduler })];
    for (const rota of nodes) {
      let own = 0;
      rota.agent("worker", async () => {
        most = Math.max(most, ++running);
        expect(++own).toBeLessThanOrEqual(4);
        await new Promise((resolve) => setImmediate(resolve));
        running -= 1;
        own -= 1;
        if (++ended === 200) finished.open();
      });
      await rota.start();
    }
    await nodes[0]?.tasks.submitMany(Array(100).fill({ agentId: "worker", payload: 1 }));
    await until(async () => (await nodes[0]?.tasks.counts())?.counts.done === 100, "the first hundred");
    await nodes[1]?.tasks.submitMany(Array(100).fill({ agentId: "worker", payload: 1 }));
    await finished.opened;
    expect(most).toBeLessThanOrEqual(6);
  });

  test("run no more of a batch at once than it may, and report its end once, between them", async () => {
    const { openNode } = await makeNodes();
    const received: unknown[] = [];
    const batchCallbackUrl = await serve((_request, response, body) => {
      received.push(JSON.parse(body));
      response.end();
    });
    const options = { webhooks: { allow: ["127.0.0.1"] } };
    const nodes = [await openNode(options), await openNode(options)] as const;
    let running = 0;
    let most = 0;
    const seen: RotaEvent[] = [];
    for (const rota of nodes) {
      rota.onEvent((event) => void seen.push(event));
      rota.agent("worker", async () => {
        most = Math.max(most, ++running);
        await new Promise((resolve) => setImmediate(resolve));
        running -= 1;
      });
      await rota.start();
    }
    const tasks = Array(40).fill({ agentId: "worker", payload: 1 });
    const { batchId } = await nodes[0].tasks.submitBatch({ parallelism: 3, batchCallbackUrl, tasks });
    const ends = () => seen.filter(({ type }) => type === "batch.completed");
    await until(
      () => ends().length === 2 && received.length === 1,
      "both nodes and the receiver to be notified",
    );
    expect(most).toBeLessThanOrEqual(3);
    expect(received).toMatchObject([
      { type: "batch.completed", batchId, parallelism: 3, counts: { done: 40 } },
    ]);
    expect(ends()[0]).toMatchObject({ batchId, counts: { done: 40 } });
    expect(ends()[1]).toEqual(ends()[0]);
    expect((await nodes[1].webhooks.deliveries()).count).toBe(1);
  });

  test("take a slot for a critical task from what another one runs", async () => {
    const { openNode } = await makeNodes();
    const options = { scheduler: { workerCount: 1 } };
    const [front, back] = [await openNode(options), await openNode(options)];
    const [runs, aborted] = [new Latch(), new Latch<unknown>()];
    back.agent("worker", ({ payload, attempts }, { signal }) => {
      if (payload === "urgent" || attempts.length > 1) return payload;
      runs.open();
      signal.addEventListener("abort", () => aborted.open(signal.reason.message));
      return new Promise(() => {});
    });
    await back.start();
    const long = await front.tasks.submit({ agentId: "worker", payload: "long", preemptible: true });
    await runs.opened;
    const urgent = await front.tasks.submit({ agentId: "worker", payload: "urgent", priority: "critical" });
    expect(await aborted.opened).toBe("pre-empted by a critical task");
    expect(await front.tasks.wait(urgent.taskId)).toMatchObject({ state: "done" });
    expect(await front.tasks.wait(long.taskId)).toMatchObject({
      state: "done",
      retryCount: 0,
      attempts: [{ outcome: "preempted" }, { outcome: "done" }],
    });
  });

  test("hand over what they ran when they stop", async () => {
    const { openNode } = await makeNodes();
    const [first, second] = [await openNode(), await openNode()];
    first.agent("worker", () => new Promise(() => {}));
    second.agent("worker", () => "done by the second");
    const started = nextEvent(first, ({ type }) => type === "task.started");
    await first.start();
    const { taskId } = await second.tasks.submit({ agentId: "worker", instruction: "go on" });
    await started;
    await second.start();
    await first.stop({ graceMs: 0 });
    expect(await second.tasks.wait(taskId)).toMatchObject({
      state: "done",
      result: "done by the second",
      retryCount: 0,
      attempts: [{ outcome: "interrupted" }, { outcome: "done" }],
    });
  });
});

describe("when all connections are cut", () => {
  test("running tasks go on, ends are stored, and new tasks are accepted", async () => {
    const { openNode, cutConnections } = await makeNodes();
    const rota = await openNode();
    const latch = new Latch<string>();
    rota.agent("worker", (task) => (task.payload === "slow" ? latch.opened : "quick"));
    const started = nextEvent(rota, ({ type }) => type === "task.started");
    await rota.start();
    const slow = await rota.tasks.submit({ agentId: "worker", payload: "slow" });
    await started;
    await cutConnections();
    latch.open("survived");
    const quick = await rota.tasks.submit({ agentId: "worker", payload: "quick" });
    await until(async () => (await rota.tasks.counts()).counts.done === 2, "both to end");
    expect(await rota.tasks.get(slow.taskId)).toMatchObject({
      result: "survived",
      attempts: [{ outcome: "done" }],
    });
    expect(await rota.tasks.get(quick.taskId)).toMatchObject({ result: "quick" });
  });

  test("readers of events miss nothing", async () => {
    const { openNode, cutConnections } = await makeNodes();
    const [rota, other] = [await openNode(), await openNode()];
    const seen: string[] = [];
    rota.onEvent(({ taskId }) => void seen.push(taskId));
    const before = await rota.tasks.submit({ payload: 1 });
    await until(() => seen.length === 1, "the first event");
    await cutConnections();
    const after = await other.tasks.submit({ payload: 2 });
    await until(() => seen.length === 2, "the second event");
    expect(seen).toEqual([before.taskId, after.taskId]);
  });
});
