import { onTestFinished } from "vitest";
import type { Clock } from "../../model/clock.ts";
import type { DeliveryShares } from "../../model/delivery-shares.ts";
import type { Lane } from "../../model/lane.ts";
import type { Settlement } from "../../model/outcome.ts";
import { DEFAULT_RETRY_POLICY } from "../../model/retry-policy.ts";
import type { TaskRecord } from "../../model/task-record.ts";
import type {
  AdmissionLimits,
  ClaimedTask,
  FinishedAndClaimed,
  InsertedTask,
  NewTask,
  Storage,
  StorageCapabilities,
  StoredEvent,
} from "../storage.ts";
import { SteppedClock } from "./connection/clock.ts";

/** How a driver is opened for the suite. */
export interface StorageHarness {
  /** The capabilities that the driver must report. */
  readonly capabilities: StorageCapabilities;
  /** Opens an unused storage. `dispose` releases everything, the storage included. */
  open(clock: Clock): Promise<{ storage: Storage; dispose(): Promise<void> }>;
  /** Whether live nodes may differ in what they can execute; a storage for one process has one node at a time. */
  readonly nodesDiffer: boolean;
  /** How many command sequences the property tests try: as many as the driver can run in some twenty seconds. */
  readonly propertyRuns: number;
}

/** A fresh storage with two nodes, two lanes without limits, and short names for what tests do all the time. */
export interface World {
  readonly storage: Storage;
  readonly clock: SteppedClock;
  submit(...tasks: Partial<NewTask>[]): Promise<InsertedTask[]>;
  claim(params?: { node?: string; lane?: string; limit?: number }): Promise<ClaimedTask[]>;
  finish(claimed: ClaimedTask, settlement: Settlement, node?: string): Promise<FinishedAndClaimed>;
  /** The task, which must exist. */
  task(id: string, tenant?: string): Promise<TaskRecord>;
  events(after?: number): Promise<StoredEvent[]>;
  configureLane(name: string, lane: Partial<Omit<Lane, "concurrency" | "name">>): Promise<void>;
  /** Declares a node dead, as other nodes would. */
  crash(node: string): Promise<void>;
}

export type OpenWorld = () => Promise<World>;

export const TENANT = "acme";
export const AGENT = "scout";
export const LANE = "tasks";
export const OTHER_LANE = "main";
export const NODE = "north";
export const OTHER_NODE = "south";

/** Limits that no test reaches by accident. */
export const ROOMY: AdmissionLimits = {
  maxQueueSize: 1_000_000,
  maxQueueSizeTotal: 1_000_000,
  maxPerAgent: 1_000_000,
};

/** Shares that no test reaches by accident. */
export const ROOMY_SHARES: DeliveryShares = {
  slots: 1_000_000,
  tenantFactor: 1_000_000,
  unprovenSlots: 1_000_000,
  unprovenFactor: 1_000_000,
  perHost: 1_000_000,
  perUnprovenHost: 1_000_000,
};

const UNBOUNDED = {
  total: null,
  perAgent: null,
  perTenant: null,
  strategy: "fair-fifo",
  agingMs: 0,
} as const;

/** Opens a world for each test that asks for one, and closes it after the test. */
export function worldOpener(harness: StorageHarness): OpenWorld {
  return async () => {
    const clock = new SteppedClock();
    const { storage, dispose } = await harness.open(clock);
    onTestFinished(dispose);
    const world = makeWorld(storage, clock);
    await world.configureLane(LANE, {});
    await world.configureLane(OTHER_LANE, {});
    await storage.nodes.register({ node: NODE });
    await storage.nodes.register({ node: OTHER_NODE });
    return world;
  };
}

function makeWorld(storage: Storage, clock: SteppedClock): World {
  return {
    storage,
    clock,
    submit: (...tasks) => storage.tasks.insert({ tasks: tasks.map(newTask), limits: ROOMY }),
    async claim({ node = NODE, lane = LANE, limit = 1 } = {}) {
      const params = { node, finishes: [], progress: [], claims: [{ lane, limit }] };
      const { claimed } = await storage.tasks.finishAndClaim(params);
      return [...claimed];
    },
    finish({ token, task: { seq } }, settlement, node = NODE) {
      const finishes = [{ seq, token, settlement }];
      return storage.tasks.finishAndClaim({ node, finishes, progress: [], claims: [] });
    },
    async task(id, tenant = TENANT) {
      const task = await storage.tasks.get({ tenant, id });
      if (task === null) throw new Error(`There is no task ${id}.`);
      return task;
    },
    async events(after = 0) {
      const { events } = await storage.events.read({ after, limit: 100_000, bytesMax: 1e9 });
      return events;
    },
    configureLane: (name, lane) => storage.lanes.configure({ lanes: [{ name, ...UNBOUNDED, ...lane }] }),
    async crash(node) {
      const record = (await storage.nodes.list()).find((candidate) => candidate.node === node);
      await storage.nodes.markDead({ node, beat: record?.beat ?? -1 });
    },
  };
}

let lastId = 0;

/** A task with defaults. Ids are unique unless a test sets one. */
export function newTask(overrides: Partial<NewTask> = {}): NewTask {
  lastId += 1;
  return {
    id: `task-${lastId}`,
    tenant: TENANT,
    agent: AGENT,
    lane: LANE,
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
    maxRetriesIfLost: 3,
    spec: customSpec(UNREADABLE),
    ...overrides,
  };
}

/** What databases cannot read in JSON: each statement that reads a field of a task has to cope with it. */
const UNREADABLE = { nul: "\u0000", halves: "\ud83d!\udc69" };

export function customSpec(payload: unknown): NewTask["spec"] {
  return { work: { kind: "custom", payload }, retryPolicy: DEFAULT_RETRY_POLICY, timeoutMs: null };
}

export function idsOf(claimed: readonly ClaimedTask[]): string[] {
  return claimed.map(({ task }) => task.id);
}

/** The only one of a list that must hold exactly one. */
export function only<T>(items: readonly T[]): T {
  const [item] = items;
  if (item === undefined || items.length > 1) throw new Error(`Expected one, got ${items.length}.`);
  return item;
}
