/**
 * The storage contract: what a database must do for the engine. SQLite and PostgreSQL keep it, conformance/ proves
 * that they do, oracle.ts says the same in plain TypeScript.
 *
 * Three rules hold for every operation:
 * - It is one transaction, over as many rows as it is given, and its events are rows of that transaction.
 * - Time is the storage's own clock, so that all nodes agree on it.
 * - What it answers may be told to the outside at once: it is durable. `finishAndClaim` is the exception and says how.
 */
import type { DeliveryStatus } from "../model/delivery.ts";
import type { EventType } from "../model/event.ts";
import type { Lane } from "../model/lane.ts";
import type { Settlement } from "../model/outcome.ts";
import type { DependencyResult, TaskSpec } from "../model/task.ts";
import type { TaskRecord } from "../model/task-record.ts";
import type { TaskState, TerminalState } from "../model/task-state.ts";

export interface Storage {
  readonly capabilities: StorageCapabilities;
  readonly tasks: TaskStorage;
  readonly events: EventStorage;
  readonly nodes: NodeStorage;
  readonly lanes: LaneStorage;
  readonly agents: AgentStorage;
  readonly deliveries: DeliveryStorage;
  readonly counters: CounterStorage;

  /** The storage's clock, in milliseconds since 1970. */
  now(): Promise<number>;
  /** Tells `listener` of what happened elsewhere or just now, until the returned function is called. */
  subscribe(listener: (signal: StorageSignal) => void): () => void;
  /** Lets go of everything. Closing twice is fine; any other call after it fails with `storage_unavailable`. */
  close(): Promise<void>;
}

export interface StorageCapabilities {
  /** Whether what was accepted outlives the process: decides how long results are kept by default. */
  readonly durable: boolean;
  /**
   * Whether this process is the only one: then nobody else can renew a lease, and what other nodes left behind is
   * rescued at once instead of after a lease.
   */
  readonly exclusive: boolean;
}

/**
 * Why somebody may want to look at the storage. Signals wake and carry no truth: they can be doubled, merged or lost,
 * and a slow poll stands behind each.
 */
export type StorageSignal =
  /** Events were added and may be read. */
  | { readonly kind: "events" }
  /** In some lane something may be able to start that could not before. */
  | { readonly kind: "work" }
  /** The earliest due moment may have moved forward. */
  | { readonly kind: "due" }
  /** These attempts lost their lease to a cancel: whoever runs them should stop. */
  | { readonly kind: "fenced"; readonly tokens: readonly number[] }
  /** Dependants have yet to hear of an end: `tasks.release` tells them. */
  | { readonly kind: "release" }
  /** Callbacks are to be made that nobody here may know of. */
  | { readonly kind: "deliveries" }
  /** The catalogue of agents was changed. */
  | { readonly kind: "agents" }
  /** Signals may have been missed: look at everything. */
  | { readonly kind: "reconnected" };

// ---------------------------------------------------------------------------------------------------------- tasks

export interface TaskStorage {
  /**
   * Takes new tasks in, in order, each admitted or rejected by itself: a rejected one is kept as `rejected`. A task
   * whose id is already there is not inserted again and answers as it did the first time, so that an insert whose
   * answer got lost can be repeated.
   */
  insert(params: { tasks: readonly NewTask[]; limits: AdmissionLimits }): Promise<InsertedTask[]>;

  /**
   * Ends attempts that still hold their lease, then hands out tasks that may start now, in the order they start: one
   * transaction, because a busy node always does both. An end whose token is no longer held changes nothing and is
   * left out of the answer. Overdue tasks are failed before anything is handed out. A node that is dead, or was never
   * registered, ends nothing and is handed nothing.
   *
   * Unlike all others this may answer before it is durable: a claim or an end that is lost is merely done again.
   * Nobody outside is told before `get`, `list` or `events.read` answer, and those wait for durability.
   */
  finishAndClaim(params: FinishAndClaimParams): Promise<FinishedAndClaimed>;

  get(params: { tenant: string; id: string }): Promise<TaskRecord | null>;
  /** What stands in the way of a task, as far as the storage knows. */
  situation(params: { tenant: string; id: string }): Promise<TaskSituation | null>;
  /** Newest first. */
  list(params: ListTasksParams): Promise<{ tasks: TaskRecord[]; nextCursor: number | null }>;
  /** How many tasks of the tenant are in each state; states without any are left out. */
  counts(params: { tenant: string }): Promise<Partial<Record<TaskState, number>>>;
  /** Per agent with anything queued or in flight, and in all, for one tenant. */
  queueDepth(params: { tenant: string }): Promise<QueueDepth>;

  /** Ends tasks as `cancelled`, waiting or running, and fences the attempts of those that run. */
  cancel(params: { tenant: string; ids: readonly string[]; error: string | null }): Promise<CancelledTask[]>;
  /** Puts a failed or cancelled task back into the queue with its retries and its default deadline anew. */
  retry(params: { tenant: string; id: string }): Promise<RetriedTask>;

  /** Moves delayed tasks whose moment has come into the queue. */
  promoteDue(params: { limit: number }): Promise<{ promoted: number }>;
  /** Fails waiting tasks whose deadline has passed. */
  expire(params: { limit: number }): Promise<{ expired: readonly TaskPlace[] }>;
  /** The earliest moment at which `promoteDue` or `expire` will have something to do; null when there is none. */
  nextDueAt(): Promise<number | null>;

  /**
   * Tells up to `limit` tasks of the end of another that they depend on. Whatever ends a task tells the first hundred of
   * its dependants itself; this is for the rest. `more`: call again.
   */
  release(params: { limit: number }): Promise<{ more: boolean }>;

  /** What the tasks resulted in that one depends on, of those that are done. */
  dependencyResults(params: { seq: number }): Promise<DependencyResult[]>;

  /** Takes back up to `limit` attempts of a node that is dead; see `nodes.markDead`. */
  rescue(params: { node: string; limit: number }): Promise<RescuedTasks>;
  /**
   * Deletes a slice of what is past its time: events added before `now - retentionMs` and the tasks that had ended by
   * then; and rejected tasks beyond the newest `rejectedMax` of each tenant. `more`: call again for the next slice.
   */
  prune(params: {
    retentionMs: number;
    rejectedMax: number;
    limit: number;
  }): Promise<{ tasks: number; more: boolean }>;
}

/** Whose a task is, and where it runs. */
export interface TaskPlace {
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

/** How long a key stands for the task that was made with it. */
export const IDEMPOTENCY_MS = 24 * 60 * 60 * 1_000;

export interface AdmissionLimits {
  /** Waiting tasks over all tenants and lanes. */
  readonly maxQueueSize: number;
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
  /** Why it was rejected, with the number of waiting tasks that filled the queue; null when accepted. */
  readonly rejection: { readonly full: "global" | "agent"; readonly queued: number } | null;
  /** This is a task that was made before, with the same key, from the same request or from another; null: it is new. */
  readonly repeats: "same" | "other" | null;
}

/** Names one execution. A token is handed out once; holding it is what allows ending the attempt. */
export interface Held {
  readonly seq: number;
  readonly token: number;
}

export interface FinishAndClaimParams {
  readonly node: string;
  readonly finishes: readonly (Held & { readonly settlement: Settlement })[];
  /** Reports of running attempts, written as events while the lease is held. */
  readonly progress: readonly (Held & { readonly progress: unknown })[];
  /** How many tasks this node can start in each lane. The state they are claimed into is `running`. */
  readonly claims: readonly { readonly lane: string; readonly limit: number }[];
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
  readonly limit: number;
  /** From `nextCursor` of the page before. */
  readonly cursor?: number;
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
  /** `inLane`: of its lane alone; `max`: of the agent itself, over all lanes. */
  readonly agent: { readonly inLane: number; readonly inflight: number; readonly max: number | null };
  /** The first tasks of its agent in its lane that go before it, in order, and how many there are: `AHEAD_MAX` at most. */
  readonly ahead: { readonly ids: readonly string[]; readonly count: number };
  /** The tasks it depends on that are there. */
  readonly parents: readonly { readonly id: string; readonly state: TaskState }[];
}

/** How many tasks ahead of one are named, and how many are counted. */
export const AHEAD_MAX = { named: 10, counted: 10_000 } as const;

export interface QueueDepth {
  readonly queued: number;
  readonly inflight: number;
  /** Tasks that could start, by agent; agents without any are left out. */
  readonly agents: Readonly<Record<string, number>>;
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

export type RetriedTask =
  | { readonly found: false }
  /** Neither failed nor cancelled: nothing changed. */
  | { readonly found: true; readonly was: TaskState }
  /** The deadline that was asked for has passed, so that it could only fail again: nothing changed. */
  | { readonly found: true; readonly was: "overdue" }
  | { readonly found: true; readonly was: null; readonly task: InsertedTask };

// --------------------------------------------------------------------------------------------------------- events

export interface EventStorage {
  /**
   * Up to `limit` events after `after`, oldest first; fewer when they take more than `bytesMax` together, but one at
   * least. `more`: there are others right after them. Never passes over an event that commits later.
   */
  read(params: ReadEventsParams): Promise<{ events: StoredEvent[]; more: boolean }>;
  /**
   * How far the log reaches: the highest number there ever was (0: none yet), and the oldest event that is still there,
   * or the number after the highest when there is none.
   */
  range(): Promise<{ oldest: number; newest: number }>;
}

export interface ReadEventsParams {
  readonly after: number;
  readonly limit: number;
  readonly bytesMax: number;
}

export interface StoredEvent {
  readonly seq: number;
  readonly type: EventType;
  readonly at: number;
  readonly tenant: string;
  readonly taskId: string;
  readonly agent: string;
  readonly lane: string;
  readonly batch: string | null;
  readonly state: TaskState;
  /** Only with `task.completed`. */
  readonly result: unknown;
  /** What this type of event adds; see `RotaEvent`. */
  readonly data: EventData | null;
  /** What `result` and `data` take, about. */
  readonly bytes: number;
}

export interface EventData {
  readonly error?: string;
  readonly attempt?: number;
  readonly retryAt?: number;
  readonly progress?: unknown;
  /** With `task.created` and `task.retrying`: where it was put. */
  readonly state?: TaskState;
}

// ---------------------------------------------------------------------------------------------------------- nodes

export interface NodeStorage {
  /** Makes an incarnation known. Its id is new with every start of the process. */
  register(params: { node: string }): Promise<void>;
  /**
   * Renews the lease of everything this incarnation runs. `alive: false`: it was declared dead and must abort all
   * it runs. `held` are the attempts it holds: anything else it runs has been fenced off, and what it does not run
   * although it holds it was claimed by a call whose answer got lost.
   */
  heartbeat(params: { node: string }): Promise<{ alive: boolean; held: readonly Held[] }>;
  list(): Promise<NodeRecord[]>;
  /** Declares an incarnation dead if it has not renewed since `beat`. From then on it can end nothing. */
  markDead(params: { node: string; beat: number }): Promise<boolean>;
  /** Forgets an incarnation that holds nothing any more. */
  remove(params: { node: string }): Promise<void>;
}

export interface NodeRecord {
  readonly node: string;
  /** Grows with every renewal: compare it with an earlier look rather than with a clock. */
  readonly beat: number;
  readonly dead: boolean;
}

// ------------------------------------------------------------------------------------------------ lanes and agents

export interface LaneStorage {
  /** Writes down the limits and strategy of lanes, for all nodes. Lanes not named here stay as they are. */
  configure(params: { lanes: readonly Omit<Lane, "concurrency">[] }): Promise<void>;
  list(): Promise<LaneRecord[]>;
}

export interface LaneRecord extends Omit<Lane, "concurrency"> {
  /** Queued, delayed or waiting for something. */
  readonly waiting: number;
  readonly inflight: number;
}

export interface AgentStorage {
  /** Bounds how many tasks of an agent run at once over all lanes; null: no bound of its own. */
  configure(params: { tenant: string; agent: string; maxInflight: number | null }): Promise<void>;
  /** The agents outside the catalogue that have a bound, by tenant and id. */
  bounded(): Promise<{ tenant: string; agent: string }[]>;

  /** Adds an agent to the catalogue, and its bound with it. False: there is one of that id, and nothing changed. */
  create(params: AgentRecord): Promise<boolean>;
  /** Replaces an agent of the catalogue. False: there is none. */
  update(params: AgentRecord): Promise<boolean>;
  /** Takes an agent out of the catalogue, and its bound away. False: there is none. */
  delete(params: { tenant: string; agent: string }): Promise<boolean>;
  /** The catalogue of all tenants, by tenant and id. */
  list(): Promise<AgentRecord[]>;
}

/** An agent of the catalogue. */
export interface AgentRecord {
  readonly tenant: string;
  readonly agent: string;
  readonly maxInflight: number | null;
  /** What else was said of it, as JSON: the storage does not look into it. */
  readonly definition: Readonly<Record<string, unknown>>;
}

// ------------------------------------------------------------------------------------------------------ deliveries

/**
 * Callbacks to be made. One comes into being with the end of a task that has a `callbackUrl`, in the transaction that
 * ends it, and goes with its task. Its number is that of the event that tells of the end.
 */
export interface DeliveryStorage {
  /**
   * Hands out deliveries that are due, the longest due first. Each counts as tried, and is due again after `holdMs`:
   * should whoever took it die, somebody else goes on then.
   */
  claim(params: { limit: number; holdMs: number }): Promise<ClaimedDelivery[]>;
  /**
   * Writes down what became of tries. One that was tried again since, or sent anew, stays as it is: `tries` must be
   * the number that was handed out.
   */
  settle(params: { tries: readonly SettledTry[] }): Promise<void>;
  /**
   * Takes claims back that nothing was done with: the try does not count, and each is due when `dueAt` says. One that was
   * claimed again since stays as it is.
   */
  putBack(params: { claims: readonly PutBackClaim[] }): Promise<void>;
  /** When the next one is due; null when none is pending. */
  nextDueAt(): Promise<number | null>;
  /** Newest first. */
  list(params: ListDeliveriesParams): Promise<{ deliveries: DeliveryRecord[]; nextCursor: number | null }>;
  get(params: { tenant: string; seq: number }): Promise<DeliveryRecord | null>;
  /** Makes one that is over due at once, as if it had never been tried. `was`: nothing changed. */
  resend(params: { tenant: string; seq: number }): Promise<ResentDelivery>;
}

export interface DeliveryRecord {
  readonly seq: number;
  readonly tenant: string;
  readonly taskSeq: number;
  readonly taskId: string;
  readonly url: string;
  /** The end it tells of: the task may have been retried since. */
  readonly end: TaskEnd;
  readonly status: DeliveryStatus;
  readonly tries: number;
  readonly createdAt: number;
  /** Null unless pending. */
  readonly dueAt: number | null;
  /** These three are null until it was tried, and null where there is nothing to tell. */
  readonly lastTryAt: number | null;
  readonly responseStatus: number | null;
  readonly error: string | null;
}

/** What of a task is overwritten when it is retried after its end. */
export interface TaskEnd {
  readonly state: TerminalState;
  readonly completedAt: number;
  readonly error: string | null;
  readonly retryCount: number;
  /** How many attempts there had been. */
  readonly attempts: number;
}

export interface ClaimedDelivery {
  readonly delivery: DeliveryRecord;
  /** As it is now. */
  readonly task: TaskRecord;
}

export interface SettledTry {
  readonly seq: number;
  readonly tries: number;
  readonly status: DeliveryStatus;
  /** With `pending`: when to try again. */
  readonly dueAt: number | null;
  readonly responseStatus: number | null;
  readonly error: string | null;
}

/** `tries` must be the number that was handed out. */
export type PutBackClaim = Readonly<Pick<SettledTry, "seq" | "tries"> & { dueAt: number }>;

export interface ListDeliveriesParams {
  readonly tenant: string;
  readonly taskId?: string;
  readonly status?: DeliveryStatus;
  readonly limit: number;
  /** From `nextCursor` of the page before. */
  readonly cursor?: number;
}

export type ResentDelivery =
  | { readonly found: false }
  | { readonly found: true; readonly was: "pending" }
  | { readonly found: true; readonly was: null; readonly delivery: DeliveryRecord };

// ------------------------------------------------------------------------------------------------------- counters

export interface CounterStorage {
  /** Counts the rows behind one line picked by `random` in [0, 1), and mends the line if it is off. */
  recountOne(params: { random: number }): Promise<CounterFault[]>;
  /** Counts everything and changes nothing. Costs what the backlog costs: for tests and `doctor`. */
  recountAll(): Promise<CounterFault[]>;
}

/** A counter that does not say what the rows say. */
export interface CounterFault {
  readonly counter: string;
  readonly stored: number | string | null;
  readonly counted: number | string | null;
}
