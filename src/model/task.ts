import type { CreatedBy, EnclosingTask } from "./provenance.ts";
import type { RetryPolicy } from "./retry-policy.ts";
import type { TaskState } from "./task-state.ts";

export const TASK_KINDS = ["action", "instruction", "message", "custom"] as const;
export type TaskKind = (typeof TASK_KINDS)[number];

/** The work of a task: exactly one of the four kinds, fixed at submission. */
export type TaskWork =
  | {
      readonly kind: "action";
      readonly action: string;
      readonly tabId?: string;
      readonly ref?: string;
      readonly selector?: string;
      readonly params?: Readonly<Record<string, unknown>>;
    }
  | {
      readonly kind: "instruction";
      readonly instruction: string;
      readonly llmConfig?: Readonly<Record<string, unknown>>;
    }
  | { readonly kind: "message"; readonly message: string }
  | { readonly kind: "custom"; readonly payload: unknown };

/** The part of a task that never changes after submission and that no query filters by. */
export interface TaskSpec {
  readonly work: TaskWork;
  readonly metadata?: Readonly<Record<string, unknown>>;
  /** The conversation on the agent's side. */
  readonly conversationId?: string;
  /** The `request_id` of its run. */
  readonly requestId?: string;
  /** The session that its answer is added to, which is not its own. */
  readonly postTo?: string;
  readonly retryPolicy: RetryPolicy;
  /** Per attempt, from its start; null: only the deadline limits it. */
  readonly timeoutMs: number | null;
  /** Its name in `dependsOn` of other tasks of the same request. */
  readonly key?: string;
  /** The ids of the tasks it depends on. */
  readonly dependsOn?: readonly string[];
  /** Whether it may be pre-empted for a critical task that finds no free slot. */
  readonly preemptible?: true;
  /** Left out: an older version of Rota stored the task. */
  readonly createdBy?: CreatedBy;
  /** The task in whose attempt it was submitted. Left out: none. */
  readonly within?: EnclosingTask;
  /** As in `Provenance`. */
  readonly reach?: readonly string[];
}

/** How one execution of a task ended. */
export const ATTEMPT_OUTCOMES = ["done", "failed", "cancelled", "interrupted", "preempted", "lost"] as const;
export type AttemptOutcome = (typeof ATTEMPT_OUTCOMES)[number];

/** The tokens of all attempts that reported them. */
export interface TaskUsage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** The context window of the model that was used last. */
  readonly contextWindow?: number;
}

/** The result of a task that another one depends on, as its executor gets it. */
export type DependencyResult =
  /** Each read of `result` parses its text, so that results that the executor does not read take little memory. */
  | { readonly taskId: string; readonly result: unknown }
  /** It did not fit into `DEPENDENCY_BYTES_MAX` after the results before it: read the task by its id instead. */
  | {
      readonly taskId: string;
      readonly result?: never;
      readonly resultBytes: number;
      readonly omitted: true;
    };

/** How many bytes of results, as JSON, an executor gets in total, in the order of `dependsOn`. */
export const DEPENDENCY_BYTES_MAX = 4 * 1_048_576;

/** One execution of a task, as users see it. */
export interface Attempt {
  readonly number: number;
  readonly startedAt: string;
  /** Null while it runs. */
  readonly endedAt: string | null;
  readonly outcome: AttemptOutcome | null;
  readonly error: string | null;
  readonly node: string;
}

/** A task as users see it: the same over HTTP, in the library and for executors. Times are RFC 3339. */
export interface Task {
  readonly taskId: string;
  readonly agentId: string;
  readonly kind: TaskKind;
  readonly lane: string;
  readonly priority: number;
  readonly state: TaskState;
  /** Its position among the agent's waiting tasks at submission, counted from 1; 0: it could not start yet. */
  readonly position: number;
  readonly createdAt: string;

  readonly action?: string;
  readonly tabId?: string;
  readonly ref?: string;
  readonly selector?: string;
  readonly params?: Readonly<Record<string, unknown>>;
  readonly instruction?: string;
  readonly llmConfig?: Readonly<Record<string, unknown>>;
  readonly message?: string;
  readonly payload?: unknown;
  readonly metadata?: Readonly<Record<string, unknown>>;
  /** Who submitted it. Left out: an older version of Rota stored it. */
  readonly createdBy?: CreatedBy;
  /** The task in whose attempt it was submitted. */
  readonly parentTaskId?: string;
  /** The first task of the tree that it is part of. Left out: it has no parent. */
  readonly rootTaskId?: string;
  /** How many tasks are above it in that tree. */
  readonly depth?: number;
  /** Its batch. */
  readonly batchId?: string;
  /** Its session. */
  readonly sessionKey?: string;
  /** The schedule that created it. */
  readonly scheduleId?: number;
  /** The conversation on the agent's side, if the schedule names one. */
  readonly conversationId?: string;
  /** The `request_id` of its run, which the agent gets as well. */
  readonly requestId?: string;
  /** Its name in `dependsOn` of other tasks of the same request. */
  readonly key?: string;
  /** The tasks that must be done before it starts. */
  readonly dependsOn?: readonly string[];
  /** The results of those tasks, in the same order: only an executor gets them. */
  readonly dependencies?: readonly DependencyResult[];
  /** Rota sends a `POST` to this URL when the task has ended. */
  readonly callbackUrl?: string;
  /** It may be pre-empted for a critical task that finds no free slot. */
  readonly preemptible?: true;
  /** Tasks of a tenant with the same key run one at a time. */
  readonly concurrencyKey?: string;

  readonly runAt?: string;
  readonly deadline?: string;
  /** Milliseconds per attempt. */
  readonly timeout?: number;
  readonly retryPolicy: RetryPolicy;
  readonly retryCount: number;

  /** The start of the first attempt. */
  readonly startedAt?: string;
  readonly completedAt?: string;
  /** From the first start to the end. */
  readonly latencyMs?: number;
  /** The last attempt alone. */
  readonly executionTimeMs?: number;
  readonly result?: unknown;
  readonly error?: string;
  readonly usage?: TaskUsage;
  readonly attempts: readonly Attempt[];
}

/** The fields of a task in a table row. */
export interface TaskRow {
  readonly taskId: string;
  /** The start of its work as text; left out if its spec is very large. */
  readonly title?: string;
  readonly state: TaskState;
  readonly agentId: string;
  readonly lane: string;
  readonly priority: number;
  readonly createdAt: string;
  /** The start of the first attempt. */
  readonly startedAt?: string;
  readonly completedAt?: string;
  /** The number of attempts, including the one in progress. */
  readonly attempts: number;
  /** Input and output tokens of all attempts that reported them. */
  readonly tokens?: number;
  /** Cut short. */
  readonly error?: string;
}
