import { onTestFinished } from "vitest";
import { Engine } from "../../src/engine/engine.ts";
import type { RunOptions } from "../../src/engine/schedules/run-maker.ts";
import type { Executor } from "../../src/executors/executor.ts";
import { DEFAULT_MAX_LANE_SHARE } from "../../src/model/lane.ts";
import { DEFAULT_RETRY_POLICY, type RetryPolicy } from "../../src/model/retry-policy.ts";
import { TASK_KINDS } from "../../src/model/task.ts";
import type { TaskRecord } from "../../src/model/task-record.ts";
import { StorageClock } from "../../src/services/storage-clock.ts";
import type { Abilities, FinishAndClaimParams, NewTask, Storage } from "../../src/storage/storage.ts";
import { ManualClock } from "../../src/testing/manual-clock.ts";
import { RecordingLog } from "./recording-log.ts";
import { type Meddler, meddle, openMemory } from "./storages.ts";

/** Limits that no test reaches by accident. */
export const ROOMY = { maxQueueSize: 100_000, maxQueueSizeTotal: 100_000, maxPerAgent: 100_000 };

export interface EngineParams {
  readonly executor?: Executor;
  readonly concurrency?: Record<string, number>;
  readonly meddler?: Meddler;
  readonly clock?: ManualClock;
  readonly storage?: Storage;
  /** Whether it gets the signals of the storage, as it does within Rota. */
  readonly getsSignals?: boolean;
  readonly hasAgent?: RunOptions["hasAgent"];
  /** What it can execute; left out: every kind. */
  readonly abilities?: Abilities;
  /** How many bytes its running tasks may hold; left out: any number. */
  readonly maxRunningBytes?: number;
  /** Whether it knows of a second enabled tenant; left out: no. */
  readonly hasSecondTenant?: boolean;
  /** How often the schedules of one tenant fire, if it knows of a second tenant; left out: any number. */
  readonly maxFiresPerSec?: number;
  /** Whether a caller of its process waits for tasks; left out: none does. */
  readonly isFollowed?: boolean;
  /** What its memberships are called: this, and a number from the second on. */
  readonly node?: string;
}

/** An engine on its own, with lanes `tasks`, `main` and `cron`, that ends with the test. */
export async function makeEngine(params: EngineParams = {}) {
  const { executor = () => {}, concurrency = { tasks: 4 }, meddler = {}, node = "node" } = params;
  const clock = params.clock ?? new ManualClock();
  const storage = params.storage ?? (await openMemory(clock));
  const log = new RecordingLog();
  const exchanges: FinishAndClaimParams[] = [];
  let memberships = 0;
  let ids = 0;
  await storage.lanes.configure({
    lanes: ["tasks", "main", "cron"].map((name) => ({
      name,
      total: null,
      perAgent: null,
      perTenant: null,
      strategy: "fair-fifo",
      agingMs: 0,
    })),
  });
  const watched = meddle(storage, {
    ...meddler,
    before: (call) => {
      if (call.operation === "tasks.finishAndClaim") exchanges.push(call.params);
      return meddler.before?.(call);
    },
  });
  const engine = new Engine({
    storage: watched,
    storageClock: new StorageClock({ clock, storage: watched }),
    clock,
    random: () => 0,
    log,
    newNodeId: () => (++memberships === 1 ? node : `${node}-${memberships}`),
    version: "1.2.3",
    concurrency: () => concurrency,
    maxLaneShare: () => DEFAULT_MAX_LANE_SHARE,
    hasSecondTenant: () => params.hasSecondTenant ?? false,
    maxFiresPerSec: () => params.maxFiresPerSec ?? null,
    isFollowed: () => params.isFollowed ?? false,
    limits: () => ROOMY,
    retentionMs: () => 60_000,
    runRetentionMs: () => 90 * 24 * 60 * 60 * 1_000,
    runs: {
      newTaskId: () => `tsk_${node}_${++ids}`,
      newRequestId: () => `req_${node}_${++ids}`,
      defaults: () => ({
        timeoutMs: 120_000,
        sessionMaxConcurrent: 1,
        hasLane: (lane) => lane in concurrency,
      }),
      hasAgent: params.hasAgent ?? (() => true),
      isDisabled: async (id) => (await storage.tenants.get({ id }))?.disabled ?? false,
      isFull: async () => false,
    },
    findExecutor: () => executor,
    abilities: () => params.abilities ?? { agents: new Map(), kinds: TASK_KINDS },
    noExecutorMs: () => 60_000,
    maxRunningBytes: () => params.maxRunningBytes ?? 0,
    maxLost: () => 5,
    spansLanes: ({ agent }) => agent === "spanning",
  });
  if (params.getsSignals === true) storage.subscribe((signal) => engine.onSignal(signal));
  onTestFinished(async () => {
    await Promise.race([engine.drain(0), clock.advance(60_000)]);
    await storage.close();
  });
  return {
    engine,
    clock,
    log,
    storage,
    exchanges,
    states: () => storage.tasks.counts({ tenant: "default" }),
    task: async (id: string): Promise<TaskRecord> => {
      const task = await storage.tasks.get({ tenant: "default", id });
      if (task === null) throw new Error(`there is no task ${id}`);
      return task;
    },
  };
}

let last = 0;

export interface TaskOverrides extends Partial<NewTask> {
  readonly payload?: unknown;
  readonly timeoutMs?: number;
  readonly retryPolicy?: Partial<RetryPolicy>;
}

export function newTask(overrides: TaskOverrides = {}): NewTask {
  const { payload = null, timeoutMs = null, retryPolicy = {}, ...task } = overrides;
  return {
    id: `task-${++last}`,
    tenant: "default",
    agent: "a",
    lane: "tasks",
    priority: 2,
    runAt: null,
    deadline: null,
    deadlineAfterMs: null,
    maxQueued: null,
    origin: "task",
    schedule: null,
    session: null,
    preemptible: false,
    concurrencyKey: null,
    batch: null,
    callbackUrl: null,
    dependsOn: [],
    idempotency: null,
    maxRetriesIfLost: 0,
    spec: {
      work: { kind: "custom", payload },
      retryPolicy: { ...DEFAULT_RETRY_POLICY, ...retryPolicy },
      timeoutMs,
    },
    ...task,
  };
}

export function manyTasks(count: number): NewTask[] {
  return Array.from({ length: count }, () => newTask());
}
