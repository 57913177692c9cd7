export type { ExecutorConfig } from "../model/executor-config.ts";

import type { Log } from "../model/log.ts";
import type { Task } from "../model/task.ts";
import type { Turn } from "../model/turn.ts";

/** The largest progress report, as JSON. */
export const PROGRESS_BYTES_MAX = 16_384;

/**
 * Does the work of a task. It knows nothing of queues: it gets a task, and its return value (any JSON) is the result. If it
 * throws, the attempt fails and is retried while retries are left. A `PermanentError` is not retried.
 *
 * @example
 * const executor: Executor = async (task, { signal, progress }) => {
 *   progress({ step: "asking" });
 *   return askModel(task.instruction, { signal });
 * };
 */
export type Executor = (task: Task, context: ExecutorContext) => unknown;

export interface ExecutorContext {
  /** The tenant of the task. Without tenants: `default`. */
  readonly tenantId: string;
  /** Fires when Rota ends the attempt: timed out, past its deadline, cancelled, pre-empted or interrupted. */
  readonly signal: AbortSignal;
  /** Every entry names the task and the attempt. */
  readonly log: Log;
  /** Reports progress: any JSON up to 16 KiB. If reports come faster than they are written, only the latest is kept. */
  readonly progress: (data: unknown) => void;
  /** Reports tokens and cost. Several reports add up; of `contextTokens`, `contextWindow` and `model` the last one counts. */
  readonly usage: (usage: Usage) => void;
  /**
   * Counts bytes that the executor holds for the task, besides the task itself, until it returns. Above
   * `scheduler.maxRunningBytes` the process starts no further tasks.
   */
  readonly holds: (bytes: number) => void;
  /** The context window of the agent's model, if the agent sets it. */
  readonly contextWindow?: number | undefined;
  /**
   * Reads the session of the task: its generation, and its last turns with the same agent, oldest first. Null if the task has no
   * session. Rejects when the attempt is over.
   */
  readonly session: (params?: ReadSessionParams) => Promise<TaskSession | null>;
  /**
   * The `webhook-signature` of a request for this task, signed like the webhooks of its tenant. Null if the tenant has no secret.
   */
  readonly sign: (content: SignedContent, options?: SignOptions) => string | null;
}

export interface SignOptions {
  /**
   * Never signs with the secret of the configuration, which signs for tenants that have none of their own yet. A receiver that
   * one tenant names could replay such a request as one of another tenant.
   */
  readonly ownSecretOnly?: boolean;
}

export interface ReadSessionParams {
  /** How many turns to read, `TURNS_MAX` at most. Default: 0. */
  readonly turns?: number;
}

/** The session of a task, as an executor sees it. */
export interface TaskSession {
  /** How often the session was reset. Turns from before a reset are not included. */
  readonly generation: number;
  /** The context window of the session in tokens, as reported or set last; null: unknown. */
  readonly contextWindow: number | null;
  /** The earlier tasks of the same session, agent and generation that are done. */
  readonly turns: readonly Turn[];
}

/** What Standard Webhooks sign. */
export interface SignedContent {
  readonly id: string;
  /** Seconds since 1970. */
  readonly timestamp: number;
  readonly body: string;
}

/** Integers that are not negative. */
export interface Usage {
  readonly inputTokens?: number;
  readonly outputTokens?: number;
  /** How full the context is after this call. Default: the tokens in and out of it. */
  readonly contextTokens?: number;
  /** The context window of the model. */
  readonly contextWindow?: number;
  /** The model that was used. */
  readonly model?: string;
  /** The cost, in millionths of the currency of the prices. */
  readonly costMicros?: number;
}
