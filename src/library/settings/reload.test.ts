import { describe, expect, test } from "vitest";
import { Held } from "../../../test/support/held.ts";
import { openTestRota } from "../../../test/support/rota.ts";
import { away } from "../../../test/support/storages.ts";
import { ConfigWatcher } from "../../config/config-watcher.ts";
import type { Rota } from "../../interface/rota.ts";
import type { RotaError } from "../../model/errors.ts";
import type { Task } from "../../model/task.ts";
import { settle } from "../../testing/manual-clock.ts";
import { Latch } from "../../testing/signals.ts";

function submit(rota: Rota, count: number, input: object = {}): Promise<unknown> {
  return Promise.all(
    Array.from({ length: count }, () => rota.tasks.submit({ agentId: "a", payload: 1, ...input })),
  );
}

describe("limits of admission", () => {
  test("hold for the next task, and keep what is already waiting", async () => {
    const { rota } = await openTestRota();
    await submit(rota, 3);
    expect(await rota.reload({ scheduler: { maxQueueSize: 4, maxPerAgent: 3 } })).toEqual({
      changed: ["scheduler.maxPerAgent", "scheduler.maxQueueSize"],
      needsRestart: [],
    });
    await expect(submit(rota, 1)).rejects.toMatchObject({
      code: "queue_full",
      message: "rejected: agent queue full",
      details: { maxPerAgent: 3, maxQueue: 4 },
    });
    await submit(rota, 1, { agentId: "b" });
    await expect(submit(rota, 1, { agentId: "b" })).rejects.toThrow("global queue full");
    await rota.reload({ scheduler: { maxQueueSize: 10, maxPerAgent: 10 } });
    await submit(rota, 3);
    expect((await rota.stats()).config).toMatchObject({ maxQueueSize: 10, maxPerAgent: 10 });
  });
});

describe("limits of what runs", () => {
  test("a larger `maxInflight` starts what waits at once, a smaller one waits until fewer run", async () => {
    const held = new Held();
    const { rota } = await openTestRota({
      options: { agents: { a: { executor: held.executor } }, scheduler: { maxInflight: 2, workerCount: 10 } },
    });
    await rota.start();
    await submit(rota, 12);
    expect(await held.startedAfterAWhile()).toBe(2);
    await rota.reload({ scheduler: { maxInflight: 5 } });
    expect(await held.startedAfterAWhile()).toBe(5);
    await rota.reload({ scheduler: { maxInflight: 1 } });
    await held.end(4);
    expect(held.started).toBe(5);
    await held.end();
    expect(held.started).toBe(6);
    await held.end();
    expect([held.started, held.running.length]).toEqual([7, 1]);
    expect((await rota.stats()).config.maxInflight).toBe(1);
  });

  test("`maxPerAgentInflight` holds for each agent", async () => {
    const held = new Held();
    const { rota } = await openTestRota({
      options: {
        executors: { custom: held.executor },
        scheduler: { maxPerAgentInflight: 1, workerCount: 10, maxInflight: 10 },
      },
    });
    await rota.start();
    await submit(rota, 5);
    expect(await held.startedAfterAWhile()).toBe(1);
    await rota.reload({ scheduler: { maxPerAgentInflight: 3 } });
    expect(await held.startedAfterAWhile()).toBe(3);
    expect((await rota.stats()).config.maxPerAgentFlight).toBe(3);
  });

  test("an agent's own bound follows the configuration, and goes with the agent", async () => {
    const held = new Held();
    const { rota } = await openTestRota({
      options: {
        executors: { custom: held.executor },
        agents: { a: { maxInflight: 1 } },
        scheduler: { workerCount: 10 },
      },
    });
    await rota.start();
    await submit(rota, 9);
    expect(await held.startedAfterAWhile()).toBe(1);
    await rota.reload({ agents: { a: { maxInflight: 2 } } });
    expect(await held.startedAfterAWhile()).toBe(2);
    expect(await rota.reload({ agents: {} })).toMatchObject({ changed: ["agents.a"] });
    expect(await held.startedAfterAWhile()).toBe(9);
  });
});

test("`agingSec` reorders the waiting tasks, and a 0 switches it off", async () => {
  const held = new Held();
  const order: unknown[] = [];
  const { rota, clock } = await openTestRota({ options: { scheduler: { workerCount: 1 } } });
  rota.agent("a", ({ payload }) => {
    order.push(payload);
    return held.executor();
  });
  await rota.start();
  await submit(rota, 1, { payload: "first" });
  await submit(rota, 1, { payload: "old", priority: "low" });
  await clock.advance(60_000);
  await submit(rota, 1, { payload: "new", priority: "high" });
  expect(await rota.reload({ scheduler: { agingSec: 20 } })).toEqual({
    changed: ["scheduler.agingSec"],
    needsRestart: [],
  });
  await held.end(1);
  await submit(rota, 1, { payload: "older", priority: "low" });
  expect((await rota.reload({ scheduler: { agingSec: 0 } })).changed).toEqual(["scheduler.agingSec"]);
  await held.end(1);
  await held.end(1);
  await held.end(1);
  expect(order).toEqual(["first", "old", "new", "older"]);
});

describe("lanes", () => {
  test("grow at once and shrink as tasks end, while those that run go on", async () => {
    const held = new Held();
    const { rota } = await openTestRota({
      options: { executors: { message: held.executor }, lanes: { main: 2 } },
    });
    await rota.start();
    await Promise.all([1, 2, 3, 4, 5, 6, 7, 8].map(() => rota.tasks.submit({ message: "hello" })));
    expect(await held.startedAfterAWhile()).toBe(2);
    await rota.reload({ lanes: { main: 4 } });
    expect(await held.startedAfterAWhile()).toBe(4);
    await rota.reload({ lanes: { main: 1 } });
    await held.end(3);
    expect([held.started, held.running.length]).toEqual([4, 1]);
    await held.end();
    expect([held.started, held.running.length]).toEqual([5, 1]);
    await rota.reload({ lanes: { main: 0 } });
    await held.end();
    expect(held.started).toBe(5);
    await rota.reload({ lanes: { main: { concurrency: 9, total: 2 } } });
    expect(await held.startedAfterAWhile()).toBe(7);
    await rota.reload({ lanes: { main: 9 } });
    expect(await held.startedAfterAWhile()).toBe(8);
  });

  test("a new one is there for the next task", async () => {
    const { rota } = await openTestRota();
    await rota.start();
    const before = await rota.tasks.submit({ lane: "fresh", payload: 1 });
    expect((await rota.tasks.wait(before.taskId)).lane).toBe("main");
    expect(await rota.reload({ lanes: { fresh: 1 } })).toMatchObject({ changed: ["lanes.fresh"] });
    const after = await rota.tasks.submit({ lane: "fresh", payload: 1 });
    expect(await rota.tasks.wait(after.taskId)).toMatchObject({ lane: "fresh", state: "done" });
  });

  test("one that left still runs what waits in it; new tasks that name it go to `main`", async () => {
    const held = new Held();
    const { rota, log } = await openTestRota({
      options: { executors: { custom: held.executor }, lanes: { mine: 1 } },
    });
    await rota.start();
    await submit(rota, 3, { lane: "mine" });
    expect(await held.startedAfterAWhile()).toBe(1);
    await rota.reload({ lanes: {} });
    expect(log.messages("info")).toContain(
      'the lane "mine" was removed from the configuration: its waiting tasks still run; new tasks that name it go to "main"',
    );
    const { taskId } = await rota.tasks.submit({ agentId: "a", payload: 1, lane: "mine" });
    expect((await rota.tasks.get(taskId)).lane).toBe("main");
    while (held.running.length > 0) await held.end(held.running.length);
    expect(await rota.tasks.counts()).toEqual({ counts: { done: 4 }, total: 4 });
  });
});

test("a shorter retention forgets at once, a longer one keeps", async () => {
  const { rota, clock } = await openTestRota();
  await rota.start();
  const { taskId } = await rota.tasks.submit({ payload: 1 });
  await rota.tasks.wait(taskId);
  await rota.reload({ scheduler: { resultTTLSec: 600 } });
  await clock.advance(400_000);
  expect((await rota.tasks.get(taskId)).state).toBe("done");
  expect((await rota.stats()).config.resultTTL).toBe("10m0s");
  await rota.reload({ scheduler: { resultTTLSec: 60 } });
  await settle();
  await expect(rota.tasks.get(taskId)).rejects.toThrow("task not found");
  expect((await rota.stats()).config.resultTTL).toBe("1m0s");
});

test("retries and timeouts are those of the next task that does not say", async () => {
  const { rota } = await openTestRota();
  const task = async () => rota.tasks.get((await rota.tasks.submit({ instruction: "x" })).taskId);
  const before = await task();
  const { changed } = await rota.reload({
    retry: { maxRetries: 0, backoffMs: 5 },
    timeouts: { defaultMs: 5_000, maxMs: 9_000 },
  });
  expect(changed).toEqual(["retry.backoffMs", "retry.maxRetries", "timeouts.defaultMs", "timeouts.maxMs"]);
  expect((await task()).retryPolicy).toMatchObject({ maxRetries: 0, backoffMs: 5, backoffMultiplier: 2 });
  expect((await task()).timeout).toBe(5_000);
  expect(await rota.tasks.get(before.taskId)).toEqual(before);
  await expect(rota.tasks.submit({ payload: 1, timeout: 10_000 })).rejects.toThrow("from 1000 to 9000");
});

test("sessions take messages as the configuration says by then, one by one", async () => {
  const { rota } = await openTestRota({ options: { sessions: { cap: 3 } } });
  await rota.sessions.update("a", { drop: "new" });
  const { changed } = await rota.reload({ sessions: { debounceMs: 0, mode: "followup", drop: "old" } });
  expect(changed).toEqual(["sessions.debounceMs", "sessions.mode"]);
  expect(await rota.sessions.get("a")).toMatchObject({
    mode: "followup",
    cap: 3,
    drop: "new",
    debounceMs: 0,
    maxConcurrent: 1,
  });
  expect(await rota.sessions.send("a", { message: "hi" })).toMatchObject({ state: "queued" });
  await expect(rota.reload({ sessions: { cap: 0 } })).rejects.toThrow("`sessions.cap` must be an integer");
});

describe("agents and executors", () => {
  async function ended(rota: Rota, input: object): Promise<Task> {
    const { taskId } = await rota.tasks.submit({ payload: 1, ...input });
    return rota.tasks.wait(taskId);
  }

  test("are taken whole: what came is used, what left is gone", async () => {
    const { rota } = await openTestRota({
      options: {
        agents: { a: { executor: () => "a" }, b: { executor: () => "b" } },
        executors: { custom: () => "custom" },
      },
    });
    await rota.start();
    const { changed } = await rota.reload({
      agents: { b: { executor: () => "new b", lane: "team" }, c: { executor: () => "c" } },
      executors: {},
    });
    expect(changed).toEqual(["agents.a", "agents.b", "agents.c", "executors.custom"]);
    // It had an executor: its tasks wait for a node that has it.
    const left = await rota.tasks.submit({ agentId: "a", payload: 1 });
    expect(await rota.tasks.explain(left.taskId)).toMatchObject({ reasons: [{ code: "no_executor" }] });
    expect(await ended(rota, { agentId: "b" })).toMatchObject({ result: "new b", lane: "team" });
    expect(await ended(rota, { agentId: "c" })).toMatchObject({ result: "c" });
  });

  test("a task that runs goes on with the executor it began with", async () => {
    const latch = new Latch<string>();
    const { rota } = await openTestRota({ options: { agents: { a: { executor: () => latch.opened } } } });
    await rota.start();
    const { taskId } = await rota.tasks.submit({ agentId: "a", payload: 1 });
    await settle();
    await rota.reload({ agents: { a: { executor: () => "new" } } });
    latch.open("old");
    expect((await rota.tasks.wait(taskId)).result).toBe("old");
    expect((await ended(rota, { agentId: "a" })).result).toBe("new");
  });

  test("`maxQueued` stands in for `maxPerAgent`", async () => {
    const { rota } = await openTestRota();
    await rota.reload({ agents: { a: { maxQueued: 2 } } });
    await submit(rota, 2);
    await expect(submit(rota, 1)).rejects.toMatchObject({ details: { maxPerAgent: 2 } });
    await submit(rota, 3, { agentId: "b" });
  });

  test("those of the program stay, whatever the configuration says of them", async () => {
    const held = new Held();
    const { rota } = await openTestRota({ options: { scheduler: { workerCount: 10 } } });
    rota.agent("a", { maxInflight: 1 }, held.executor);
    await rota.start();
    await rota.reload({ agents: { a: { executor: () => "configured", maxInflight: 5 } } });
    await submit(rota, 3);
    expect(await held.startedAfterAWhile()).toBe(1);
    await rota.reload({ agents: {} });
    expect(await held.startedAfterAWhile()).toBe(1);
    await held.end();
    expect(held.started).toBe(2);
  });
});

describe("what cannot be", () => {
  test("changes nothing at all, and everything that is wrong is reported at once", async () => {
    const writes: string[] = [];
    const { rota } = await openTestRota({
      options: { scheduler: { maxPerAgent: 2 } },
      meddler: { before: ({ operation }) => void (/configure/.test(operation) && writes.push(operation)) },
    });
    await rota.start();
    writes.length = 0;
    const before = await rota.stats();
    const refused = await rota
      .reload({
        scheduler: { maxPerAgent: 50, maxInflight: -1 },
        lanes: { mine: 3, bad: "x" as never },
        agents: { b: { maxInflight: 0 } },
        retrys: {},
      } as never)
      .catch((error: RotaError) => error);
    expect(refused).toMatchObject({ code: "invalid_field" });
    expect((refused as RotaError).details?.["faults"]).toEqual([
      "unknown option `retrys`: did you mean `retry`?",
      "`scheduler.maxInflight` must be an integer from 1 to 10000000, not -1",
      expect.stringContaining("`lanes.bad` must be a number or an object"),
      "`agents.b.maxInflight` must be an integer from 1 to 10000000, not 0",
    ]);
    expect(writes).toEqual([]);
    expect(await rota.stats()).toEqual(before);
    expect(await rota.health()).toMatchObject({
      config: { ok: false, error: expect.stringContaining("has 4 faults") },
    });
    await rota.reload({});
    expect(await rota.health()).toMatchObject({ config: { ok: true } });
  });

  test("is refused once it was stopped", async () => {
    const { rota } = await openTestRota();
    await rota.start();
    await rota.stop();
    await expect(rota.reload({})).rejects.toMatchObject({ code: "draining" });
  });

  test("options of the program alone are passed over", async () => {
    const { rota, log, clock } = await openTestRota();
    expect(await rota.reload({ log, clock, random: Math.random } as never)).toEqual({
      changed: [],
      needsRestart: [],
    });
  });
});

describe("the storage", () => {
  test("is not written to when nothing changed that it needs to know", async () => {
    const writes: string[] = [];
    const agents = { a: { maxInflight: 2, executor: { type: "http", url: "http://127.0.0.1:9/" } } } as const;
    const { rota } = await openTestRota({
      options: { agents, lanes: { main: 5 } },
      meddler: { before: ({ operation }) => void writes.push(operation) },
    });
    await rota.start();
    await settle();
    writes.length = 0;
    expect((await rota.reload({ agents: structuredClone(agents), lanes: { main: 5 } })).changed).toEqual([]);
    await rota.reload({ scheduler: { maxPerAgent: 5 }, shutdownGraceSec: 3, retry: { maxRetries: 1 } });
    await rota.reload({ lanes: { main: 6 } });
    expect(writes.filter((operation) => /configure|agents/.test(operation))).toEqual([]);
  });

  test("that fails half way leaves everything as it was", async () => {
    let failing: string | null = null;
    const bounds: Record<string, (number | null)[]> = { a: [], b: [] };
    const totals = new Map<string, number | null>();
    const { rota, storage } = await openTestRota({
      options: { agents: { a: { maxInflight: 1 }, b: { maxInflight: 1 } } },
      meddler: {
        before: ({ operation, params }) => {
          if (operation === "agents.configure" && params.agent === failing && params.maxInflight !== 1)
            throw away();
        },
        after: ({ operation, params }) => {
          if (operation === "agents.configure") bounds[params.agent]?.push(params.maxInflight);
        },
      },
    });
    await rota.start();
    failing = "b";
    const options = {
      scheduler: { maxInflight: 3, maxPerAgent: 7 },
      agents: { a: { maxInflight: 2 }, b: { maxInflight: 2 } },
    };
    await expect(rota.reload(options)).rejects.toMatchObject({ code: "storage_unavailable" });
    for (const { name, total } of await storage.lanes.list()) totals.set(name, total);
    expect(totals.get("tasks")).toBe(20);
    expect(bounds).toEqual({ a: [1, 2, 1], b: [1, 1] });
    expect((await rota.stats()).config).toMatchObject({ maxInflight: 20, maxPerAgent: 100 });
    expect((await rota.agents.get("a")).maxInflight).toBe(1);
    failing = null;
    expect((await rota.reload(options)).changed).toHaveLength(4);
    expect([bounds["a"]?.at(-1), bounds["b"]?.at(-1)]).toEqual([2, 2]);
  });

  test("that is away for long is made right by the next reload, whatever that changes", async () => {
    let broken = false;
    const { rota, storage } = await openTestRota({
      options: { agents: { a: { maxInflight: 1 } } },
      meddler: {
        // The storage does the first write, but its response and that of its undoing are lost.
        after: ({ operation }) => {
          if (broken && operation === "lanes.configure") throw away();
        },
        before: ({ operation, params }) => {
          if (broken && operation === "lanes.configure" && params.lanes[0].total !== 3) throw away();
        },
      },
    });
    await rota.start();
    broken = true;
    const total = async () => (await storage.lanes.list()).find(({ name }) => name === "tasks")?.total;
    await expect(rota.reload({ scheduler: { maxInflight: 3 } })).rejects.toThrow();
    expect(await total()).toBe(3);
    broken = false;
    expect((await rota.reload({})).changed).toEqual([]);
    expect(await total()).toBe(20);
  });
});

test("two at once come one after the other, and the later one stays", async () => {
  const latch = new Latch();
  let held = false;
  const { rota } = await openTestRota({
    meddler: {
      before: async ({ operation }) => {
        if (operation !== "lanes.configure" || !held) return;
        held = false;
        await latch.opened;
      },
    },
  });
  await rota.start();
  held = true;
  const first = rota.reload({ scheduler: { maxInflight: 5 }, agents: { a: {} } });
  const second = rota.reload({ scheduler: { maxInflight: 6 }, agents: { b: {} } });
  await settle();
  latch.open();
  expect(await first).toEqual({ changed: ["agents.a", "scheduler.maxInflight"], needsRestart: [] });
  expect(await second).toEqual({
    changed: ["agents.a", "agents.b", "scheduler.maxInflight"],
    needsRestart: [],
  });
  expect((await rota.stats()).config.maxInflight).toBe(6);
});

test("many at once, in the middle of everything, end as the last one says", async () => {
  const held = new Held();
  const { rota } = await openTestRota({
    options: { executors: { custom: held.executor }, scheduler: { workerCount: 50 } },
  });
  await rota.start();
  await submit(rota, 60);
  const reloads = Array.from({ length: 30 }, (_, index) =>
    rota.reload({
      scheduler: { maxInflight: index + 1 },
      lanes: { main: index },
      agents: { [`a${index}`]: {} },
    }),
  );
  await held.end(5);
  await Promise.all(reloads);
  expect((await rota.stats()).config.maxInflight).toBe(30);
  expect((await rota.agents.list()).agents.map(({ id }) => id)).toEqual(["a29", "index"]);
  while (held.running.length > 0) await held.end(held.running.length);
  expect(await rota.tasks.counts()).toEqual({ counts: { done: 60 }, total: 60 });
});

test("what needs a restart is logged once for each change, and stays as it is", async () => {
  const { rota, log } = await openTestRota();
  await rota.start();
  const warnings = () => log.messages("warn");
  const { needsRestart } = await rota.reload({ scheduler: { strategy: "priority-fifo", workerCount: 9 } });
  expect(needsRestart).toEqual(["scheduler.strategy", "scheduler.workerCount"]);
  expect(warnings()).toEqual([
    "`scheduler.strategy`, `scheduler.workerCount` changed, which takes effect when Rota is started again",
  ]);
  await rota.reload({ scheduler: { strategy: "priority-fifo", workerCount: 9 } });
  expect(warnings()).toHaveLength(1);
  await rota.reload({ scheduler: { strategy: "priority-fifo", workerCount: 10 } });
  expect(warnings()).toHaveLength(2);
  expect((await rota.reload({ scheduler: { strategy: "fair-fifo", workerCount: 4 } })).needsRestart).toEqual(
    [],
  );
  expect(warnings()).toHaveLength(2);
  await rota.reload({ storage: "sqlite:other.db", scheduler: { enabled: false } });
  expect(warnings()).toHaveLength(3);
  expect((await rota.stats()).config).toMatchObject({ strategy: "fair-fifo", workerCount: 4 });
  expect((await rota.tasks.submit({ payload: 1 })).state).toBe("queued");
});

test("before the start it changes what the start begins with", async () => {
  const held = new Held();
  const { rota } = await openTestRota({ options: { agents: { a: { maxInflight: 9 } } } });
  await rota.reload({
    agents: { a: { executor: held.executor, maxInflight: 2 } },
    lanes: { fresh: 5 },
  });
  await rota.start();
  await submit(rota, 5, { lane: "fresh" });
  expect(await held.startedAfterAWhile()).toBe(2);
});

test("a stop while it is under way waits for it", async () => {
  const latch = new Latch();
  let holding = false;
  const { rota } = await openTestRota({
    meddler: {
      before: ({ operation }) => (holding && operation === "lanes.configure" ? latch.opened : undefined),
    },
  });
  await rota.start();
  holding = true;
  const reloaded = rota.reload({ scheduler: { maxInflight: 2 } });
  const stopped = rota.stop();
  await settle();
  expect(rota.state).toBe("drained");
  latch.open();
  expect((await reloaded).changed).toEqual(["scheduler.maxInflight"]);
  await stopped;
  expect(rota.state).toBe("stopped");
});

test("a watcher reports a fault once, by the log and by health, until it changes or is mended", async () => {
  let config: unknown = { scheduler: { maxInflight: 5 } };
  const { rota, clock, log } = await openTestRota();
  await rota.start();
  const watcher = new ConfigWatcher(
    30_000,
    () => {
      if (config instanceof Error) throw config;
      return config as { scheduler: { maxInflight: number } };
    },
    rota,
    { clock },
  );
  watcher.start();
  await settle();
  expect((await rota.stats()).config.maxInflight).toBe(5);
  config = { scheduler: { maxInflight: -5 } };
  await clock.advance(90_000);
  const sentence =
    "the configuration has a fault: `scheduler.maxInflight` must be an integer from 1 to 10000000, not -5";
  expect(log.messages("error")).toEqual([`the configuration is invalid and was not applied: ${sentence}`]);
  expect((await rota.health()).config).toEqual({ ok: false, error: sentence });
  expect((await rota.stats()).config.maxInflight).toBe(5);
  config = new Error("there is no such file");
  await clock.advance(90_000);
  expect(log.messages("error")).toHaveLength(2);
  expect((await rota.health()).config).toEqual({ ok: false, error: "there is no such file" });
  config = { scheduler: { maxInflight: 6 } };
  await clock.advance(90_000);
  expect((await rota.health()).config).toEqual({ ok: true });
  expect(log.messages("info").filter((message) => /again/.test(message))).toEqual([
    "the configuration is valid again",
  ]);
  expect((await rota.stats()).config.maxInflight).toBe(6);
  watcher.stop();
});
