import type { PriorityName } from "../priority.ts";
import type { RetryPolicy } from "../retry-policy.ts";
import type { TaskState } from "../task-state.ts";

/**
 * What is handed in to make a task: exactly one of `action`, `instruction`, `message` and `payload`, and what is
 * common to all four.
 *
 * @example
 * { agentId: "research", instruction: "Summarise today's papers", priority: "high", timeout: 60_000 }
 */
export type SubmitInput = ActionInput | InstructionInput | MessageInput | CustomInput;

interface CommonInput {
  /** Who does it; `index` when left out, but an `action` has to name it. */
  readonly agentId?: string;
  /** Lower goes first: `critical` 0, `high` 1, `normal` 2 (default), `low` 3, or any integer. */
  readonly priority?: number | PriorityName;
  /** For the whole task, waiting and retries included: RFC 3339 with a zone, or a Date. */
  readonly deadline?: string | Date;
  /** Milliseconds for each attempt, from its start: 1 000 to 600 000. */
  readonly timeout?: number;
  /** Start not before: RFC 3339 with a zone, or a Date. */
  readonly runAt?: string | Date;
  /** How it is tried again after a failure; what is left out comes from the kind's default. */
  readonly retryPolicy?: Partial<RetryPolicy>;
  /**
   * Tasks that must be done before it starts, by id; in a batch or with `submitMany` also by `key`. When one of them
   * ends in another way, this one is cancelled.
   */
  readonly dependsOn?: readonly string[];
  /** The same key within 24 hours gives the task that it made first; with another request it is refused. */
  readonly idempotencyKey?: string;
  /** Where its end is told: `POST` with the task as it then is. */
  readonly callbackUrl?: string;
  /** Another name for `callbackUrl`. */
  readonly webhookUrl?: string;
  /** The pool of concurrency it runs in; a name nobody configured means `main`. */
  readonly lane?: string;
  /**
   * The conversation it is part of. Tasks of one start in the order they were accepted, one at a time unless the session
   * says otherwise.
   */
  readonly sessionKey?: string;
  /**
   * It may be made to give way to a critical task that finds no free slot: its signal fires, and it is run again from the
   * start. No attempt is counted; three times at most.
   */
  readonly preemptible?: boolean;
  /**
   * Tasks with the same key run one at a time, whatever their agents and lanes. An `action` with a `tabId` has `tab:<tabId>`
   * unless it says otherwise; `""`: none.
   */
  readonly concurrencyKey?: string;
  /** Yours: stored with the task and handed back. */
  readonly metadata?: Readonly<Record<string, unknown>>;
}

/** Drives a browser tab: lane `tasks`, not retried, `deadline` 60 s after it could first start. */
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

/** Asks an agent to do something: lane `tasks`, 3 retries, `timeout` 120 000. */
export interface InstructionInput extends CommonInput {
  readonly instruction: string;
  readonly llmConfig?: Readonly<Record<string, unknown>>;
  readonly action?: never;
  readonly message?: never;
  readonly payload?: never;
}

/** Says something to an agent: lane `main`, tried again only if its node is lost, `timeout` 120 000. */
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

/** What is known of a task once it is stored. */
export interface SubmittedTask {
  readonly taskId: string;
  readonly state: TaskState;
  /** Its place among the agent's waiting tasks, itself included; 0 when it cannot start yet. */
  readonly position: number;
  /** RFC 3339. */
  readonly createdAt: string;
  /** Left out when there are none: no live node can execute it, say. */
  readonly warnings?: readonly string[];
}
