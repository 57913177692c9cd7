import type { Batch, BatchInput, Keyed, SubmittedBatch } from "../model/batch.ts";
import type { Explanation } from "../model/explanation.ts";
import type { SubmitInput, SubmittedTask } from "../model/input/submit-input.ts";
import type { PriorityName } from "../model/priority.ts";
import type { Task, TaskRow } from "../model/task.ts";
import type { TaskOrder } from "../model/task-order.ts";
import type { TaskState } from "../model/task-state.ts";
import type { TaskLog, TaskLogFilter } from "./task-logs.ts";

export interface Tasks {
  /**
   * Stores a task to be run; durable once this answers. Throws a `RotaError`: `invalid_field` says what to write
   * instead, `queue_full` that there is no room (the task is kept as `rejected`).
   */
  submit(input: SubmitInput): Promise<SubmittedTask>;
  /**
   * Tasks that belong together: all are checked before any is stored, then each is admitted or rejected by itself, in
   * order. They share a `batchId`, and what the batch says of the agent and the callback holds for each that says
   * nothing itself. At most 50 with an action among them, else 100.
   */
  submitBatch(input: BatchInput): Promise<SubmittedBatch>;
  /** A batch with the states of its tasks and who waits for whom. Throws `not_found`. */
  getBatch(batchId: string): Promise<Batch>;
  /** Ends all of a batch that has not ended; answers how many that were. Throws `not_found`. */
  cancelBatch(batchId: string): Promise<{ readonly cancelled: number }>;
  /** Throws `not_found`. */
  get(taskId: string): Promise<Task>;
  /** Why a task is where it is: everything that holds it, and who is ahead. Throws `not_found`. */
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
   * Newest first unless `order` says otherwise, a page at a time: `limit` tasks, or fewer, or even none, if they are large or
   * among many that do not fit. There may be more as long as `nextCursor` is not null.
   */
  list(filter?: TaskFilter): Promise<TaskPage>;
  /** The same list with what fits into a line of each task: a thousand of them take a fraction of what the tasks would. */
  listRows(filter?: TaskFilter): Promise<TaskRowPage>;
  /** Ends a task for good, waiting or running. Throws `not_found`, and `conflict` when it has already ended. */
  cancel(taskId: string): Promise<CancelledTask>;
  /**
   * Puts a failed or cancelled task back into the queue, with `dependants` those as well that were cancelled because of it.
   * Throws `not_found`; and `conflict` for any other task, and for one with a dependency that will never be done.
   */
  retry(taskId: string, options?: TaskRetryOptions): Promise<SubmittedTask>;
  /**
   * Submits a new task: a copy of a stored one, or `input`. Free-form fields of `input` may contain masks: such a field is copied
   * from the stored task if the rest of the field and `agentId` are unchanged, and for `params` also the target. Dependencies and
   * `idempotencyKey` are not copied. Throws `not_found`, and what `submit` throws.
   */
  submitAgain(taskId: string, input?: SubmitInput): Promise<SubmittedTask>;
  /**
   * Answers with the task once it has ended, however it ended. Throws `not_found`; the signal's reason when that
   * fires; and after `timeoutMs` the `TimeoutError` that `AbortSignal.timeout` would give.
   */
  wait(taskId: string, options?: WaitOptions): Promise<Task>;
  /** How many tasks are in each state. */
  counts(): Promise<TaskCounts>;
}

/** What only a scheduler in this process can do: over HTTP so many tasks would not fit into one request. */
export interface LocalTasks extends Tasks {
  /** Up to 10 000 at once. All are checked before any is stored; then each is admitted or rejected by itself, in order. */
  submitMany(inputs: readonly Keyed<SubmitInput>[]): Promise<SubmittedManyTask[]>;
  list(filter?: TaskFilter, options?: LocalListing): Promise<TaskPage>;
  listRows(filter?: TaskFilter, options?: LocalListing): Promise<TaskRowPage>;
}

/** For the server, which charges callers for the rows that a list reads. */
export interface LocalListing {
  /** Called with the number of entries read, including those that do not match. Called several times for one page. */
  readonly onLooked?: ((entries: number) => void) | undefined;
}

export interface TaskRetryOptions {
  /**
   * Brings back the tasks that were cancelled because of this one, and those cancelled because of them: they wait for it
   * again. One with another dependency that was not done, or whose own deadline has passed, stays cancelled.
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

export interface CancelledTask {
  readonly status: "cancelled";
  readonly taskId: string;
}

export interface TaskCounts {
  /** States without any are left out. */
  readonly counts: Readonly<Partial<Record<TaskState, number>>>;
  readonly total: number;
}

/** `pending` stands for `queued`, `completed` for `done`. */
export type TaskStateFilter = TaskState | "pending" | "completed";

export interface TaskFilter {
  readonly agentId?: string;
  readonly state?: TaskStateFilter | readonly TaskStateFilter[];
  readonly priority?: number | PriorityName;
  readonly batchId?: string;
  readonly sessionKey?: string;
  readonly lane?: string;
  /** The runs of this schedule. */
  readonly scheduleId?: number;
  /** The id of a task or its beginning, the id of a batch, or the `key` of a task in a batch. */
  readonly q?: string;
  /** Created then or later, as RFC 3339 or a `Date`; with the order `completed`: ended then or later. */
  readonly from?: string | Date;
  /** Created before that; with the order `completed`: ended before that. */
  readonly to?: string | Date;
  /** `newest` unless told. `completed` lists tasks that have ended, the one that ended last first. */
  readonly order?: TaskOrder;
  /** The most events: 1 to 1000, 100 by default. */
  readonly limit?: number;
  /** `nextCursor` of the page before, which had the same order. */
  readonly cursor?: string;
}

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
