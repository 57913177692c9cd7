import type { SubmitInput } from "./input/submit-input.ts";
import type { TaskState } from "./task-state.ts";

/** Tasks handed in together. */
export interface BatchInput {
  /** Who does those tasks that do not say. */
  readonly agentId?: string;
  /** Where the end of each task is told that does not say. */
  readonly callbackUrl?: string;
  /** Another name for `callbackUrl`. */
  readonly webhookUrl?: string;
  /** Where it is told, once, that all tasks have ended: `POST` with how many ended in which state. */
  readonly batchCallbackUrl?: string;
  /** How many of its tasks run at once, over all nodes, 1 to 10; left out: no bound of its own. */
  readonly parallelism?: number;
  readonly tasks: readonly BatchTaskInput[];
}

/** A task that is handed in with others, which can name it by its `key` in their `dependsOn`. */
export type Keyed<Task> = Task & { readonly key?: string };

/** As a task by itself; an action may leave the agent to the batch. */
export type BatchTaskInput = Keyed<
  SubmitInput | (Omit<Extract<SubmitInput, { action: string }>, "agentId"> & { readonly agentId?: string })
>;

/** A batch as it is now. */
export interface Batch {
  readonly batchId: string;
  /** How many of its tasks run at once; null: no bound of its own. */
  readonly parallelism: number | null;
  readonly createdAt: string;
  /** When all of its tasks had ended for the first time. */
  readonly completedAt?: string;
  /** How many of its tasks are in each state; states without any are left out. */
  readonly counts: Readonly<Partial<Record<TaskState, number>>>;
  /** In the order they were taken in. */
  readonly tasks: readonly BatchTask[];
  /** Who waits for whom, of those that are in the batch: `to` starts after `from`. */
  readonly edges: readonly { readonly from: string; readonly to: string }[];
}

export interface BatchTask {
  readonly taskId: string;
  readonly key?: string;
  readonly agentId: string;
  readonly state: TaskState;
  readonly error?: string;
}

/** What `batchCallbackUrl` is told: the body of its callback. */
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
  /** In the order they were handed in. */
  readonly tasks: readonly SubmittedBatchTask[];
  /** Of all of them, rejected ones included. */
  readonly taskIds: readonly string[];
  /** How many were accepted. */
  readonly submitted: number;
  /** How many were handed in. */
  readonly count: number;
  readonly createdAt: string;
  /** Left out when there are none: no live node can execute some of them, say. */
  readonly warnings?: readonly string[];
}

export interface SubmittedBatchTask {
  readonly taskId: string;
  /** What the others call it. */
  readonly key?: string;
  readonly state: TaskState;
  readonly position: number;
  /** Why it was rejected. */
  readonly error?: string;
}
