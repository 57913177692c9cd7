import { describe, expect, test } from "vitest";
import type { ReloadOptions, RotaOptions } from "../../interface/options.ts";
import type { RotaError } from "../../model/errors.ts";
import { ManualClock } from "../../testing/manual-clock.ts";
import { resolveAgain, resolveSettings, type Settings, withOptions } from "./settings.ts";
import { runningOptions, settingsChanges } from "./settings-changes.ts";

const clock = new ManualClock();

function resolve(options: RotaOptions): Settings {
  return resolveSettings(options, { clock });
}

test("without options everything has its default", () => {
  const settings = resolve({});
  expect(settings).toMatchObject({
    limits: { maxQueueSize: 1_000, maxQueueSizeTotal: 100_000, maxPerAgent: 100 },
    retryPolicy: { maxRetries: 3, backoffMs: 1_000, backoffMultiplier: 2, maxBackoffMs: 60_000, jitter: 0 },
    timeoutMs: 120_000,
    timeoutMaxMs: 600_000,
    sessions: { mode: "queue", cap: 10, drop: "old", debounceMs: 800, maxConcurrent: 1 },
    shutdownGraceMs: 30_000,
    runRetentionMs: 90 * 24 * 60 * 60 * 1_000,
  });
  expect(
    settings.lanes.map(({ name, concurrency, total, perAgent, perTenant }) => [
      name,
      concurrency,
      total,
      perAgent,
      perTenant,
    ]),
  ).toEqual([
    ["tasks", 4, 20, 10, 16],
    ["main", 30, null, null, null],
    ["subagent", 50, null, null, null],
    ["team", 100, null, null, null],
    ["cron", 30, null, null, null],
  ]);
  expect(settings.resultTTLSec({ durable: false })).toBe(300);
  expect(settings.resultTTLSec({ durable: true })).toBe(2_592_000);
});

test("`maxQueueSizeTotal` is at least twice `maxQueueSize` by default", () => {
  const total = (scheduler: RotaOptions["scheduler"] = {}) => resolve({ scheduler }).limits.maxQueueSizeTotal;
  expect(total({ maxQueueSize: 60_000 })).toBe(120_000);
  expect(total({ maxQueueSize: 60_000, maxQueueSizeTotal: 7 })).toBe(7);
  expect(total({ maxQueueSizeTotal: 0 })).toBe(100_000);
});

test("options take the place of defaults, one by one", () => {
  const settings = resolve({
    scheduler: { strategy: "priority-fifo", workerCount: 8, maxInflight: 9, resultTTLSec: 60, agingSec: 90 },
    lanes: { main: 5, cron: { concurrency: 3, total: 7 }, mine: 2 },
    retry: { maxRetries: 1 },
    timeouts: { maxMs: 60_000 },
    tenants: { maxLaneShare: 0.5 },
    shutdownGraceSec: 1.5,
  });
  expect(settings.lanes).toMatchObject([
    {
      name: "tasks",
      concurrency: 8,
      total: 9,
      perAgent: 10,
      perTenant: 4,
      strategy: "priority-fifo",
      agingMs: 90_000,
    },
    { name: "main", concurrency: 5, total: null },
    { name: "subagent", concurrency: 50 },
    { name: "team", concurrency: 100 },
    { name: "cron", concurrency: 3, total: 7, perTenant: 3 },
    { name: "mine", concurrency: 2, total: null, strategy: "priority-fifo", agingMs: 90_000 },
  ]);
  expect(settings.retryPolicy).toMatchObject({ maxRetries: 1, backoffMs: 1_000 });
  expect([settings.timeoutMs, settings.timeoutMaxMs, settings.shutdownGraceMs]).toEqual([
    60_000, 60_000, 1_500,
  ]);
  expect(settings.resultTTLSec({ durable: true })).toBe(60);
});

const REFUSED: [unknown, string][] = [
  [
    { scheduler: { agingSec: 2_592_001 } },
    "`scheduler.agingSec` must be an integer of seconds from 0 to 2592000, not 2592001",
  ],
  [{ schduler: {} }, "unknown option `schduler`: did you mean `scheduler`?"],
  [{ scheduler: { workerCont: 3 } }, "did you mean `scheduler.workerCount`?"],
  [{ scheduler: { maxInflight: -1 } }, "`scheduler.maxInflight` must be an integer from 1"],
  [{ scheduler: { maxQueueSize: "many" } }, "`scheduler.maxQueueSize` must be an integer"],
  [{ scheduler: { strategy: "fifo" } }, "`scheduler.strategy` must be one of fair-fifo, priority-fifo"],
  [{ scheduler: { enabled: "yes" } }, "`scheduler.enabled` must be true or false"],
  [{ scheduler: 4 }, "`scheduler` must be an object"],
  [{ lanes: { tasks: 4 } }, "`lanes.tasks` is described by `scheduler.workerCount`"],
  [{ lanes: { main: "many" } }, "`lanes.main` must be a number or an object"],
  [{ lanes: { main: {} } }, "`lanes.main.concurrency` is missing: it must be an integer"],
  [{ lanes: { main: { concurrency: 1, max: 2 } } }, "unknown option `lanes.main.max`"],
  [{ retry: { maxRetries: -1 } }, "`retry.maxRetries` must be an integer from 0 to 100"],
  [{ timeouts: { defaultMs: 5 } }, "`timeouts.defaultMs` must be an integer of milliseconds from 1000"],
  [
    { sessions: { mode: "merge" } },
    "`sessions.mode` must be one of queue, followup, interrupt, steer, collect",
  ],
  [{ sessions: { steerMs: 0 } }, "`sessions.steerMs` must be an integer of milliseconds from 1"],
  [{ sessions: { cap: 10_001 } }, "`sessions.cap` must be an integer from 1 to 10000, not 10001"],
  [{ sessions: { drop: "none" } }, "`sessions.drop` must be one of old, new"],
  [{ sessions: { debounceMs: 60_001 } }, "`sessions.debounceMs` must be an integer of milliseconds from 0"],
  [{ sessions: { maxConcurrent: 0 } }, "`sessions.maxConcurrent` must be an integer from 1 to 1000"],
  [{ sessions: { debounce: 5 } }, "did you mean `sessions.debounceMs`?"],
  [{ schedules: { runRetentionDays: 0 } }, "`schedules.runRetentionDays` must be an integer of days from 1"],
  [{ schedules: { retentionDays: 5 } }, "did you mean `schedules.runRetentionDays`?"],
  [{ estimateTokens: {} }, "`estimateTokens` must be a function"],
  [{ shutdownGraceSec: -1 }, "`shutdownGraceSec` must be a number of seconds from 0"],
  [{ storage: "mysql://user:secret@x/" }, '`storage` must be "sqlite:rota.db"'],
  [{ agents: { "..": {} } }, "`agents...`: the id of an agent is 1 to 128 characters"],
  [{ agents: { a: { maxInFlight: 1 } } }, "did you mean `agents.a.maxInflight`?"],
  [{ agents: { a: { contextWindow: 0 } } }, "`agents.a.contextWindow` must be an integer from 1"],
  [{ agents: { a: { maxQueued: 0 } } }, "`agents.a.maxQueued` must be an integer from 1"],
  [{ agents: { a: { lane: 5 } } }, "`agents.a.lane` must be a string"],
  [{ agents: { a: 5 } }, "`agents.a` must be an object"],
  [{ agents: [] }, "`agents` must be an object of agents, not an array"],
  [{ agents: { a: { executor: { type: "ecko" } } } }, "did you mean `echo`?"],
  [{ executors: { mesage: { type: "echo" } } }, "did you mean `executors.message`?"],
  [
    { executors: { message: { type: "http", url: 5 } } },
    "`executors.message.url` must be an http or https URL",
  ],
  [
    { executors: { message: { type: "worker" } } },
    "`executors.message.type` must not be worker: workers run agents",
  ],
  [{ executors: 5 }, "`executors` must be an object of executors, not 5"],
];

test("a number of `scheduler` that is 0 is one that was left out", () => {
  const zeros = { maxQueueSize: 0, maxPerAgent: 0, maxInflight: 0, maxPerAgentInflight: 0, resultTTLSec: 0 };
  expect(resolve({ scheduler: { ...zeros, workerCount: 0 } }).scheduler).toEqual(resolve({}).scheduler);
  expect(() => resolve({ scheduler: { enabled: 0 } } as unknown as RotaOptions)).toThrow(
    "must be true or false",
  );
});

test.each(REFUSED)("refuses %j, at the start and later", (options, message) => {
  expect(() => resolve(options as RotaOptions)).toThrow(message);
  expect(() => resolveAgain(options as ReloadOptions, resolve({}), { clock })).toThrow(message);
});

test("an agent that is configured twice, typed in two ways, is refused; one is known by its normal form", () => {
  const agents = { "U\u0308ber": { lane: "main" } };
  expect([...resolve({ agents }).agents.keys()]).toEqual(["Über"]);
  expect(() => resolve({ agents: { ...agents, Über: {} } })).toThrow("typed in two ways: keep one of them");
});

test("everything that is wrong is reported at once", () => {
  const options = {
    schduler: {},
    scheduler: { maxInflight: -1 },
    lanes: { main: "x" },
    agents: { a: { maxInflight: 0, maxQueued: 0, lane: 1, executor: { type: "x" } }, "..": {} },
    executors: { mesage: {}, custom: {} },
  };
  try {
    resolve(options as never);
    throw new Error("it was taken");
  } catch (error) {
    const faults = (error as RotaError).details?.["faults"] as string[];
    expect(faults).toHaveLength(11);
  }
});

describe("read again:", () => {
  function again(options: ReloadOptions, before: RotaOptions = {}) {
    const settings = resolve(before);
    const wanted = resolveAgain(options, settings, { clock });
    const after = withOptions(wanted, runningOptions(wanted.options, settings));
    return { ...settingsChanges(settings, wanted), before: settings, after };
  }

  test("what is left out keeps its value", () => {
    const before: RotaOptions = {
      storage: "sqlite::memory:",
      scheduler: { maxInflight: 3, strategy: "priority-fifo" },
      lanes: { mine: 2 },
      retry: { maxRetries: 1, jitter: 0.5 },
      timeouts: { defaultMs: 5_000 },
      agents: { a: { maxInflight: 1 } },
      executors: { custom: { type: "echo" } },
      shutdownGraceSec: 1,
    };
    const { changed, needsRestart, before: settings, after } = again({}, before);
    expect([changed, needsRestart]).toEqual([[], []]);
    expect(after.options).toEqual(settings.options);
    expect(after.agents).toBe(settings.agents);
    expect(after.executors).toBe(settings.executors);

    const given = {
      scheduler: { maxPerAgent: 7 },
      retry: { jitter: 0 },
      timeouts: {},
      tenants: { maxLaneShare: 0.5 },
    };
    const some = again(given, before);
    expect(some.changed).toEqual(["retry.jitter", "scheduler.maxPerAgent", "tenants.maxLaneShare"]);
    expect(some.after.scheduler).toMatchObject({ maxInflight: 3, maxPerAgent: 7 });
    expect(some.after.retryPolicy).toMatchObject({ maxRetries: 1, jitter: 0 });
    expect(some.after.timeoutMs).toBe(5_000);
  });

  test("0 keeps the numbers of `scheduler`, and is a value elsewhere", () => {
    const zeros = {
      maxQueueSize: 0,
      maxPerAgent: 0,
      maxInflight: 0,
      maxPerAgentInflight: 0,
      resultTTLSec: 0,
      workerCount: 0,
    };
    const { changed, after } = again(
      { scheduler: zeros, retry: { maxRetries: 0 }, lanes: { main: 0 }, shutdownGraceSec: 0 },
      { scheduler: { maxInflight: 3, resultTTLSec: 60, agingSec: 30 } },
    );
    expect(changed).toEqual(["lanes.main", "retry.maxRetries", "shutdownGraceSec"]);
    expect(after.scheduler).toMatchObject({ maxInflight: 3, resultTTLSec: 60, agingSec: 30, workerCount: 4 });
    expect(after.shutdownGraceMs).toBe(0);
  });

  test("what is undefined is left out", () => {
    const given = { scheduler: { maxInflight: undefined }, agents: undefined, lanes: undefined };
    expect(again(given as never, { agents: { a: {} } }).changed).toEqual([]);
  });

  test("lanes, agents and executors are taken whole", () => {
    const { changed, after } = again(
      {
        lanes: { main: 1, fresh: 2 },
        agents: { b: { maxInflight: 2 }, c: {} },
        executors: { message: { type: "echo" } },
      },
      {
        lanes: { cron: 9, gone: 2 },
        agents: { a: {}, b: {}, c: {} },
        executors: { custom: { type: "echo" }, message: { type: "echo" } },
      },
    );
    expect(changed).toEqual([
      "agents.a",
      "agents.b",
      "executors.custom",
      "lanes.cron",
      "lanes.fresh",
      "lanes.gone",
      "lanes.main",
    ]);
    expect(after.lanes.map(({ name, concurrency }) => [name, concurrency])).toEqual([
      ["tasks", 4],
      ["main", 1],
      ["subagent", 50],
      ["team", 100],
      ["cron", 30],
      ["fresh", 2],
    ]);
    expect([...after.agents.keys()]).toEqual(["b", "c"]);
    expect([...after.executors.keys()]).toEqual(["message"]);
  });

  test("an executor described as before stays the one it is, another does not", () => {
    const url = "http://127.0.0.1:9/";
    const before = { agents: { a: { executor: { type: "http", url }, maxInflight: 1 } } } as const;
    const same = again({ agents: { a: { executor: { type: "http", url }, maxInflight: 2 } } }, before);
    expect(same.changed).toEqual(["agents.a"]);
    expect(same.after.agents.get("a")?.made).toBe(same.before.agents.get("a")?.made);
    const other = again({ agents: { a: { executor: { type: "http", url: `${url}x` } } } }, before);
    expect(other.after.agents.get("a")?.made).not.toBe(other.before.agents.get("a")?.made);
  });

  test("an object that was passed, changed and passed again is another one", () => {
    const options = {
      agents: { a: { maxInflight: 1, executor: { type: "http", url: "http://a/", headers: { x: "1" } } } },
    };
    const settings = resolve(options as RotaOptions);
    options.agents.a.executor.headers.x = "2";
    const wanted = resolveAgain(options as RotaOptions, settings, { clock });
    expect(settingsChanges(settings, wanted).changed).toEqual(["agents.a"]);
  });

  test("what needs a restart is named, and stays as it runs", () => {
    const { changed, needsRestart, after } = again({
      storage: "sqlite:other.db",
      scheduler: { enabled: false, strategy: "priority-fifo", workerCount: 9, maxInflight: 5 },
    });
    expect(changed).toEqual(["scheduler.maxInflight"]);
    expect(needsRestart).toEqual([
      "scheduler.enabled",
      "scheduler.strategy",
      "scheduler.workerCount",
      "storage",
    ]);
    expect(after.options.storage).toBe("sqlite:rota.db");
    expect(after.scheduler).toMatchObject({
      enabled: true,
      strategy: "fair-fifo",
      workerCount: 4,
      maxInflight: 5,
    });
    expect(after.lanes[0]).toMatchObject({ concurrency: 4, total: 5, strategy: "fair-fifo" });
  });
});
