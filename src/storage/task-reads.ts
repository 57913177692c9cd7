/** What a storage returns about tasks: the part of task-storage.ts that changes nothing. */
import type { TaskOrder } from "../model/task-order.ts";
import type { TaskRecord, TaskRowRecord } from "../model/task-record.ts";
import type { TaskSelection } from "../model/task-selection.ts";
import type { TaskState } from "../model/task-state.ts";
import type { BoundsUsed, SubmitBounds } from "./submit-bounds.ts";

export interface TaskReads {
  /** Null: there is none, or its input and its result take more than `bytesMax` as stored. Left out: no limit. */
  get(params: GetTaskParams): Promise<TaskRecord | null>;
  /** Its state and size, without reading its input and its result, which may be large. */
  status(params: { tenant: string; id: string }): Promise<TaskStatus | null>;
  /** The task, if the attempt with this fencing token still holds it. */
  held(params: { tenant: string; id: string; token: number }): Promise<TaskRecord | null>;
  /** What counts against these bounds now, so that a dry run can say what is left. */
  boundsUsed(bounds: SubmitBounds): Promise<BoundsUsed>;
  /** The tasks below a root task, oldest first, and so each after its parent. `after`: the `seq` of the last one that was read. */
  tree(params: { tenant: string; root: string; after: number; limit: number }): Promise<TreeTask[]>;
  getBatch(params: { tenant: string; id: string }): Promise<BatchRecord | null>;
  /** The tasks of a batch, oldest first, without their inputs and results. */
  batchTasks(params: { tenant: string; batch: string; limit: number }): Promise<BatchTaskRecord[]>;
  /** What keeps a task from starting, as far as the storage knows. */
  situation(params: { tenant: string; id: string }): Promise<TaskSituation | null>;
  /**
   * The tasks that match, a page at a time. A page is short, or even empty, when the call has read `lookedMax` tasks or the
   * tasks found would take more than `bytesMax`. While `nextCursor` is not null there may be more.
   */
  list(params: ListTasksParams): Promise<ListedTasks>;
  /** The same list with the small fields of each task. Fields that could be large are not read. */
  listRows(params: ListTasksParams): Promise<{ rows: TaskRowRecord[]; nextCursor: number | null }>;
  /** How many tasks of the tenant are in each state; states without any are left out. */
  counts(params: { tenant: string }): Promise<Partial<Record<TaskState, number>>>;
  /** How many tasks of a tenant wait or are in flight, by agent and in all. */
  queueDepth(params: { tenant: string }): Promise<QueueDepth>;
  /** The waiting tasks of a tenant, by what could hold them back. Reads counters only, no tasks. */
  waiting(params: { tenant: string }): Promise<WaitingTasks>;

  /**
   * The results of those dependencies of a task that are done, in the order of `ids`: whole results as long as they take up to
   * `bytesMax` together. From the first that does not fit on, it returns only their sizes and does not read their text.
   */
  dependencyResults(params: DependencyResultsParams): Promise<StoredDependency[]>;

  /** The idempotency keys among these that have a task. A request with such a key creates no other. */
  keptKeys(params: { tenant: string; keys: readonly string[] }): Promise<string[]>;
}

export interface GetTaskParams {
  readonly tenant: string;
  readonly id: string;
  readonly bytesMax?: number;
}

export interface TaskStatus {
  readonly agent: string;
  readonly state: TaskState;
  /** Of its input and its result, as stored. */
  readonly bytes: number;
}

export interface ListTasksParams extends TaskSelection {
  readonly tenant: string;
  /** Left out: `newest`. */
  readonly order?: TaskOrder;
  readonly limit: number;
  /** From `nextCursor` of the page before, which had the same order. */
  readonly cursor?: number;
  /** How many tasks the call reads at most; left out: `LISTED_LOOKED_MAX`, in the order `completed` `ENDED_LOOKED_MAX`. */
  readonly lookedMax?: number;
  /** Called with the approximate number of entries read: at least `lookedMax` if that ended the page. */
  readonly onLooked?: ((entries: number) => void) | undefined;
  /** About how many bytes the tasks of a page may take together; the first always fits. Left out: no limit. */
  readonly bytesMax?: number;
}

/** A task of a tree. */
export interface TreeTask {
  readonly seq: number;
  readonly id: string;
  readonly parent: string;
  readonly state: TaskState;
}

export interface ListedTasks {
  readonly tasks: TaskRecord[];
  /** About how many bytes the tasks take together: their specs and results. */
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
  /** Over all lanes. If it is disabled, or has `max` in flight, none of its tasks starts. */
  readonly tenant: { readonly disabled: boolean; readonly inflight: number; readonly max: number | null };
  /**
   * Set when its tenant holds its share of the slots of its lane: `max` of them over all nodes, or on every node that has
   * one free. `inflight`: how many it holds.
   */
  readonly laneShare: { readonly inflight: number; readonly max: number } | null;
  /** `inLane`: of its lane alone; `max`: of the agent itself, over all lanes. */
  readonly agent: { readonly inLane: number; readonly inflight: number; readonly max: number | null };
  /**
   * The first tasks of its agent queue that go before it, in order, and how many there are: `AHEAD_MAX` at most. If it waits
   * for its concurrency key: the tasks of all agents and lanes that get the key before it.
   */
  readonly ahead: { readonly ids: readonly string[]; readonly count: number };
  /** Its batch, if the batch holds it back: other tasks fill its parallelism. `active` are some of those. */
  readonly batch: { readonly parallelism: number; readonly active: readonly string[] } | null;
  /**
   * Its session, if the session holds it back: `active` are some of the tasks before it, `max` how many may run at once.
   * `takenBy`: the task whose attempt has taken it. `offeredUntil`: until when the running attempt may take it.
   */
  readonly session: {
    readonly key: string;
    readonly max: number;
    readonly active: readonly string[];
    readonly takenBy: string | null;
    readonly offeredUntil: number | null;
  } | null;
  /**
   * Set while no live node or worker can execute it. `served`: its agent has an executor, and a node or worker that names the
   * agent was last seen at `lastSeenAt`. Otherwise `failUnserved` counts from `since`. `byWorkers`: workers run its agent.
   */
  readonly noExecutor: {
    readonly served: boolean;
    readonly byWorkers: boolean;
    readonly lastSeenAt: number | null;
    readonly since: number | null;
  } | null;
  /** Set if live workers run its agent: how many, and how many slots they have and use. Workers that drain do not count. */
  readonly workers: { readonly count: number; readonly slots: number; readonly held: number } | null;
  /** Set while it waits to run alone in a process, with how often it was lost. */
  readonly alone: { readonly losses: number } | null;
  /** Its concurrency key, if the key holds it back: `holder` is the task that has the key. */
  readonly key: { readonly name: string; readonly holder: string } | null;
  /** Those of its dependencies that exist. */
  readonly parents: readonly { readonly id: string; readonly state: TaskState }[];
}

/** How many of the tasks ahead of a task are named, and how many are counted. */
export const AHEAD_MAX = { named: 10, counted: 10_000 } as const;

/** Agents without any are left out. */
export interface QueueDepth {
  /** What admission counts: waiting tasks, including delayed ones and those with open dependencies, but no messages or runs. */
  readonly queued: number;
  readonly inflight: number;
  /** The same as `queued`, by agent. */
  readonly agents: Readonly<Record<string, number>>;
  /** Everything in the state `queued`, by agent: tasks, messages and runs. */
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

/** Exists as long as one of its tasks does. */
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
  /** The name by which other tasks of its batch refer to it; null: none. */
  readonly key: string | null;
  readonly dependsOn: readonly string[];
}

export interface DependencyResultsParams {
  readonly seq: number;
  /** Its dependencies, in the order of the result. */
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
