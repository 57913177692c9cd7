import fc from "fast-check";
import { BULK_ACTIONS, type BulkAction } from "../../model/bulk.ts";
import { DELIVERY_STATUSES, type DeliveryStatus } from "../../model/delivery.ts";
import { STRATEGIES, type Strategy } from "../../model/lane.ts";
import { DROP_POLICIES, type DropPolicy, SESSION_MODES, type SessionMode } from "../../model/session.ts";
import { TASK_KINDS, type TaskKind } from "../../model/task.ts";

/**
 * The commands of the property tests. They are plain data, so that a failing sequence can be read and shrunk. `pick` is an index
 * into what exists when the command runs, modulo its length.
 */
export type Command =
  | {
      do: "submit";
      tasks: SubmittedTask[];
      /** Those tasks that are `inBatch` are a batch; null: no batch. */
      batch: { parallelism: number | null; callbackUrl: string | null } | null;
      maxQueueSize: number;
      maxQueueSizeTotal: number;
      maxPerAgent: number;
      bounds: CommandBounds | null;
      /** Claims in the same call; null: none. */
      claim: { node: number; lane: string; limit: number } | null;
    }
  | {
      do: "step";
      node: number;
      finishes: Finish[];
      progress: Pick[];
      begun: Begun[];
      claims: {
        lane: string;
        limit: number;
        perTenant: PerTenant | null;
        isAssigned: boolean;
        ahead: number | null;
      }[];
      claimsMax: number | null;
    }
  | {
      do: "send";
      agent: string;
      lane: string;
      session: string;
      priority: number;
      mode: SessionMode | null;
      maxConcurrent: number | null;
      maxSessions: number | null;
      bounds: CommandBounds | null;
      cap: number;
      drop: DropPolicy;
      debounceMs: number;
      steerMs: number;
      concurrencyKey: string | null;
    }
  | { do: "stopSession"; session: string; scope: "oldest" | "all" | "reset"; limit: number }
  | {
      do: "updateSession";
      session: string;
      maxConcurrent: number | null;
      tokens: number | null;
      maxSessions: number | null;
    }
  | { do: "deleteSession"; session: string }
  | { do: "readTurns"; pick: Pick; limit: number }
  | { do: "takeMessages"; pick: Pick }
  | {
      do: "createSchedule";
      tenant: string;
      agent: string;
      once: boolean;
      afterMs: number | null;
      deleteAfterRun: boolean;
      maxRuns: number | null;
      pauseAfterFailures: number | null;
      source: string | null;
      maxSchedules: number | null;
    }
  | {
      do: "updateSchedule";
      pick: number;
      status: "active" | "paused" | "completed" | null;
      maxRuns: number | null;
      afterMs: number;
      stale: boolean;
      unlessDue: boolean;
      maxSchedules: number | null;
    }
  | { do: "deleteSchedule"; pick: number; sparesRunning: boolean; limit: number | null }
  | { do: "fire"; fires: FiredSchedule[] }
  | { do: "rewind"; pick: number; keeps: number; afterMs: number; reopens: boolean; stale: boolean }
  | { do: "pruneRuns"; retentionMs: number; limit: number }
  | { do: "clearLane"; tenant: string; name: string; limit: number }
  | { do: "cancel"; tenant: string; picks: number[]; error: string | null }
  | { do: "retry"; pick: number; dependants: boolean; bounds: CommandBounds | null }
  /** One slice for the whole bulk action, which was requested `agoMs` before. */
  | { do: "bulk"; tenant: string; action: BulkAction; picks: number[]; agoMs: number }
  | { do: "expire"; limit: number }
  | { do: "promote"; limit: number }
  | { do: "release"; limit: number }
  | { do: "wait"; ms: number }
  | { do: "crash"; node: number }
  | { do: "rescue"; pick: number; limit: number; maxLost: number | null }
  /** The node claims tasks and dies with them, twice, so that they run alone from then on. */
  | { do: "loseTwice"; node: number; limit: number }
  | { do: "claimAlone"; node: number; lanes: string[] }
  | { do: "heartbeat"; node: number }
  | { do: "setSlots"; node: number; tasks: number; perTenant: number | null }
  /** `agents`: those the node has executors for; `names`: those it only names. */
  | { do: "setAbilities"; node: number; agents: string[]; names: string[]; kinds: readonly TaskKind[] }
  | { do: "failUnserved"; afterMs: number; limit: number }
  | {
      do: "configureLane";
      name: string;
      total: number | null;
      perAgent: number | null;
      perTenant: number | null;
      strategy: Strategy;
      agingMs: number;
    }
  | { do: "configureAgent"; tenant: string; agent: string; maxInflight: number | null }
  | { do: "createAgent"; tenant: string; agent: string; maxInflight: number | null; serves: boolean }
  | { do: "deleteAgent"; tenant: string; agent: string }
  | { do: "crowd"; lane: string }
  | { do: "createTenant"; tenant: string; maxQueued: number | null; maxInflight: number | null }
  | { do: "boundTenant"; tenant: string; maxQueued: number | null; maxInflight: number | null }
  | { do: "disableTenant"; tenant: string; disabled: boolean }
  | { do: "deleteTenant"; tenant: string; limit: number }
  | { do: "deliver"; holdMs: number }
  | { do: "settleDelivery"; pick: number; status: DeliveryStatus; afterMs: number }
  | { do: "putBackDelivery"; pick: number; afterMs: number }
  | { do: "resend"; tenant: string; pick: number }
  | { do: "prune"; retentionMs: number; rejectedMax: number; limit: number }
  | { do: "rollUp"; limit: number }
  | { do: "recount"; random: number }
  | WorkerCommand;

/** `worker` is one of `WORKERS`. */
export type WorkerCommand =
  | { do: "registerWorker"; worker: number; tenant: string; agents: string[]; slots: number }
  /** Polls with the same `claim` are repeated. The ends are of one worker. */
  | {
      do: "exchange";
      worker: number;
      finishes: Finish[];
      progress: Pick[];
      polls: { worker: number; claim: number; max: number }[];
    }
  | { do: "nameAttempts"; worker: number; picks: number[]; all: boolean }
  | { do: "loseWorker"; worker: number }
  | { do: "renewWorker"; worker: number }
  | { do: "drainWorker"; worker: number }
  | { do: "takeBack"; worker: number; limit: number; counted: boolean; maxLost: number | null }
  | { do: "preemptForWorkers"; worker: number; limit: number }
  | { do: "removeWorker"; worker: number };

/** `left`: by tenant. */
export interface PerTenant {
  max: number;
  left: [tenant: string, left: number][];
}

/** Bounds on the tasks of a command. */
export interface CommandBounds {
  owner: string;
  maxSubmitsPerHour: number | null;
  maxOpenTasks: number | null;
  maxDescendants: number | null;
}

export interface SubmittedTask {
  /** Picks an id that was used before; null: a new one. */
  repeats: number | null;
  tenant: string;
  agent: string;
  kind: "custom" | "instruction";
  lane: string;
  priority: number;
  runAfterMs: number | null;
  deadlineMs: number | null;
  deadlineAfterMs: number | null;
  maxRetriesIfLost: number;
  inBatch: boolean;
  session: string | null;
  preemptible: boolean;
  callbackUrl: string | null;
  /** Picks of earlier tasks; negative: an unknown task. */
  dependsOn: number[];
  key: string | null;
  concurrencyKey: string | null;
  /** The root of its tree; null: it has no parent. */
  root: string | null;
}

export interface FiredSchedule {
  pick: number;
  runs: FiredRun[];
  afterMs: number | null;
  pauses: boolean;
  whileDisabled: boolean;
  stale: boolean;
  waitingMax: number | null;
}

export interface FiredRun {
  status: "running" | "failed" | "skipped" | "missed";
  /** Relative to the time of firing. Few values, so that due times repeat. */
  dueMs: number;
  moments: number;
  forced: boolean;
  replaces: boolean;
  session: string | null;
  concurrencyKey: string | null;
}

/** `held`: picks among attempts that may still hold their lease; else among all there ever were. */
export interface Pick {
  pick: number;
  held: boolean;
}

/** `agoMs`: when it began; null: when it was claimed. */
export interface Begun extends Pick {
  agoMs: number | null;
  wave: number;
}

export interface Finish extends Pick {
  to: "done" | "failed" | "delayed" | "queued";
  afterMs: number;
  inputTokens: number | null;
}

export const TENANTS = ["acme", "zeta", "tiny"];
const AGENTS = ["a", "b", "c"];
export const LANES = ["tasks", "main"];
/** How many nodes there are. A node that crashed comes back under a new name. */
export const NODES = 2;

const pick = fc.nat({ max: 50 });
const node = fc.nat({ max: NODES - 1 });
const tenant = fc.constantFrom(...TENANTS);
const agent = fc.constantFrom(...AGENTS);
const lane = fc.constantFrom(...LANES);
const session = fc.constantFrom("s1", "s2");
const maxSessions = orNull(fc.nat({ max: 2 }));
const concurrencyKey = orNull(fc.constantFrom("c1", "c2", "c3"));
const attempt = { pick, held: mostly(fc.constant(true), fc.constant(false)) };

const bounds: fc.Arbitrary<CommandBounds | null> = mostly(
  fc.constant(null),
  record({
    owner: fc.constantFrom("key_1", "agent:a"),
    maxSubmitsPerHour: fc.option(fc.nat({ max: 20 })),
    maxOpenTasks: fc.option(fc.nat({ max: 10 })),
    maxDescendants: fc.option(fc.nat({ max: 10 })),
  }),
);

const submittedTask: fc.Arbitrary<SubmittedTask> = record({
  repeats: mostly(fc.constant(null), pick),
  tenant,
  agent: mostly(agent, fc.constant("index")),
  kind: fc.constantFrom("custom", "custom", "instruction"),
  lane,
  priority: fc.constantFrom(2, 2, 2, 1, 3, 0, 0, -1),
  runAfterMs: mostly(fc.constant(null), fc.integer({ min: -5, max: 40 })),
  deadlineMs: mostly(fc.constant(null), fc.integer({ min: -2, max: 60 })),
  deadlineAfterMs: orNull(fc.integer({ min: 1, max: 60 })),
  maxRetriesIfLost: fc.nat({ max: 2 }),
  inBatch: fc.boolean(),
  session: mostly(fc.constant(null), fc.constantFrom("s1", "s2")),
  preemptible: fc.boolean(),
  concurrencyKey,
  callbackUrl: orNull(fc.constant("https://example.com/hook")),
  key: mostly(fc.constant(null), fc.constantFrom("k1", "k2")),
  dependsOn: mostly(
    fc.constant([]),
    fc.array(fc.integer({ min: -1, max: 60 }), { minLength: 1, maxLength: 3 }),
  ),
  root: mostly(fc.constant(null), fc.constant("root")),
});

const firedRun: fc.Arbitrary<FiredRun> = record({
  status: fc.constantFrom("running", "running", "running", "failed", "skipped", "missed", "missed"),
  dueMs: fc.nat({ max: 6 }),
  moments: fc.integer({ min: 1, max: 3 }),
  forced: mostly(fc.constant(false), fc.constant(true)),
  replaces: fc.boolean(),
  session: orNull(session),
  concurrencyKey,
});

const firedSchedule: fc.Arbitrary<FiredSchedule> = record({
  pick,
  runs: fc.array(firedRun, { maxLength: 4 }),
  afterMs: orNull(fc.nat({ max: 30 })),
  pauses: mostly(fc.constant(false), fc.constant(true)),
  whileDisabled: mostly(fc.constant(false), fc.constant(true)),
  stale: mostly(fc.constant(false), fc.constant(true)),
  waitingMax: orNull(fc.integer({ min: 1, max: 3 })),
});

const finish: fc.Arbitrary<Finish> = record({
  ...attempt,
  to: fc.constantFrom("done", "failed", "delayed", "queued"),
  afterMs: fc.nat({ max: 30 }),
  inputTokens: mostly(fc.constant(null), fc.constantFrom(0, 100)),
});

export const submit: fc.Arbitrary<Command> = record({
  do: fc.constant("submit"),
  tasks: fc.array(submittedTask, { minLength: 1, maxLength: 8 }),
  batch: orNull(
    record({
      parallelism: orNull(fc.integer({ min: 1, max: 3 })),
      callbackUrl: orNull(fc.constant("https://example.com/batch")),
    }),
  ),
  maxQueueSize: mostly(fc.constant(1000), fc.nat({ max: 12 })),
  maxQueueSizeTotal: mostly(fc.constant(10_000), fc.nat({ max: 20 })),
  maxPerAgent: mostly(fc.constant(1000), fc.nat({ max: 5 })),
  bounds,
  claim: orNull(record({ node, lane, limit: fc.nat({ max: 4 }) })),
});

const PLAIN = {
  repeats: null,
  kind: "custom",
  priority: 2,
  runAfterMs: null,
  deadlineMs: null,
  inBatch: false,
  session: null,
  concurrencyKey: null,
  callbackUrl: null,
  key: null,
  dependsOn: [],
  root: null,
} satisfies Partial<SubmittedTask>;

/** A usual task that comes alone: a claim with it starts it, unless a limit or another task is in its way. */
export const submitAlone: fc.Arbitrary<Command> = fc
  .tuple(submittedTask, node, lane, fc.integer({ min: 1, max: 4 }))
  .map(([task, node, lane, limit]) => ({
    do: "submit",
    tasks: [{ ...task, ...PLAIN, lane }],
    batch: null,
    maxQueueSize: 1000,
    maxQueueSizeTotal: 10_000,
    maxPerAgent: 1000,
    bounds: null,
    claim: { node, lane, limit },
  }));

const perTenant: fc.Arbitrary<PerTenant> = record({
  max: fc.integer({ min: 1, max: 4 }),
  left: fc.uniqueArray(fc.tuple(tenant, fc.integer({ min: -1, max: 3 })), { selector: ([name]) => name }),
});

export const step: fc.Arbitrary<Command> = record({
  do: fc.constant("step"),
  node,
  finishes: fc.array(finish, { maxLength: 4 }),
  progress: fc.array(record(attempt), { maxLength: 1 }),
  begun: fc.array(
    record({ ...attempt, agoMs: orNull(fc.integer({ min: -5, max: 30 })), wave: fc.nat({ max: 2 }) }),
    { maxLength: 4 },
  ),
  claimsMax: mostly(fc.constant(null), fc.nat({ max: 3 })),
  claims: fc.uniqueArray(
    record({
      lane,
      limit: fc.nat({ max: 10 }),
      perTenant: orNull(perTenant),
      isAssigned: mostly(fc.constant(false), fc.constant(true)),
      ahead: orNull(fc.nat({ max: 6 })),
    }),
    { selector: (claim) => claim.lane, maxLength: LANES.length },
  ),
});

/** How many workers there are. */
const WORKERS = 3;
const worker = fc.nat({ max: WORKERS - 1 });

export const registerWorker: fc.Arbitrary<Command> = record({
  do: fc.constant("registerWorker"),
  worker,
  tenant: mostly(fc.constant("acme"), tenant),
  agents: fc.oneof(fc.uniqueArray(agent, { minLength: 1, maxLength: 3 }), fc.constant<string[]>(["*"])),
  slots: fc.integer({ min: 1, max: 4 }),
});

export const workerCommand: fc.Arbitrary<Command> = fc.oneof(
  { weight: 2, arbitrary: registerWorker },
  {
    weight: 8,
    arbitrary: record({
      do: fc.constant("exchange"),
      worker,
      finishes: fc.array(finish, { maxLength: 2 }),
      progress: fc.array(record(attempt), { maxLength: 1 }),
      polls: fc.array(record({ worker, claim: fc.nat({ max: 20 }), max: fc.integer({ min: 1, max: 4 }) }), {
        maxLength: 3,
      }),
    }),
  },
  {
    weight: 3,
    arbitrary: record({
      do: fc.constant("nameAttempts"),
      worker,
      picks: fc.array(pick, { maxLength: 4 }),
      all: fc.boolean(),
    }),
  },
  { weight: 1, arbitrary: record({ do: fc.constant("loseWorker"), worker }) },
  { weight: 1, arbitrary: record({ do: fc.constant("renewWorker"), worker }) },
  { weight: 1, arbitrary: record({ do: fc.constant("drainWorker"), worker }) },
  {
    weight: 2,
    arbitrary: record({
      do: fc.constant("takeBack"),
      worker,
      limit: fc.constantFrom(1, 2, 100),
      counted: fc.boolean(),
      maxLost: orNull(fc.integer({ min: 2, max: 5 })),
    }),
  },
  {
    weight: 2,
    arbitrary: record({ do: fc.constant("preemptForWorkers"), worker, limit: fc.constantFrom(1, 3, 100) }),
  },
  { weight: 1, arbitrary: record({ do: fc.constant("removeWorker"), worker }) },
);

export const configureLane: fc.Arbitrary<Command> = record({
  do: fc.constant("configureLane"),
  name: lane,
  total: orNull(fc.integer({ min: 1, max: 6 })),
  perAgent: orNull(fc.integer({ min: 1, max: 3 })),
  perTenant: orNull(fc.integer({ min: 1, max: 4 })),
  strategy: fc.constantFrom(...STRATEGIES),
  agingMs: mostly(fc.constant(0), fc.constantFrom(5, 20)),
});

export const configureAgent: fc.Arbitrary<Command> = record({
  do: fc.constant("configureAgent"),
  tenant,
  agent,
  maxInflight: orNull(fc.integer({ min: 1, max: 3 })),
});

const tenantBounds = {
  tenant,
  maxQueued: mostly(fc.constant(null), fc.nat({ max: 6 })),
  maxInflight: orNull(fc.integer({ min: 0, max: 4 })),
};

export const createTenant: fc.Arbitrary<Command> = record({
  do: fc.constant("createTenant"),
  ...tenantBounds,
});

export const send: fc.Arbitrary<Command> = record({
  do: fc.constant("send"),
  agent: mostly(fc.constant("a"), agent),
  lane: mostly(fc.constant("main"), lane),
  session,
  priority: fc.constantFrom(2, 2, 1, 0),
  mode: orNull(fc.constantFrom(...SESSION_MODES)),
  maxConcurrent: mostly(fc.constant(null), fc.integer({ min: 1, max: 3 })),
  maxSessions,
  bounds,
  cap: fc.integer({ min: 1, max: 4 }),
  drop: fc.constantFrom(...DROP_POLICIES),
  debounceMs: fc.constantFrom(0, 5, 20),
  steerMs: fc.constantFrom(5, 1_000),
  concurrencyKey,
});

export const takeMessages: fc.Arbitrary<Command> = record({
  do: fc.constant("takeMessages"),
  pick: record({ pick: fc.nat(), held: fc.constant(true) }),
});

export const anyCommand: fc.Arbitrary<Command> = fc.oneof(
  { weight: 6, arbitrary: submit },
  { weight: 10, arbitrary: step },
  { weight: 4, arbitrary: send },
  {
    weight: 1,
    arbitrary: record({
      do: fc.constant("stopSession"),
      session,
      scope: fc.constantFrom("oldest", "all", "reset"),
      limit: fc.constantFrom(1, 2, 100),
    }),
  },
  {
    weight: 1,
    arbitrary: record({
      do: fc.constant("updateSession"),
      session,
      maxConcurrent: orNull(fc.integer({ min: 1, max: 3 })),
      tokens: orNull(fc.constantFrom(10, 900)),
      maxSessions,
    }),
  },
  { weight: 1, arbitrary: record({ do: fc.constant("deleteSession"), session }) },
  {
    weight: 2,
    arbitrary: record({
      do: fc.constant("readTurns"),
      pick: record({ pick: fc.nat(), held: fc.constant(true) }),
      limit: fc.nat({ max: 3 }),
    }),
  },
  { weight: 3, arbitrary: takeMessages },
  {
    weight: 2,
    arbitrary: record({
      do: fc.constant("createSchedule"),
      tenant,
      agent,
      once: fc.boolean(),
      afterMs: orNull(fc.nat({ max: 30 })),
      deleteAfterRun: fc.boolean(),
      maxRuns: orNull(fc.integer({ min: 1, max: 4 })),
      pauseAfterFailures: orNull(fc.nat({ max: 2 })),
      source: mostly(fc.constant(null), fc.constantFrom("w1", "w2")),
      maxSchedules: mostly(fc.constant(null), fc.nat({ max: 3 })),
    }),
  },
  {
    weight: 1,
    arbitrary: record({
      do: fc.constant("updateSchedule"),
      pick,
      status: orNull(fc.constantFrom("active", "paused", "completed")),
      maxRuns: orNull(fc.integer({ min: 1, max: 4 })),
      afterMs: fc.nat({ max: 30 }),
      stale: mostly(fc.constant(false), fc.constant(true)),
      unlessDue: fc.boolean(),
      maxSchedules: mostly(fc.constant(null), fc.nat({ max: 3 })),
    }),
  },
  {
    weight: 1,
    arbitrary: record({
      do: fc.constant("deleteSchedule"),
      pick,
      sparesRunning: fc.boolean(),
      limit: orNull(fc.integer({ min: 1, max: 3 })),
    }),
  },
  {
    weight: 5,
    arbitrary: record({
      do: fc.constant("fire"),
      fires: fc.array(firedSchedule, { minLength: 1, maxLength: 4 }),
    }),
  },
  {
    weight: 2,
    arbitrary: record({
      do: fc.constant("rewind"),
      pick,
      keeps: fc.nat({ max: 2 }),
      afterMs: fc.nat({ max: 30 }),
      reopens: fc.boolean(),
      stale: mostly(fc.constant(false), fc.constant(true)),
    }),
  },
  {
    weight: 1,
    arbitrary: record({
      do: fc.constant("pruneRuns"),
      retentionMs: fc.nat({ max: 60 }),
      limit: fc.constantFrom(1, 2, 1000),
    }),
  },
  {
    weight: 1,
    arbitrary: record({
      do: fc.constant("clearLane"),
      tenant,
      name: lane,
      limit: fc.integer({ min: 1, max: 3 }),
    }),
  },
  {
    weight: 2,
    arbitrary: record({
      do: fc.constant("cancel"),
      tenant,
      picks: fc.array(pick, { minLength: 1, maxLength: 4 }),
      error: orNull(fc.constant("stop")),
    }),
  },
  { weight: 2, arbitrary: record({ do: fc.constant("retry"), pick, dependants: fc.boolean(), bounds }) },
  {
    weight: 3,
    arbitrary: record({
      do: fc.constant("bulk"),
      tenant,
      action: fc.constantFrom(...BULK_ACTIONS),
      picks: fc.uniqueArray(pick, { maxLength: 6 }),
      agoMs: fc.nat({ max: 10 }),
    }),
  },
  { weight: 1, arbitrary: record({ do: fc.constant("expire"), limit: fc.nat({ max: 3 }) }) },
  { weight: 2, arbitrary: record({ do: fc.constant("promote"), limit: fc.nat({ max: 3 }) }) },
  { weight: 1, arbitrary: record({ do: fc.constant("release"), limit: fc.integer({ min: 1, max: 3 }) }) },
  { weight: 3, arbitrary: record({ do: fc.constant("wait"), ms: fc.nat({ max: 25 }) }) },
  { weight: 1, arbitrary: record({ do: fc.constant("crash"), node }) },
  {
    weight: 2,
    arbitrary: record({
      do: fc.constant("rescue"),
      pick,
      limit: fc.nat({ max: 3 }),
      maxLost: orNull(fc.integer({ min: 1, max: 4 })),
    }),
  },
  { weight: 1, arbitrary: record({ do: fc.constant("loseTwice"), node, limit: fc.nat({ max: 3 }) }) },
  { weight: 2, arbitrary: record({ do: fc.constant("claimAlone"), node, lanes: fc.subarray(LANES) }) },
  { weight: 1, arbitrary: record({ do: fc.constant("heartbeat"), node }) },
  {
    weight: 1,
    arbitrary: record({
      do: fc.constant("setSlots"),
      node,
      tasks: fc.nat({ max: 4 }),
      perTenant: orNull(fc.integer({ min: 1, max: 3 })),
    }),
  },
  {
    weight: 2,
    arbitrary: record({
      do: fc.constant("setAbilities"),
      node,
      agents: fc.subarray(AGENTS),
      names: fc.subarray(AGENTS),
      // Usually all kinds, so that most tasks can be executed.
      kinds: mostly(fc.constant([...TASK_KINDS]), fc.subarray([...TASK_KINDS])),
    }),
  },
  {
    weight: 1,
    arbitrary: record({
      do: fc.constant("failUnserved"),
      afterMs: fc.nat({ max: 20 }),
      limit: fc.integer({ min: 1, max: 3 }),
    }),
  },
  { weight: 1, arbitrary: configureLane },
  { weight: 1, arbitrary: configureAgent },
  {
    weight: 1,
    arbitrary: record({
      do: fc.constant("createAgent"),
      tenant,
      agent,
      serves: fc.boolean(),
      maxInflight: orNull(fc.integer({ min: 1, max: 3 })),
    }),
  },
  { weight: 1, arbitrary: record({ do: fc.constant("deleteAgent"), tenant, agent }) },
  { weight: 1, arbitrary: record({ do: fc.constant("crowd"), lane }) },
  { weight: 3, arbitrary: createTenant },
  { weight: 1, arbitrary: record({ do: fc.constant("boundTenant"), ...tenantBounds }) },
  {
    weight: 1,
    arbitrary: record({
      do: fc.constant("disableTenant"),
      tenant,
      disabled: fc.constantFrom(true, false, false),
    }),
  },
  {
    weight: 1,
    arbitrary: record({ do: fc.constant("deleteTenant"), tenant, limit: fc.constantFrom(1, 3, 100) }),
  },
  { weight: 2, arbitrary: record({ do: fc.constant("deliver"), holdMs: fc.integer({ min: 1, max: 30 }) }) },
  {
    weight: 2,
    arbitrary: record({
      do: fc.constant("settleDelivery"),
      pick,
      status: fc.constantFrom(...DELIVERY_STATUSES),
      afterMs: fc.nat({ max: 30 }),
    }),
  },
  {
    weight: 1,
    arbitrary: record({ do: fc.constant("putBackDelivery"), pick, afterMs: fc.nat({ max: 30 }) }),
  },
  { weight: 1, arbitrary: record({ do: fc.constant("resend"), tenant, pick }) },
  {
    weight: 1,
    arbitrary: record({
      do: fc.constant("prune"),
      retentionMs: fc.nat({ max: 60 }),
      rejectedMax: fc.nat({ max: 3 }),
      limit: fc.constantFrom(1, 2, 5, 1000),
    }),
  },
  { weight: 2, arbitrary: record({ do: fc.constant("rollUp"), limit: fc.constantFrom(1, 3, 1000) }) },
  {
    weight: 1,
    arbitrary: record({
      do: fc.constant("recount"),
      random: fc.double({ min: 0, max: 0.999, noNaN: true }),
    }),
  },
);

/** Plain objects, which a failing test prints more readably than ones without a prototype. */
function record<T>(fields: { [Key in keyof T]: fc.Arbitrary<T[Key]> }) {
  return fc.record<T>(fields, { noNullPrototype: true });
}

function orNull<T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | null> {
  return fc.option(arbitrary);
}

/** The usual case, and now and then the other one. */
function mostly<T, U>(usual: fc.Arbitrary<T>, other: fc.Arbitrary<U>): fc.Arbitrary<T | U> {
  return fc.oneof({ weight: 5, arbitrary: usual }, { weight: 1, arbitrary: other });
}
