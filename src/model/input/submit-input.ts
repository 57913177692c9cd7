import type { PriorityName } from "../priority.ts";
import type { RetryPolicy } from "../retry-policy.ts";
import type { TaskState } from "../task-state.ts";

/**
 * The input of a new task: exactly one of `action`, `instruction`, `message` and `payload`, and the fields that all four kinds
 * have.
 *
 * @example
 * { agentId: "research", instruction: "Summarise today's papers", priority: "high", timeout: 60_000 }
 */
export type SubmitInput = ActionInput | InstructionInput | MessageInput | CustomInput;

interface CommonInput {
  /** The agent; left out: `index`. An `action` must name it. */
  readonly agentId?: string;
  /** Lower starts first: `critical` 0, `high` 1, `normal` 2 (default), `low` 3, or any integer. */
  readonly priority?: number | PriorityName;
  /** For the whole task, waiting and retries included: RFC 3339 with a zone, or a Date. */
  readonly deadline?: string | Date;
  /** Milliseconds for each attempt, from its start: 1 000 to 600 000. */
  readonly timeout?: number;
  /** The earliest start: RFC 3339 with a zone, or a Date. */
  readonly runAt?: string | Date;
  /** How it is retried after a failure; fields that are left out have the default of its kind. */
  readonly retryPolicy?: Partial<RetryPolicy>;
  /**
   * Tasks that must be done before it starts, by id; in a batch or with `submitMany` also by `key`. When one of them
   * ends in another way, this one is cancelled.
   */
  readonly dependsOn?: readonly string[];
  /** A repeated key within 24 hours returns the task of the first request; with another request it is refused. */
  readonly idempotencyKey?: string;
  /** Rota sends a `POST` with the task to this URL when the task has ended. */
  readonly callbackUrl?: string;
  /** Another name for `callbackUrl`. */
  readonly webhookUrl?: string;
  /** The lane that it runs in; an unknown name means `main`. */
  readonly lane?: string;
  /**
   * The session that it is part of. Tasks of a session start in the order in which they were accepted, one at a time unless the
   * session sets another limit.
   */
  readonly sessionKey?: string;
  /**
   * It may be pre-empted for a critical task that finds no free slot: its signal fires, and later it runs again from the start.
   * That counts as no retry, and happens at most three times.
   */
  readonly preemptible?: boolean;
  /**
   * Tasks with the same key run one at a time, whatever their agents and lanes. The default of an `action` with a `tabId` is
   * `tab:<tabId>`; `""`: none.
   */
  readonly concurrencyKey?: string;
  /** Your own data: stored and returned with the task. */
  readonly metadata?: Readonly<Record<string, unknown>>;
}

/** An action in a browser tab: lane `tasks`, not retried, `deadline` 60 s after it could first start. */
export interface ActionInput extends CommonInput {
  readonly agentId: string;
  readonly action: string;
  readonly tabId?: string;
  readonly ref?: string;
  readonly selector?: string;
  readonly params?: Readonly<Record<string, unknown>>;
  readonly instruction?: never;
  readonly message?: never;
  readonly payload?: never;
}

/** An instruction to an agent: lane `tasks`, 3 retries, `timeout` 120 000. */
export interface InstructionInput extends CommonInput {
  readonly instruction: string;
  readonly llmConfig?: Readonly<Record<string, unknown>>;
  readonly action?: never;
  readonly message?: never;
  readonly payload?: never;
}

/** A message to an agent: lane `main`, retried only if its node is lost, `timeout` 120 000. */
export interface MessageInput extends CommonInput {
  readonly message: string;
  readonly action?: never;
  readonly instruction?: never;
  readonly payload?: never;
}

/** Any JSON for your own executor: lane `tasks`, not retried, `timeout` 120 000. */
export interface CustomInput extends CommonInput {
  readonly payload: unknown;
  readonly action?: never;
  readonly instruction?: never;
  readonly message?: never;
}

/** The response to a submission. */
export interface SubmittedTask {
  readonly taskId: string;
  readonly state: TaskState;
  /** Its position among the agent's waiting tasks, counted from 1; 0: it cannot start yet. */
  readonly position: number;
  /** RFC 3339. */
  readonly createdAt: string;
  /** Such as that no live node can execute it. Left out: there are none. */
  readonly warnings?: readonly string[];
}
