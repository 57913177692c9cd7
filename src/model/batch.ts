import type { SubmitInput } from "./input/submit-input.ts";
import type { TaskState } from "./task-state.ts";

/** A task that is submitted with others, which can name its `key` in their `dependsOn`. */
export type Keyed<Task> = Task & { readonly key?: string };

/** The same input as for a single task, but an action may leave the agent to the batch. */
export type BatchTaskInput = Keyed<
  SubmitInput | (Omit<Extract<SubmitInput, { action: string }>, "agentId"> & { readonly agentId?: string })
>;

/** A batch as it is now. */
export interface Batch {
  readonly batchId: string;
  /** How many of its tasks run at once; null: no limit of its own. */
  readonly parallelism: number | null;
  readonly createdAt: string;
  /** When all of its tasks had ended for the first time. */
  readonly completedAt?: string;
  /** How many of its tasks are in each state; states without any are left out. */
  readonly counts: Readonly<Partial<Record<TaskState, number>>>;
  /** In order of acceptance. */
  readonly tasks: readonly BatchTask[];
  /** The dependencies within the batch: `to` starts after `from` is done. */
  readonly edges: readonly { readonly from: string; readonly to: string }[];
}

export interface BatchTask {
  readonly taskId: string;
  readonly key?: string;
  readonly agentId: string;
  readonly state: TaskState;
  readonly error?: string;
}

/** The body of the callback to `batchCallbackUrl`. */
export interface BatchCompleted {
  readonly type: "batch.completed";
  readonly batchId: string;
  readonly parallelism: number | null;
  /** How many of its tasks had ended in which state; states without any are left out. */
  readonly counts: Readonly<Partial<Record<TaskState, number>>>;
  readonly createdAt: string;
  readonly completedAt: string;
}

export interface SubmittedBatch {
  readonly batchId: string;
  /** In the order of the request. */
  readonly tasks: readonly SubmittedBatchTask[];
  /** The ids of all tasks, including rejected ones. */
  readonly taskIds: readonly string[];
  /** How many were accepted. */
  readonly submitted: number;
  /** The number of tasks in the request. */
  readonly count: number;
  readonly createdAt: string;
  /** Such as that no live node can execute some of them. Left out: there are none. */
  readonly warnings?: readonly string[];
}

export interface SubmittedBatchTask {
  readonly taskId: string;
  /** Its name in `dependsOn` of the others. */
  readonly key?: string;
  readonly state: TaskState;
  readonly position: number;
  /** Why it was rejected. */
  readonly error?: string;
}
