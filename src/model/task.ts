import type { RetryPolicy } from "./retry-policy.ts";
import type { TaskState } from "./task-state.ts";

export const TASK_KINDS = ["action", "instruction", "message", "custom"] as const;
export type TaskKind = (typeof TASK_KINDS)[number];

/** The agent that always exists. */
export const DEFAULT_AGENT = "index";
/** The limit of waiting tasks of an agent without a limit. */
export const NO_QUEUE_LIMIT = Number.MAX_SAFE_INTEGER;
/** The tenant of callers without keys, for local use. */
export const DEFAULT_TENANT = "default";

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
  /** The conversation that the agent's side knows it by. */
  readonly conversationId?: string;
  /** The `request_id` of the run that it is. */
  readonly requestId?: string;
  readonly retryPolicy: RetryPolicy;
  /** Per attempt, from its start; null: only the deadline bounds it. */
  readonly timeoutMs: number | null;
  /** What those it was handed in with call it. */
  readonly key?: string;
  /** The ids of the tasks it depends on. */
  readonly dependsOn?: readonly string[];
  /** Whether it gives way to a critical task that finds no free slot. */
  readonly preemptible?: true;
}

/** How one execution of a task ended. */
export const ATTEMPT_OUTCOMES = ["done", "failed", "cancelled", "interrupted", "preempted", "lost"] as const;
export type AttemptOutcome = (typeof ATTEMPT_OUTCOMES)[number];

/** What a task cost, over all attempts that told. */
export interface TaskUsage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** What the model used last can take in. */
  readonly contextWindow?: number;
}

/** The result of a task that another one depends on, as its executor gets it. */
export type DependencyResult =
  /** Each read of `result` parses it anew, so that results that nobody looks at take up little memory. */
  | { readonly taskId: string; readonly result: unknown }
  /** It did not fit into `DEPENDENCY_BYTES_MAX`, nor did those before it leave room: read the task by its id instead. */
  | {
      readonly taskId: string;
      readonly result?: never;
      readonly resultBytes: number;
      readonly omitted: true;
    };

/** How many bytes of results, as JSON, an executor is given in all, in the order of `dependsOn`. */
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

/** A task as users see it: over HTTP, in the library and by executors alike. Times are RFC 3339. */
export interface Task {
  readonly taskId: string;
  readonly agentId: string;
  readonly kind: TaskKind;
  readonly lane: string;
  readonly priority: number;
  readonly state: TaskState;
  /** Its place among the agent's waiting tasks at submission; 0 when it could not start yet. */
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
  /** The batch it was handed in with. */
  readonly batchId?: string;
  /** The conversation it is part of. */
  readonly sessionKey?: string;
  /** The schedule that it is a run of. */
  readonly scheduleId?: number;
  /** The conversation that the agent's side knows it by, where the schedule names one. */
  readonly conversationId?: string;
  /** The `request_id` of the run that it is, which the agent is called with. */
  readonly requestId?: string;
  /** What those it was handed in with call it. */
  readonly key?: string;
  /** The tasks that must be done before it starts. */
  readonly dependsOn?: readonly string[];
  /** The results of those tasks, in that order: only an executor gets them. */
  readonly dependencies?: readonly DependencyResult[];
  /** Where its end is told. */
  readonly callbackUrl?: string;
  /** It gives way to a critical task that finds no free slot. */
  readonly preemptible?: true;
  /** Tasks of a tenant with the same key run one at a time. */
  readonly concurrencyKey?: string;

  readonly runAt?: string;
  readonly deadline?: string;
  /** Milliseconds per attempt. */
  readonly timeout?: number;
  readonly retryPolicy: RetryPolicy;
  readonly retryCount: number;

  /** The first execution. */
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

/** What fits into a line of a list of tasks. */
export interface TaskRow {
  readonly taskId: string;
  /** What it asks for, cut short; left out when that is very long. */
  readonly title?: string;
  readonly state: TaskState;
  readonly agentId: string;
  readonly lane: string;
  readonly priority: number;
  readonly createdAt: string;
  /** The first execution. */
  readonly startedAt?: string;
  readonly completedAt?: string;
  /** How often it was tried, the attempt in progress included. */
  readonly attempts: number;
  /** In and out together, over all attempts that told. */
  readonly tokens?: number;
  /** Cut short. */
  readonly error?: string;
}
