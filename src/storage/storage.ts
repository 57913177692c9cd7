/**
 * The storage contract: what a database must do for the engine. SQLite and PostgreSQL keep it, conformance/ proves
 * that they do, oracle.ts says the same in plain TypeScript.
 *
 * Three rules hold for every operation:
 * - It is one transaction, over as many rows as it is given, and its events are rows of that transaction.
 * - Time is the storage's own clock, so that all nodes agree on it.
 * - What it answers may be told to the outside at once: it is durable. `finishAndClaim` is the exception and says how.
 */
import type { EventType } from "../model/event.ts";
import type { Lane } from "../model/lane.ts";
import type { Settlement } from "../model/outcome.ts";
import type { TaskSpec } from "../model/task.ts";
import type { TaskRecord } from "../model/task-record.ts";
import type { TaskState, TerminalState } from "../model/task-state.ts";

export interface Storage {
  readonly capabilities: StorageCapabilities;
  readonly tasks: TaskStorage;
  readonly events: EventStorage;
  readonly nodes: NodeStorage;
  readonly lanes: LaneStorage;
  readonly agents: AgentStorage;
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
  expire(params: { limit: number }): Promise<{ expired: number }>;
  /** The earliest moment at which `promoteDue` or `expire` will have something to do; null when there is none. */
  nextDueAt(): Promise<number | null>;

  /** Takes back up to `limit` attempts of a node that is dead; see `nodes.markDead`. */
  rescue(params: { node: string; limit: number }): Promise<{ requeued: number; failed: number }>;
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
  readonly spec: TaskSpec;
}

export interface AdmissionLimits {
  /** Waiting tasks over all tenants and lanes. */
  readonly maxQueueSize: number;
  /** Waiting tasks of one agent. */
  readonly maxPerAgent: number;
}

export interface InsertedTask {
  readonly seq: number;
  readonly id: string;
  readonly state: "queued" | "delayed" | "rejected";
  readonly position: number;
  readonly createdAt: number;
  readonly runAt: number | null;
  readonly deadline: number | null;
  /** Why it was rejected, with the number of waiting tasks that filled the queue; null when accepted. */
  readonly rejection: { readonly full: "global" | "agent"; readonly queued: number } | null;
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
  /** How many overdue tasks were failed on the way. */
  readonly expired: number;
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
  readonly lane?: string;
  readonly limit: number;
  /** From `nextCursor` of the page before. */
  readonly cursor?: number;
}

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
  | { readonly id: string; readonly found: true; readonly was: null; readonly token: number | null };

export type RetriedTask =
  | { readonly found: false }
  /** Neither failed nor cancelled: nothing changed. */
  | { readonly found: true; readonly was: TaskState }
  | { readonly found: true; readonly was: null; readonly task: InsertedTask };

// --------------------------------------------------------------------------------------------------------- events

export interface EventStorage {
  /** Up to `limit` events after `after`, oldest first. Never passes over one that commits later. */
  read(params: { after: number; limit: number }): Promise<StoredEvent[]>;
  /** The numbers of the oldest and newest event there is; both 0 when there is none. */
  range(): Promise<{ oldest: number; newest: number }>;
}

export interface StoredEvent {
  readonly seq: number;
  readonly type: EventType;
  readonly at: number;
  readonly tenant: string;
  readonly taskId: string;
  readonly agent: string;
  readonly lane: string;
  readonly state: TaskState;
  /** Only with `task.completed`. */
  readonly result: unknown;
  /** What this type of event adds; see `RotaEvent`. */
  readonly data: EventData | null;
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
}

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
