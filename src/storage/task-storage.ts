/** What a storage does with tasks: one part of the contract in storage.ts. What it only reads is in task-reads.ts. */
import type { Settlement } from "../model/outcome.ts";
import type { TaskSpec, TaskUsage } from "../model/task.ts";
import type { TaskRecord } from "../model/task-record.ts";
import type { HeldState, TaskState, TerminalState } from "../model/task-state.ts";
import type { SubmitBounds } from "./submit-bounds.ts";
import type { TaskReads } from "./task-reads.ts";

export interface TaskStorage extends TaskReads {
  /**
   * Inserts new tasks, in order. Each is admitted or rejected by itself; a rejected one is stored as `rejected`. The insert is
   * idempotent by task id: for an id that is stored already the call returns the first result, so that the caller can retry an
   * insert whose response got lost.
   *
   * A batch is inserted whole or not at all: if one of its tasks has a key that was used for another request, the call fails
   * with `idempotency_conflict` (see `batchConflict`) and stores nothing.
   *
   * A critical task that finds no free slot pre-empts a running task that was marked `preemptible`: the storage fences that
   * attempt and queues its task again, ahead of all tasks that are not critical. This also happens when a critical task becomes
   * ready later (its `runAt` comes, its dependencies are done, it is retried or rescued), and when a waiting one may have lost
   * the slot it waited for (a node dies or has fewer slots, limits change).
   */
  insert(params: InsertTasksParams): Promise<InsertedTask[]>;

  /**
   * Ends attempts that still hold their lease, then claims tasks that may start now, in the order they start: one transaction,
   * because a busy node always does both. An end whose token is no longer held changes nothing and is left out of the result.
   * Overdue tasks fail before any task is claimed, a bounded number per call. A node that is dead, or was never registered,
   * ends nothing and gets nothing.
   *
   * A lane's slots are shared between tenants first. The next slot goes to the tenant with the fewest tasks in flight there; of
   * several, to the one served longest ago. A tenant whose critical task pre-empted one of its own tasks gets the freed slot
   * first. Within a tenant the strategy of the lane decides, and a critical task goes ahead of tasks of its own tenant only.
   * The claim skips a tenant that is disabled or at its limit over all lanes. While there is a second enabled tenant, it also
   * skips one that holds its share of the lane's slots: `perTenant` of the lane over all nodes, `perTenant` of the claim on
   * this node.
   *
   * A node gets only tasks that it can execute; see `Abilities`. The other tasks stay in the queue and block none behind them.
   *
   * An attempt is `running`, or `assigned` until its holder reports that it has begun. Both hold their lease and count alike in
   * all limits, totals and shares. Only `running` ones are pre-empted, and only they count as lost when their node dies. While
   * an attempt is `assigned` its task has no `startedAt` for it, and no `task.started` is in the log. If it ends, is
   * cancelled or lost, that event is written first: it may have begun. Only if its holder puts it back into the queue it leaves no
   * trace: its task does not show it, and its number is used again.
   *
   * Need not wait for the disk: a claim that a crash undoes is made again, and ends that may be lost are sent again; see
   * `durable`. Clients see neither before `get`, `list` or `events.read` returns it, and those wait until it is durable.
   */
  finishAndClaim(params: FinishAndClaimParams): Promise<FinishedAndClaimed>;

  /** Ends tasks as `cancelled`, waiting or running, and fences the attempts of those that run. */
  cancel(params: { tenant: string; ids: readonly string[]; error: string | null }): Promise<CancelledTask[]>;
  /**
   * Puts a failed or cancelled task back into the queue, with all its retries and a new default deadline. With `dependants` it
   * also brings back the tasks that were cancelled because of this one, transitively: a hundred in the same transaction, the
   * rest by `release`. A dependant stays cancelled when another dependency of it will never be done, or its own deadline has
   * passed.
   */
  retry(params: RetryTaskParams): Promise<RetriedTask>;

  /**
   * Queues delayed tasks whose `runAt` or retry time has come. Need not wait for the disk: tasks that are delayed again are
   * queued again.
   */
  promoteDue(params: { limit: number }): Promise<{ promoted: number }>;
  /** Fails waiting tasks whose deadline has passed. */
  expire(params: { limit: number }): Promise<{ expired: readonly TaskLabels[] }>;
  /**
   * Fails queued tasks of agents that are not served when no live node has had an executor for their kind for `afterMs`.
   * `nextAt`: when to call again; null: not before something changes.
   */
  failUnserved(params: {
    afterMs: number;
    limit: number;
  }): Promise<{ failed: readonly TaskLabels[]; nextAt: number | null }>;
  /** The earliest time at which `promoteDue` or `expire` will have something to do; null: there is none. */
  nextDueAt(): Promise<number | null>;

  /**
   * Passes the end or the retry of a task on to up to `limit` of its dependants. The operation that ends or retries a task does
   * so for the first hundred; this is for the rest. `more`: call again.
   */
  release(params: { limit: number }): Promise<{ more: boolean }>;

  /**
   * Takes back up to `limit` attempts of a node that is dead; see `nodes.markDead`. A task that has retries left is queued
   * again, any other fails with `worker lost`.
   *
   * `maxLost`: the process died, and each of these attempts counts as a loss of its task. A task that was lost this often fails
   * with `lost 5 times`, even if it has retries left; after `ALONE_AFTER_LOSSES` losses only `claimAlone` claims it. Left out:
   * the process is still alive, and nothing is counted. `retry` sets the count back to 0.
   */
  rescue(params: { node: string; limit: number; maxLost?: number }): Promise<RescuedTasks>;

  /**
   * Claims one task that must run alone in its process, from these lanes and within all limits, for a node that runs nothing
   * else. Of the agent queues with such tasks, the one served longest ago goes first, across tenants and lanes. Need not wait
   * for the disk, as `finishAndClaim`.
   */
  claimAlone(params: { node: string; lanes: readonly string[] }): Promise<FinishedAndClaimed>;
  /**
   * Whether a task that must run alone, and that this node can execute, waits in these lanes. Limits are ignored: the tasks
   * that the node runs now may be what reaches them.
   */
  isAloneWaiting(params: { node: string; lanes: readonly string[] }): Promise<boolean>;
  /**
   * Deletes a slice of what has expired: events added before `now - retentionMs` and the tasks that had ended by then; and
   * rejected tasks beyond the newest `rejectedMax` of each tenant. Tasks of a batch stay until the end of the batch has
   * expired, rejected ones until the batch has ended and its callback is no longer pending. `more`: call again for the next
   * slice. Need not wait for the disk: what is back after a power cut is deleted again.
   */
  prune(params: {
    retentionMs: number;
    rejectedMax: number;
    limit: number;
  }): Promise<{ tasks: number; more: boolean }>;
}

export interface InsertTasksParams {
  readonly tasks: readonly NewTask[];
  /** New batches. All tasks of each are among `tasks`. */
  readonly batches?: readonly NewBatch[];
  readonly limits: AdmissionLimits;
  /** Bounds on all tasks of the call. Throws `quota_exceeded`, and stores nothing, if they would be exceeded. Left out: none. */
  readonly bounds?: SubmitBounds;
  /** Whether one call waits for all of them. Left out: only if it is one task. */
  readonly isOneCall?: boolean;
  /** Claims of a node with free slots, made in the same transaction: a task may be inserted and started at once. Left out: none. */
  readonly claim?: InsertClaim;
}

export interface InsertClaim {
  readonly node: string;
  /** As of `finishAndClaim`, without `ahead`. */
  readonly claims: readonly Claim[];
  /**
   * Called with the result of the claim once it is committed, before the tasks are known to survive a crash. Not called if no claim
   * was made: the insert failed, or it has `bounds`, idempotency keys, or tasks that exist already.
   */
  readonly onClaimed: (answer: FinishedAndClaimed) => void;
}

/** Tasks that are submitted together. */
export interface NewBatch {
  readonly id: string;
  readonly tenant: string;
  /** How many of its tasks may be ready or in flight at once, over all nodes; the rest is parked. Null: no limit. */
  readonly parallelism: number | null;
  /** Rota calls this URL when all of them have ended. Null: no callback. */
  readonly callbackUrl: string | null;
}

/** The tenant, agent and lane of a task. */
export interface TaskLabels {
  readonly tenant: string;
  readonly agent: string;
  readonly lane: string;
}

export interface RescuedTasks {
  readonly requeued: readonly TaskLabels[];
  readonly failed: readonly TaskLabels[];
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
  /** Without a `deadline`: the default, counted from when the task could first start. Null: there is no default. */
  readonly deadlineAfterMs: number | null;
  /** How many retries it has if its node is lost; this may differ from the retries after a failure of its own. */
  readonly maxRetriesIfLost: number;
  /** How many of its agent's tasks may wait, instead of `maxPerAgent`; null: `maxPerAgent` applies. */
  readonly maxQueued: number | null;
  /** How it was created. Admission counts and rejects only `task`; the `cap` of a session counts only `message`. */
  readonly origin: TaskOrigin;
  /** The schedule that it is a run of; null: none. */
  readonly schedule: number | null;
  /** The session that it is part of; null: none. `maxConcurrent` applies if the session has none of its own. */
  readonly session: { readonly key: string; readonly maxConcurrent: number } | null;
  /** Whether a critical task may pre-empt it, `PREEMPTIONS_MAX` times at most. */
  readonly preemptible: boolean;
  /**
   * Tasks of a tenant with the same key run one at a time, over all nodes, lanes and agents. Null: it has none.
   *
   * A task takes its key once its dependencies, its `runAt`, its session and its batch no longer hold it back; only then is it
   * ready. A ready task gives the key up to a task of better rank that asks for it. If its agent or its lane is at its limit,
   * it gives the key up to any task that could start. `finishAndClaim` looks for such tasks when it ended something or leaves
   * slots unused. A claimed task keeps the key until its attempt ends in any way. The next holder is the first by rank, then by
   * order of acceptance. A task that waits for its key holds no slot of its batch, but keeps its position in its session.
   */
  readonly concurrencyKey: string | null;
  /** The batch that it was submitted in; null: none. */
  readonly batch: string | null;
  /** Rota calls this URL when the task ends: the transaction that ends it adds a webhook delivery. Null: no callback. */
  readonly callbackUrl: string | null;
  /**
   * The ids of the tasks it depends on, each once. It starts when all are done, and is cancelled when one of them ends in
   * another way. It waits for ids that do not exist yet.
   */
  readonly dependsOn: readonly string[];
  /** Of several tasks with the same key within `IDEMPOTENCY_MS`, only the first is created. Null: it has no key. */
  readonly idempotency: { readonly key: string; readonly hash: string } | null;
  readonly spec: TaskSpec;
}

/** `message`: to a session; `run`: of a schedule. */
export type TaskOrigin = "task" | "message" | "run";

/** How long an idempotency key returns the task that was created with it. */
export const IDEMPOTENCY_MS = 24 * 60 * 60 * 1_000;

export interface AdmissionLimits {
  /** Waiting tasks of one tenant over all lanes, if the tenant has no limit of its own. */
  readonly maxQueueSize: number;
  /**
   * Waiting tasks of all tenants that are not disabled. While a second enabled tenant exists, one tenant may fill at most half
   * of it. Tasks that a tenant has beyond that half (by retries) are not counted here, so that they take nothing from other
   * tenants.
   */
  readonly maxQueueSizeTotal: number;
  /** Waiting tasks of one agent. */
  readonly maxPerAgent: number;
}

export interface InsertedTask {
  readonly seq: number;
  readonly id: string;
  /** `cancelled`: a dependency had ended without being done. With `repeats`: the current state of the earlier task. */
  readonly state: TaskState;
  readonly position: number;
  readonly createdAt: number;
  readonly runAt: number | null;
  readonly deadline: number | null;
  /** Why it was rejected. `queued`: waiting tasks of the agent, or of the tenant if another queue was full. Null: accepted. */
  readonly rejection: { readonly full: FullQueue; readonly queued: number } | null;
  /** This task was created earlier with the same key, by the same request or by another one; null: it is new. */
  readonly repeats: "same" | "other" | null;
  /** Its agent is not served, and no live node has an executor for its kind. */
  readonly unserved?: true;
}

/**
 * Which queue was full. `server`: that of all tenants, or this tenant fills half of it; `global`: the tenant's, by
 * `maxQueueSize` or its own `maxQueued`; `agent`: the agent's. The order of the checks: total queue, limit of the tenant, half
 * of the total, agent.
 */
export type FullQueue = "server" | "global" | "agent";

/** Names one attempt. Each claim assigns a new fencing token; only the holder of the token can end the attempt. */
export interface Held {
  readonly seq: number;
  readonly token: number;
}

export interface FinishAndClaimParams {
  readonly node: string;
  readonly finishes: readonly FinishedAttempt[];
  /**
   * Reports of running attempts, written as events while the lease is held. Of an attempt that begins in the same call the last one
   * is written, right after its start; of one that is still `assigned` none.
   */
  readonly progress: readonly (Held & { readonly progress: unknown })[];
  /** Assigned attempts that have begun: they become `running`. */
  readonly begun?: readonly BegunAttempt[];
  /** How many tasks this node can start in each lane. */
  readonly claims: readonly Claim[];
  /** How many it can claim in all lanes together; earlier lanes go first. Left out: only the limits of the lanes apply. */
  readonly claimsMax?: number;
}

export interface BegunAttempt extends Held {
  /** By the storage's clock; the storage takes no time before the claim or after now. Left out: when it was claimed. */
  readonly startedAt?: number;
  /**
   * Orders the log, for a slot that several attempts of one call had in turn. The starts of a wave follow the ends of all waves
   * before it, and precede the ends of their own. Attempts that are not in `begun` end in wave 0. Left out: 0.
   */
  readonly wave?: number;
}

export interface Claim {
  readonly lane: string;
  readonly limit: number;
  /** The state that `limit` tasks are claimed into. Left out: `running`. */
  readonly state?: HeldState;
  /**
   * How many more tasks to claim ahead, as `assigned`, for slots that become free before the next claim. They follow in the
   * same order. The claim ends at the first task that may not wait on a node: one that is critical, has a session, a concurrency
   * key or a batch with `parallelism`, has run before or was lost, or has no retry if its node is lost. Nothing is claimed ahead in lanes
   * that are not `fair-fifo`, and while a critical task could start; see `criticalWaits`.
   */
  readonly ahead?: number;
  /**
   * Limits how many of them one tenant gets while there is a second enabled tenant. Left out: no limit. The node passes what is
   * left, as it passes `limit`: only the node itself claims for it, so the storage needs no counter for each tenant on each
   * node.
   */
  readonly perTenant?: TenantSlots;
}

/** How many slots of a lane on a node each tenant may still take. */
export interface TenantSlots {
  /** For a tenant that is not in `left`. */
  readonly max: number;
  /** For tenants that hold slots already; attempts that end in the same call no longer hold theirs. Zero or less: none. */
  readonly left: ReadonlyMap<string, number>;
}

export interface FinishedAttempt extends Held {
  readonly settlement: Settlement;
  /** Added to the usage of earlier attempts. */
  readonly usage?: AttemptUsage;
  /** For a run of a schedule that is done: the summary of the result in its row. */
  readonly summary?: string;
}

/** What an attempt cost. */
export interface AttemptUsage extends TaskUsage {
  /** How much of the context window its last model call used; the session reports its fullness by this. Left out: unknown. */
  readonly contextTokens?: number;
}

export interface FinishedAndClaimed {
  /** The attempts whose token was still held. */
  readonly finished: readonly { readonly token: number; readonly state: TaskState }[];
  readonly claimed: readonly ClaimedTask[];
  /** The overdue tasks that this call failed. */
  readonly expired: readonly TaskLabels[];
  /**
   * The lanes of claims with `ahead` in which a critical task is left that only lacks a slot: it goes before tasks that are held
   * ahead. Left out: there is none.
   */
  readonly criticalWaits?: readonly string[];
  /**
   * Resolves once the ends survive a crash of the database. Rejects if they may be lost: the caller sends them again, which
   * changes nothing if they are stored. Left out: only a crash of this process could lose them.
   */
  readonly durable?: Promise<void>;
}

export interface ClaimedTask {
  readonly token: number;
  readonly task: TaskRecord;
  /** About how much memory its input takes: `jsonWeight` of what is stored. */
  readonly bytes: number;
}

/**
 * How many concurrency keys with a holder that may be unable to start a claim checks: `keys` when it leaves slots unused,
 * `afterEnd` when something ended. `waiting`: how many tasks that wait for such a key it checks. So the cost of a claim does
 * not grow with the number of keys; the next claims check the others.
 */
export const KEYS_LOOKED_AT = { keys: 20, afterEnd: 5, waiting: 1_000 } as const;

/** How many overdue tasks one claim fails, so that a backlog of them cannot delay it. `expire` fails the rest. */
export const EXPIRED_PER_CLAIM_MAX = 1_000;

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
  /** Whether to retry the tasks that were cancelled because of it, too. */
  readonly dependants?: boolean;
  /** Counts the task like a new one; left out: it is not counted. */
  readonly bounds?: SubmitBounds;
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
  /** The deadline of the request has passed, so that the task could only fail again: nothing changed. */
  | { readonly found: true; readonly was: "overdue" }
  /** A dependency will never be done: nothing changed. `by` null: that dependency is no longer kept. */
  | { readonly found: true; readonly was: "blocked"; readonly by: BlockingDependency | null }
  | { readonly found: true; readonly was: null; readonly task: InsertedTask };
