import { expect, test } from "vitest";
import type { RotaOptions } from "../interface/options.ts";
import { resolveSettings } from "./settings.ts";

test("without options everything has its default", () => {
  const settings = resolveSettings({});
  expect(settings).toMatchObject({
    limits: { maxQueueSize: 1_000, maxPerAgent: 100 },
    retryPolicy: { maxRetries: 3, backoffMs: 1_000, backoffMultiplier: 2, maxBackoffMs: 60_000, jitter: 0 },
    timeoutMs: 120_000,
    timeoutMaxMs: 600_000,
    shutdownGraceMs: 30_000,
  });
  expect(
    settings.lanes.map(({ name, concurrency, total, perAgent }) => [name, concurrency, total, perAgent]),
  ).toEqual([
    ["tasks", 4, 20, 10],
    ["main", 30, null, null],
    ["subagent", 50, null, null],
    ["team", 100, null, null],
    ["cron", 30, null, null],
  ]);
  expect(settings.resultTTLSec({ durable: false })).toBe(300);
  expect(settings.resultTTLSec({ durable: true })).toBe(2_592_000);
});

test("options take the place of defaults, one by one", () => {
  const settings = resolveSettings({
    scheduler: { strategy: "priority-fifo", workerCount: 8, maxInflight: 9, resultTTLSec: 60 },
    lanes: { main: 5, cron: { concurrency: 3, total: 7 }, mine: 2 },
    retry: { maxRetries: 1 },
    timeouts: { maxMs: 60_000 },
    shutdownGraceSec: 1.5,
  });
  expect(settings.lanes).toMatchObject([
    { name: "tasks", concurrency: 8, total: 9, perAgent: 10, strategy: "priority-fifo" },
    { name: "main", concurrency: 5, total: null },
    { name: "subagent", concurrency: 50 },
    { name: "team", concurrency: 100 },
    { name: "cron", concurrency: 3, total: 7 },
    { name: "mine", concurrency: 2, total: null },
  ]);
  expect(settings.retryPolicy).toMatchObject({ maxRetries: 1, backoffMs: 1_000 });
  expect([settings.timeoutMs, settings.timeoutMaxMs, settings.shutdownGraceMs]).toEqual([
    60_000, 60_000, 1_500,
  ]);
  expect(settings.resultTTLSec({ durable: true })).toBe(60);
});

test.each([
  [{ schduler: {} }, "unknown option `schduler`: did you mean `scheduler`?"],
  [{ scheduler: { workerCont: 3 } }, "did you mean `scheduler.workerCount`?"],
  [{ scheduler: { workerCount: 0 } }, "`scheduler.workerCount` must be an integer from 1"],
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
  [{ shutdownGraceSec: -1 }, "`shutdownGraceSec` must be a number of seconds from 0"],
])("refuses %j", (options, message) => {
  expect(() => resolveSettings(options as RotaOptions)).toThrow(message);
});
