/** What a storage does with tasks: one part of the contract in storage.ts. */
import type { Settlement } from "../model/outcome.ts";
import type { TaskSpec, TaskUsage } from "../model/task.ts";
import type { TaskOrder } from "../model/task-order.ts";
import type { TaskRecord, TaskRowRecord } from "../model/task-record.ts";
import type { TaskState, TerminalState } from "../model/task-state.ts";

export interface TaskStorage {
  /**
   * Takes new tasks in, in order, each admitted or rejected by itself: a rejected one is kept as `rejected`. A task
   * whose id is already there is not inserted again and answers as it did the first time, so that an insert whose
   * answer got lost can be repeated.
   *
   * A batch is taken whole: when one of its tasks has a key that was used for another request, the call fails with
   * `idempotency_conflict` (see `batchConflict`) and stores nothing.
   *
   * A critical task that finds no free slot makes a running one give way that was marked `preemptible`: that attempt is
   * fenced, the task queued again in front of all that are not critical. So it does wherever a critical task becomes
   * ready: when its moment comes, when its dependencies are done, when it is retried or rescued; and where one that waits
   * may have lost the slot it waited for: when a node dies or has fewer slots, when limits change.
   */
  insert(params: InsertTasksParams): Promise<InsertedTask[]>;
  /** The idempotency keys among these that have a task. A request with such a key creates no other. */
  keptKeys(params: { tenant: string; keys: readonly string[] }): Promise<string[]>;

  /**
   * Ends attempts that still hold their lease, then hands out tasks that may start now, in the order they start: one
   * transaction, because a busy node always does both. An end whose token is no longer held changes nothing and is
   * left out of the answer. Overdue tasks are failed before anything is handed out. A node that is dead, or was never
   * registered, ends nothing and is handed nothing.
   *
   * A lane's slots are shared out between tenants first: the one with the fewest in flight there, ties to the one served
   * longest ago; a tenant of which a critical task took a running one's slot gets that slot back. What goes first of one
   * tenant is the lane's strategy's affair, and a critical task goes ahead of its own tenant's alone. A tenant that is
   * disabled, or at its bound over all lanes, is passed over; and, while there is a second enabled tenant, one that holds its
   * share of the lane's slots: `perTenant` of the lane over all nodes, `perTenant` of the claim on this node.
   *
   * A node is handed only what it can execute; see `Abilities`. Tasks that it cannot execute stay where they are and hold up no
   * others.
   *
   * Unlike all others this may answer before it is durable: a claim or an end that is lost is merely done again.
   * Nobody outside is told before `get`, `list` or `events.read` answer, and those wait for durability.
   */
  finishAndClaim(params: FinishAndClaimParams): Promise<FinishedAndClaimed>;

  get(params: { tenant: string; id: string }): Promise<TaskRecord | null>;
  getBatch(params: { tenant: string; id: string }): Promise<BatchRecord | null>;
  /** The tasks of a batch, oldest first, without what they were given and what they resulted in. */
  batchTasks(params: { tenant: string; batch: string; limit: number }): Promise<BatchTaskRecord[]>;
  /** What stands in the way of a task, as far as the storage knows. */
  situation(params: { tenant: string; id: string }): Promise<TaskSituation | null>;
  /**
   * The tasks that fit, a page at a time. A page is short, or even empty, when `lookedMax` tasks have been looked at or those
   * found would take more than `bytesMax`: as long as `nextCursor` is not null there may be more.
   */
  list(params: ListTasksParams): Promise<ListedTasks>;
  /** The same list with what fits into a line of each task. Nothing is read of a task that could be large. */
  listRows(params: ListTasksParams): Promise<{ rows: TaskRowRecord[]; nextCursor: number | null }>;
  /** How many tasks of the tenant are in each state; states without any are left out. */
  counts(params: { tenant: string }): Promise<Partial<Record<TaskState, number>>>;
  /** Per agent with anything waiting or in flight, and in all, for one tenant. */
  queueDepth(params: { tenant: string }): Promise<QueueDepth>;
  /** The waiting tasks of a tenant, by what could hold them. Reads counters only, no tasks. */
  waiting(params: { tenant: string }): Promise<WaitingTasks>;

  /** Ends tasks as `cancelled`, waiting or running, and fences the attempts of those that run. */
  cancel(params: { tenant: string; ids: readonly string[]; error: string | null }): Promise<CancelledTask[]>;
  /**
   * Puts a failed or cancelled task back into the queue with its retries and its default deadline anew. With `dependants`
   * those come back that were cancelled because of it, transitively: a hundred in the same transaction, the rest by
   * `release`. A dependant stays cancelled when another dependency of it will never be done, or its own deadline has passed.
   */
  retry(params: RetryTaskParams): Promise<RetriedTask>;

  /** Moves delayed tasks whose moment has come into the queue. */
  promoteDue(params: { limit: number }): Promise<{ promoted: number }>;
  /** Fails waiting tasks whose deadline has passed. */
  expire(params: { limit: number }): Promise<{ expired: readonly TaskPlace[] }>;
  /**
   * Fails queued tasks of agents that are not served when no live node has had an executor for their kind for `afterMs`.
   * `nextAt`: when this will have more to do; null: not before something changes.
   */
  failUnserved(params: {
    afterMs: number;
    limit: number;
  }): Promise<{ failed: readonly TaskPlace[]; nextAt: number | null }>;
  /** The earliest moment at which `promoteDue` or `expire` will have something to do; null when there is none. */
  nextDueAt(): Promise<number | null>;

  /**
   * Passes the end or the retry of a task on to up to `limit` of its dependants. Whatever ends or retries a task does so
   * itself for the first hundred; this is for the rest. `more`: call again.
   */
  release(params: { limit: number }): Promise<{ more: boolean }>;

  /**
   * The results of the tasks that one depends on, of those that are done, in the order of `ids`: whole ones while they take
   * up to `bytesMax` in all, from the first that does not fit on only their size. The text of the others is not read.
   */
  dependencyResults(params: DependencyResultsParams): Promise<StoredDependency[]>;

  /**
   * Takes back up to `limit` attempts of a node that is dead; see `nodes.markDead`. A task that has retries left is queued
   * again, any other fails with `worker lost`.
   *
   * `maxLost`: the process died, and each of these attempts counts as a loss of its task. A task that was lost so often fails
   * with `lost 5 times`, whatever its retries; after `ALONE_AFTER_LOSSES` it is handed out by `claimAlone` only. Left out:
   * the process lives on, and nothing is counted. A retry by hand begins anew.
   */
  rescue(params: { node: string; limit: number; maxLost?: number }): Promise<RescuedTasks>;

  /**
   * Hands out one task that runs alone in its process, of these lanes and within all limits, to a node that runs nothing
   * else: of the agent queues that hold such tasks the one served longest ago goes first, whatever its tenant or lane.
   */
  claimAlone(params: { node: string; lanes: readonly string[] }): Promise<FinishedAndClaimed>;
  /**
   * Whether a task of these lanes waits that this node can execute and that runs alone. Limits are not looked at: what the
   * node runs now may be what fills them.
   */
  isAloneWaiting(params: { node: string; lanes: readonly string[] }): Promise<boolean>;
  /**
   * Deletes a slice of what is past its time: events added before `now - retentionMs` and the tasks that had ended by
   * then; and rejected tasks beyond the newest `rejectedMax` of each tenant. Tasks of a batch stay until the end of the batch
   * is past its time, rejected ones until it has ended and its callback was made. `more`: call again for the next slice.
   */
  prune(params: {
    retentionMs: number;
    rejectedMax: number;
    limit: number;
  }): Promise<{ tasks: number; more: boolean }>;
}

export interface DependencyResultsParams {
  readonly seq: number;
  /** Its dependencies, in the order in which they are wanted. */
  readonly ids: readonly string[];
  readonly bytesMax: number;
}

export interface StoredDependency {
  readonly taskId: string;
  /** How many bytes the result takes as JSON. */
  readonly resultBytes: number;
  /** As JSON; null: it did not fit. */
  readonly result: string | null;
}

export interface InsertTasksParams {
  readonly tasks: readonly NewTask[];
  /** The batches that some of the tasks are the first of, all tasks of each among these. */
  readonly batches?: readonly NewBatch[];
  readonly limits: AdmissionLimits;
}

/** Tasks handed in together. */
export interface NewBatch {
  readonly id: string;
  readonly tenant: string;
  /** How many of its tasks are in flight or about to be, over all nodes; the rest is parked. Null: no bound. */
  readonly parallelism: number | null;
  /** Where it is told that all of them have ended. Null: nobody asked. */
  readonly callbackUrl: string | null;
}

/** There as long as one of its tasks is. */
export interface BatchRecord {
  readonly id: string;
  readonly parallelism: number | null;
  readonly createdAt: number;
  /** When the last of its tasks ended for the first time; null: some have not. */
  readonly completedAt: number | null;
}

/** What a batch shows of one of its tasks. */
export interface BatchTaskRecord {
  readonly id: string;
  readonly agent: string;
  readonly state: TaskState;
  readonly error: string | null;
  /** What the others of its batch call it; null: nothing. */
  readonly key: string | null;
  readonly dependsOn: readonly string[];
}

/** Whose a task is, and where it runs. */
export interface TaskPlace {
  readonly tenant: string;
  readonly agent: string;
  readonly lane: string;
}

export interface RescuedTasks {
  readonly requeued: readonly TaskPlace[];
  readonly failed: readonly TaskPlace[];
}

export interface NewTask {
  readonly id: string;
  readonly tenant: string;
  readonly agent: string;
  readonly lane: string;
  readonly priority: number;
  /** Start not before; null or past: at once. */
  readonly runAt: number | null;
  readonly deadline: number | null;
  /** Stands in for `deadline`: so long after the moment the task could first start. Null when there is no default. */
  readonly deadlineAfterMs: number | null;
  /** How many retries it has when its node is lost, where that differs from failing by itself. */
  readonly maxRetriesIfLost: number;
  /** How many of its agent's tasks may wait, in place of `maxPerAgent`; null: that holds. */
  readonly maxQueued: number | null;
  /** What it came as: admission counts and refuses tasks alone; a session's `cap` counts messages. */
  readonly origin: TaskOrigin;
  /** The schedule that it is a run of; null: none. */
  readonly schedule: number | null;
  /** The conversation that it is part of; null: none. `maxConcurrent` holds where the session does not say. */
  readonly session: { readonly key: string; readonly maxConcurrent: number } | null;
  /** Whether it gives way to a critical task, `PREEMPTIONS_MAX` times at most. */
  readonly preemptible: boolean;
  /**
   * Tasks of a tenant with the same key run one at a time, over all nodes, lanes and agents. Null: it has none.
   *
   * A task takes its key once its dependencies, its time, its session and its batch are out of the way; only then is it
   * ready. While the task is only ready, it gives the key up to one of better rank that asks for it, and to any other that
   * could start when it cannot itself: its agent or its lane is at its limit. `finishAndClaim` looks for the latter when it
   * ended something or leaves slots unused. A claimed task keeps the key until its attempt ends, in whatever way. The next
   * one is the first by rank, then by order of acceptance. A task that waits for its key holds no place in its batch and
   * keeps its place in its session.
   */
  readonly concurrencyKey: string | null;
  /** Handed in together with others; null: by itself. */
  readonly batch: string | null;
  /** Where its end is told: ending it leaves a delivery. Null: nobody asked. */
  readonly callbackUrl: string | null;
  /**
   * The ids of the tasks it depends on, each once: it starts when all are done, and is cancelled when one of them ends
   * in another way. One that is not known is waited for.
   */
  readonly dependsOn: readonly string[];
  /** Of several tasks with the same key within `IDEMPOTENCY_MS`, only the first is made. Null: it has none. */
  readonly idempotency: { readonly key: string; readonly hash: string } | null;
  readonly spec: TaskSpec;
}

/** `message`: to a session; `run`: of a schedule. */
export type TaskOrigin = "task" | "message" | "run";

/** How long a key stands for the task that was made with it. */
export const IDEMPOTENCY_MS = 24 * 60 * 60 * 1_000;

export interface AdmissionLimits {
  /** Waiting tasks of one tenant over all lanes, where the tenant has no bound of its own. */
  readonly maxQueueSize: number;
  /**
   * Waiting tasks of all tenants that are not disabled. Once a second enabled tenant exists, one alone is admitted no
   * further than half of it, and what it has beyond (by retries) is not counted here: that takes nothing from others.
   */
  readonly maxQueueSizeTotal: number;
  /** Waiting tasks of one agent. */
  readonly maxPerAgent: number;
}

export interface InsertedTask {
  readonly seq: number;
  readonly id: string;
  /** `cancelled`: something that it depends on had ended without being done. With `repeats`: what it is in now. */
  readonly state: TaskState;
  readonly position: number;
  readonly createdAt: number;
  readonly runAt: number | null;
  readonly deadline: number | null;
  /** Why it was rejected, with how many tasks of the agent wait, or of the tenant if another queue was full; null when accepted. */
  readonly rejection: { readonly full: FullQueue; readonly queued: number } | null;
  /** This is a task that was made before, with the same key, from the same request or from another; null: it is new. */
  readonly repeats: "same" | "other" | null;
  /** Its agent is not served, and no live node has an executor for its kind. */
  readonly unserved?: true;
}

/**
 * Which queue was full. `server`: that of all tenants, or a tenant alone has half of it; `global`: the tenant's, by
 * `maxQueueSize` or its own `maxQueued`; `agent`: the agent's. The total queue is checked first, then the tenant's bound,
 * the half, and the agent's.
 */
export type FullQueue = "server" | "global" | "agent";

/** Names one execution. A token is handed out once; holding it is what allows ending the attempt. */
export interface Held {
  readonly seq: number;
  readonly token: number;
}

export interface FinishAndClaimParams {
  readonly node: string;
  readonly finishes: readonly FinishedAttempt[];
  /** Reports of running attempts, written as events while the lease is held. */
  readonly progress: readonly (Held & { readonly progress: unknown })[];
  /** How many tasks this node can start in each lane. The state they are claimed into is `running`. */
  readonly claims: readonly Claim[];
  /** How many it can start in all, the first lanes first. Left out: as many as in each lane. */
  readonly claimsMax?: number;
}

export interface Claim {
  readonly lane: string;
  readonly limit: number;
  /**
   * Bounds how many of them one tenant gets while there is a second enabled tenant. Left out: nothing does. The node says
   * what is left, as it says `limit`: nobody else claims for it, so that no counter is kept for each tenant on each node.
   */
  readonly perTenant?: TenantSlots;
}

/** What one tenant may still take of the slots of a lane on a node. */
export interface TenantSlots {
  /** Of a tenant that is not named in `left`. */
  readonly max: number;
  /** Of tenants that hold some already; what ends in the same call is not held any more. Zero or less: nothing. */
  readonly left: ReadonlyMap<string, number>;
}

export interface FinishedAttempt extends Held {
  readonly settlement: Settlement;
  /** Added to what earlier attempts told. */
  readonly usage?: AttemptUsage;
  /** Of a run of a schedule that is done: what its row shows of the result. */
  readonly summary?: string;
}

/** What an attempt cost. */
export interface AttemptUsage extends TaskUsage {
  /** How much of the context its last call took: what its session's fullness is measured by. Left out: it did not say. */
  readonly contextTokens?: number;
}

export interface FinishedAndClaimed {
  /** The tokens of those that had still been held. */
  readonly finished: readonly { readonly token: number; readonly state: TaskState }[];
  readonly claimed: readonly ClaimedTask[];
  /** The overdue tasks that were failed on the way. */
  readonly expired: readonly TaskPlace[];
}

export interface ClaimedTask {
  readonly token: number;
  readonly task: TaskRecord;
  /** About how much memory its input takes: `jsonWeight` of what is stored. */
  readonly bytes: number;
}

export interface ListTasksParams {
  readonly tenant: string;
  readonly agent?: string;
  readonly states?: readonly TaskState[];
  readonly priority?: number;
  /** This priority and what goes before it, which has lower numbers. */
  readonly priorityMax?: number;
  readonly batch?: string;
  readonly lane?: string;
  readonly session?: string;
  readonly schedule?: number;
  /** The id of a task or what it begins with, the id of a batch, or what a task is called in its batch. */
  readonly search?: string;
  /** Created then or later; with the order `completed`: ended. */
  readonly from?: number;
  /** Created before that; with the order `completed`: ended. */
  readonly to?: number;
  /** Left out: `newest`. */
  readonly order?: TaskOrder;
  readonly limit: number;
  /** From `nextCursor` of the page before, which had the same order. */
  readonly cursor?: number;
  /** How many tasks are looked at; left out: `LISTED_LOOKED_MAX`, in the order `completed` `ENDED_LOOKED_MAX`. */
  readonly lookedMax?: number;
  /** Called with the approximate number of entries read: at least `lookedMax` if that ended the page. */
  readonly onLooked?: ((entries: number) => void) | undefined;
  /** What the tasks may take together, about, after one at least. Left out: any number. */
  readonly bytesMax?: number;
}

export interface ListedTasks {
  readonly tasks: TaskRecord[];
  /** What the tasks take together, about: their specs and results. */
  readonly bytes: number;
  readonly nextCursor: number | null;
}

/** Everything that decides when a task can start. */
export interface TaskSituation {
  readonly task: TaskRecord;
  /** In its lane, over all nodes. */
  readonly lane: {
    readonly inflight: number;
    readonly total: number | null;
    readonly perAgent: number | null;
  };
  /** Over all lanes. Disabled, or `max` in flight: nothing of it starts. */
  readonly tenant: { readonly disabled: boolean; readonly inflight: number; readonly max: number | null };
  /**
   * Set when its tenant holds its share of the slots of its lane: `max` of them over all nodes, or on every node that has
   * one free. `inflight`: how many it holds.
   */
  readonly laneShare: { readonly inflight: number; readonly max: number } | null;
  /** `inLane`: of its lane alone; `max`: of the agent itself, over all lanes. */
  readonly agent: { readonly inLane: number; readonly inflight: number; readonly max: number | null };
  /**
   * The first tasks of its agent in its lane that go before it, in order, and how many there are: `AHEAD_MAX` at most. Of one that
   * waits for its concurrency key, those that wait for the same key and get it first, of all agents and lanes.
   */
  readonly ahead: { readonly ids: readonly string[]; readonly count: number };
  /**
   * Its batch, when that is what holds it: others of it fill its parallelism. `active` are some of those.
   */
  readonly batch: { readonly parallelism: number; readonly active: readonly string[] } | null;
  /** Its session, when that is what holds it: `active` are some of those that go before it, `max` the most at once. */
  readonly session: {
    readonly key: string;
    readonly max: number;
    readonly active: readonly string[];
  } | null;
  /**
   * Set while no live node can execute it. `served`: a node that has an executor for its agent was `lastSeenAt`; else the
   * agent has none, and `failUnserved` counts from `since`.
   */
  readonly noExecutor: {
    readonly served: boolean;
    readonly lastSeenAt: number | null;
    readonly since: number | null;
  } | null;
  /** Set while it waits to run alone in a process, with how often it was lost. */
  readonly alone: { readonly losses: number } | null;
  /** Its concurrency key, when that is what holds it: `holder` is the task that has the key. */
  readonly key: { readonly name: string; readonly holder: string } | null;
  /** The tasks it depends on that are there. */
  readonly parents: readonly { readonly id: string; readonly state: TaskState }[];
}

/**
 * How many concurrency keys a claim looks at whose holder may be unable to start, when it leaves slots unused and when
 * something ended; and how many of those that wait for each. What a claim costs does not grow with how many there are: those
 * that it does not look at have their turn at the next.
 */
export const KEYS_LOOKED_AT = { keys: 20, afterEnd: 5, waiting: 1_000 } as const;

/** How many tasks ahead of one are named, and how many are counted. */
export const AHEAD_MAX = { named: 10, counted: 10_000 } as const;

/** Agents without any are left out. */
export interface QueueDepth {
  /** What admission counts: tasks that wait, delayed or for others included, but neither messages nor runs. */
  readonly queued: number;
  readonly inflight: number;
  /** The same as `queued`, by agent. */
  readonly agents: Readonly<Record<string, number>>;
  /** What is in the state `queued`, by agent, whatever it came as. */
  readonly ready: Readonly<Record<string, number>>;
}

/** How many agent queues `waiting` returns: those with the most ready tasks. */
export const WAITING_QUEUES_MAX = 1_000;

/** All waiting tasks of a tenant: each counts once. */
export interface WaitingTasks {
  /** Waiting for their dependencies. */
  readonly forTasks: number;
  /** Waiting for their `runAt`, or for a retry. */
  readonly delayed: number;
  /** Queued, but held back by their batch, their session or their concurrency key. */
  readonly heldBack: number;
  /** Ready tasks by agent and lane, most first. */
  readonly queues: readonly WaitingQueue[];
  /** Ready tasks in further queues. */
  readonly readyElsewhere: number;
  readonly tenant: { readonly disabled: boolean; readonly inflight: number; readonly max: number | null };
}

/** The tasks of an agent in a lane that are ready. */
export interface WaitingQueue {
  readonly lane: string;
  readonly agent: string;
  readonly ready: number;
  /** Whether a live node can execute them. */
  readonly executable: boolean;
  /** Whether each of them runs alone in its process. */
  readonly alone: boolean;
  readonly limits: {
    readonly lane: { readonly inflight: number; readonly total: number | null };
    /** As that of each of them; see `TaskSituation`. */
    readonly laneShare: TaskSituation["laneShare"];
    /** Of the agent in this lane. */
    readonly inLane: { readonly inflight: number; readonly max: number | null };
    /** Of the agent over all lanes. */
    readonly agent: { readonly inflight: number; readonly max: number | null };
  };
}

export type CancelledTask =
  | { readonly id: string; readonly found: false }
  /** It had ended before: nothing changed. */
  | { readonly id: string; readonly found: true; readonly was: TerminalState }
  /** `token` names the attempt that was fenced off; null when it was waiting. */
  | {
      readonly id: string;
      readonly found: true;
      readonly was: null;
      readonly token: number | null;
      readonly agent: string;
      readonly lane: string;
    };

export interface RetryTaskParams {
  readonly tenant: string;
  readonly id: string;
  /** Whether the tasks come back that were cancelled because of it. */
  readonly dependants?: boolean;
}

/** A dependency that has ended without being done. */
export interface BlockingDependency {
  readonly id: string;
  readonly state: Exclude<TerminalState, "done">;
}

export type RetriedTask =
  | { readonly found: false }
  /** Neither failed nor cancelled: nothing changed. */
  | { readonly found: true; readonly was: TaskState }
  /** The deadline that was asked for has passed, so that it could only fail again: nothing changed. */
  | { readonly found: true; readonly was: "overdue" }
  /** A dependency will never be done: nothing changed. `by` null: that dependency is no longer kept. */
  | { readonly found: true; readonly was: "blocked"; readonly by: BlockingDependency | null }
  | { readonly found: true; readonly was: null; readonly task: InsertedTask };
