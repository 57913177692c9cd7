import { setTimeout as sleep } from "node:timers/promises";
import { RotaClient, RotaWorker } from "../../src/client/index.ts";
import { silentLog } from "../../src/model/log.ts";
import { type EmptyStorage, type NewStorage, withStorage } from "../empty-storage.ts";
import type { Counter } from "../idle-cost.ts";
import { ServerCpu } from "../peers/server-cpu.ts";
import { perSecond } from "../workload.ts";
import { ServerProcess, WorkersProcess } from "./processes.ts";

/** The processes that share the workers of a drain. */
const PROCESSES = 2;
/** Between samples: the end of the one before is written by then, and the worker asks again. */
const PAUSE_MS = 10;
/** Not counted: code that runs for the first times is slow. */
const WARM_UP = 100;
/** PostgreSQL counts what a connection has done up to ten seconds later: what starting took is counted by then. */
const SETTLE_MS = 12_000;

export interface WorkersParams {
  readonly workers: number;
  /** Of each worker. */
  readonly slots: number;
}

export interface WorkersDrain {
  /** Tasks a second, from the first start of a handler until all ends of a backlog are written down. */
  readonly rate: number;
  /** Processor time of each side, in microseconds a task. Of the database: zero for SQLite, which is a part of the server. */
  readonly serverCpu: number;
  readonly workersCpu: number;
  readonly databaseCpu: number;
}

export function measureWorkersDrain(
  newStorage: NewStorage,
  { tasks, workers, slots, taskMs = 0 }: WorkersParams & { readonly tasks: number; readonly taskMs?: number },
): Promise<WorkersDrain> {
  return withStorage(newStorage, async (target) => {
    const server = await ServerProcess.open(target.url, { slots: workers * slots });
    const { url } = server;
    const processes = await Promise.all(
      Array.from({ length: PROCESSES }, () =>
        WorkersProcess.open({ url, workers: workers / PROCESSES, slots, taskMs }),
      ),
    );
    await server.load(tasks);
    await target.settle();
    const database = await ServerCpu.of(target.url);
    const before = await database.read();
    const cpuOf = async (each: { cost(): Promise<{ readonly cpuMs: number }> }) => (await each.cost()).cpuMs;
    const serverBefore = await cpuOf(server);
    const workersBefore = sum(await Promise.all(processes.map(cpuOf)));
    const allRan = new Promise<void>((resolve) => {
      for (const each of processes)
        each.onRan = () => {
          if (sum(processes.map(({ ran }) => ran)) >= tasks) resolve();
        };
    });
    await Promise.all(processes.map((each) => each.start()));
    await allRan;
    while ((await server.done()) < tasks) await sleep(1);
    const elapsedMs =
      performance.timeOrigin + performance.now() - Math.min(...processes.map(({ firstAt }) => firstAt));
    const perTask = (ms: number) => (ms * 1_000) / tasks;
    const drain = {
      rate: perSecond(tasks, elapsedMs),
      serverCpu: perTask((await cpuOf(server)) - serverBefore),
      workersCpu: perTask(sum(await Promise.all(processes.map(cpuOf))) - workersBefore),
      databaseCpu: perTask(await database.readMs(before)),
    };
    await Promise.all(processes.map((each) => each.leave()));
    await server.leave();
    return drain;
  });
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

/** Milliseconds from submitting over HTTP to the start of the handler in a worker of this process, one task at a time. */
export function measurePickUp(newStorage: NewStorage, { samples }: { samples: number }): Promise<number[]> {
  return withStorage(newStorage, async (target) => {
    const server = await ServerProcess.open(target.url, { slots: 4 });
    const { url } = server;
    let started: (at: number) => void = () => {};
    const handler = () => started(performance.now());
    const worker = new RotaWorker({ url, agents: { "agent-0": handler }, slots: 4, log: silentLog });
    const client = new RotaClient({ url });
    await worker.start();
    const latencies: number[] = [];
    for (let n = 0; n < WARM_UP + samples; n++) {
      const start = new Promise<number>((resolve) => {
        started = resolve;
      });
      const begun = performance.now();
      await client.tasks.submit({ agentId: "agent-0", payload: { n } });
      latencies.push((await start) - begun);
      await sleep(PAUSE_MS);
    }
    await worker.stop();
    await server.leave();
    return latencies.slice(WARM_UP);
  });
}

export interface IdleWorkersCost {
  /** Of one core, for the server. */
  readonly cpuPercent: number;
  /** Statements of SQLite, or transactions of PostgreSQL, a second. */
  readonly perSecond: number;
  /** How many of them the workers add to those of the server alone. */
  readonly addedPerSecond: number;
}

/** What workers that only wait cost the server. `counter`: counts instead of the statements of SQLite. */
export function measureIdleWorkers(
  newStorage: NewStorage,
  {
    workers,
    slots,
    seconds,
    counter,
  }: WorkersParams & {
    readonly seconds: number;
    readonly counter: ((target: EmptyStorage) => Promise<Counter>) | null;
  },
): Promise<IdleWorkersCost> {
  return withStorage(newStorage, async (target) => {
    const server = await ServerProcess.open(target.url, { slots: workers * slots });
    const counting = (await counter?.(target)) ?? null;
    const read = async () => {
      const { cpuMs, statements } = await server.cost();
      return { cpuMs, count: counting === null ? statements : await counting.read(), at: performance.now() };
    };
    const measure = async () => {
      await sleep(SETTLE_MS);
      const before = await read();
      await sleep(seconds * 1_000);
      const after = await read();
      const elapsedMs = after.at - before.at;
      return {
        cpuPercent: ((after.cpuMs - before.cpuMs) / elapsedMs) * 100,
        perSecond: perSecond(after.count - before.count, elapsedMs),
      };
    };
    const alone = await measure();
    const waiting = await WorkersProcess.open({ url: server.url, workers, slots, taskMs: 0 });
    await waiting.start();
    const withWorkers = await measure();
    await counting?.close();
    await waiting.leave();
    await server.leave();
    return { ...withWorkers, addedPerSecond: withWorkers.perSecond - alone.perSecond };
  });
}
