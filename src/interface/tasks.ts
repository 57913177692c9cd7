import type { Batch, Keyed, SubmittedBatch } from "../model/batch.ts";
import type { BoundName } from "../model/bounds.ts";
import type { Explanation } from "../model/explanation.ts";
import type { BatchInput } from "../model/input/batch-input.ts";
import type { InputOf } from "../model/input/schema.ts";
import type { SubmitInput, SubmittedTask } from "../model/input/submit-input.ts";
import type { TASK_FILTER } from "../model/input/task-filter-input.ts";
import type { Task, TaskRow } from "../model/task.ts";
import type { TaskState } from "../model/task-state.ts";
import type { TaskLog, TaskLogFilter } from "./task-logs.ts";

export interface Tasks {
  /**
   * Stores a task to be run; it is durable once this resolves. Throws a `RotaError`: `invalid_field` says what to write
   * instead, `queue_full` that the queue is full (the task is stored as `rejected`).
   */
  submit(input: SubmitInput): Promise<SubmittedTask>;
  /**
   * Checks a task as `submit` does and returns what would be stored. Stores nothing. What only the transaction of a submit can
   * decide is not checked: room in the queue, the quotas of the tenant, and whether the `idempotencyKey` was used before.
   *
   * @example
   * const { task } = await rota.tasks.dryRun({ instruction: "What is new?", runAt: "2030-01-31T09:00:00Z" });
   */
  dryRun(input: SubmitInput): Promise<TaskDryRun>;
  /**
   * Submits tasks together. All are checked before any is stored; then each is admitted or rejected by itself, in order. They
   * share a `batchId`, and the agent and the callback of the batch are the defaults of its tasks. At most 50 tasks if one of
   * them is an action, else 100.
   */
  submitBatch(input: BatchInput): Promise<SubmittedBatch>;
  /** Returns a batch with the states and the dependencies of its tasks. Throws `not_found`. */
  getBatch(batchId: string): Promise<Batch>;
  /** Cancels all tasks of a batch that have not ended. Returns how many those were. Throws `not_found`. */
  cancelBatch(batchId: string): Promise<{ readonly cancelled: number }>;
  /** Throws `not_found`. */
  get(taskId: string): Promise<Task>;
  /** Returns why a task has not started or ended: everything that holds it, and the tasks ahead of it. Throws `not_found`. */
  explain(taskId: string): Promise<Explanation>;
  /**
   * Returns the log lines of a task, oldest first: the last 2000 lines, or 256 KiB, of each of its last 5 attempts. Throws
   * `not_found` and `invalid_field`.
   *
   * @example
   * const { lines, dropped } = await rota.tasks.logs(taskId);
   */
  logs(taskId: string, filter?: TaskLogFilter): Promise<TaskLog>;
  /**
   * Lists tasks a page at a time, newest first unless `order` is set. A page has `limit` tasks; fewer or none if they are large,
   * or if few of many tasks match. There may be more as long as `nextCursor` is not null.
   */
  list(filter?: TaskFilter): Promise<TaskPage>;
  /** The same list with only the fields that fit into a table row: a fraction of the size of whole tasks. */
  listRows(filter?: TaskFilter): Promise<TaskRowPage>;
  /**
   * Cancels a waiting or running task. Throws `not_found`, and `conflict` if it has already ended. With `tree` also all tasks that
   * were submitted within it, and within those; then a task that has ended is no conflict.
   */
  cancel(taskId: string, options?: CancelOptions): Promise<CancelledTask>;
  /**
   * Puts a failed or cancelled task back into the queue; with `dependants` also the tasks that were cancelled because of it.
   * Throws `not_found`, and `conflict` for a task in another state, or with a dependency that will never be done.
   */
  retry(taskId: string, options?: TaskRetryOptions): Promise<SubmittedTask>;
  /**
   * Submits a new task: a copy of a stored one, or `input`. Free-form fields of `input` may contain masks: such a field is copied
   * from the stored task if the rest of the field and `agentId` are unchanged, and for `params` also the target. Dependencies and
   * `idempotencyKey` are not copied. Throws `not_found`, and what `submit` throws.
   */
  submitAgain(taskId: string, input?: SubmitInput): Promise<SubmittedTask>;
  /**
   * Resolves with the task once it has ended, in any state. Throws `not_found`, the signal's reason when the signal fires, and
   * after `timeoutMs` the `TimeoutError` that `AbortSignal.timeout` would throw.
   */
  wait(taskId: string, options?: WaitOptions): Promise<Task>;
  /** How many tasks are in each state. */
  counts(): Promise<TaskCounts>;
}

/** Methods of a scheduler in this process only: so many tasks would not fit into one HTTP request. */
export interface LocalTasks extends Tasks {
  /** Up to 10 000 at once. All are checked before any is stored; then each is admitted or rejected by itself, in order. */
  submitMany(inputs: readonly Keyed<SubmitInput>[]): Promise<SubmittedManyTask[]>;
  list(filter?: TaskFilter, options?: LocalListing): Promise<TaskPage>;
  listRows(filter?: TaskFilter, options?: LocalListing): Promise<TaskRowPage>;
  cancel(taskId: string, options?: CancelOptions, reading?: LocalListing): Promise<CancelledTask>;
  get(taskId: string, reading?: SizedReading): Promise<Task>;
  explain(taskId: string, reading?: SizedReading): Promise<Explanation>;
  retry(taskId: string, options?: TaskRetryOptions, reading?: SizedReading): Promise<SubmittedTask>;
  submitAgain(taskId: string, input?: SubmitInput, reading?: SizedReading): Promise<SubmittedTask>;
  wait(taskId: string, options?: WaitOptions & SizedReading): Promise<Task>;
}

/** For the server, which charges callers for large tasks, and lets other requests through between them. */
export interface SizedReading {
  /** Called with the stored size of a large task before it is read. The read waits for its promise, and fails if that rejects. */
  readonly onSize?: ((bytes: number) => Promise<void> | void) | undefined;
}

/** For the server, which charges callers for the rows that a list, or a cancel of a tree, reads. */
export interface LocalListing {
  /** Called with the number of entries read, including those that do not match. Called several times for one page. */
  readonly onLooked?: ((entries: number) => void) | undefined;
}

export interface CancelOptions {
  /** Also cancels the tasks below it. */
  readonly tree?: boolean;
}

export interface TaskRetryOptions {
  /**
   * Also retries the tasks that were cancelled because of this one, and those cancelled because of them: they wait for it
   * again. A task with another dependency that is not done, or whose own deadline has passed, stays cancelled.
   */
  readonly dependants?: boolean;
}

export interface WaitOptions {
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
}

export interface SubmittedManyTask extends SubmittedTask {
  /** Why it was rejected. */
  readonly error?: string;
}

/** The task that a submit would store. */
export interface TaskDryRun {
  readonly dryRun: true;
  /** `state`: the one in which it would begin. */
  readonly task: PlannedTask;
  /** How many more tasks each bound of the caller allows, this one included. Left out: no bound counts tasks of the caller. */
  readonly left?: Readonly<Partial<Record<BoundName, number>>>;
}

export type PlannedTask = Omit<Task, "taskId" | "position" | "attempts">;

export interface CancelledTask {
  readonly status: "cancelled";
  readonly taskId: string;
  /** With `tree`: how many tasks were cancelled, the task itself included. */
  readonly cancelled?: number;
  /** With `tree`: there are so many tasks that some may be left. Call again. */
  readonly more?: true;
}

export interface TaskCounts {
  /** States without any are left out. */
  readonly counts: Readonly<Partial<Record<TaskState, number>>>;
  readonly total: number;
}

export type { TaskStateFilter } from "../model/input/task-filter-input.ts";

export type TaskFilter = InputOf<typeof TASK_FILTER.fields>;

export interface TaskPage {
  readonly tasks: readonly Task[];
  /** Of this page. */
  readonly count: number;
  /** Null on the last page. */
  readonly nextCursor: string | null;
}

export interface TaskRowPage {
  readonly tasks: readonly TaskRow[];
  /** Of this page. */
  readonly count: number;
  /** Null on the last page. */
  readonly nextCursor: string | null;
}
