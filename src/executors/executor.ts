export type { ExecutorConfig } from "../model/executor-config.ts";

import type { Log } from "../model/log.ts";
import type { Task } from "../model/task.ts";
import type { Turn } from "../model/turn.ts";

/** The most a report of progress may take, as JSON. */
export const PROGRESS_BYTES_MAX = 16_384;

/**
 * What does the work of a task. It knows nothing of queues: it is handed a task, and what it returns (any JSON) is the
 * result. A throw fails the attempt, which is retried while retries are left; a `PermanentError` is not.
 *
 * @example
 * const executor: Executor = async (task, { signal, progress }) => {
 *   progress({ step: "asking" });
 *   return askModel(task.instruction, { signal });
 * };
 */
export type Executor = (task: Task, context: ExecutorContext) => unknown;

export interface ExecutorContext {
  /** Whose task it is: `default` unless there are others. */
  readonly tenantId: string;
  /** Fires when the attempt is over for Rota: timed out, past its deadline, cancelled, pre-empted or interrupted. */
  readonly signal: AbortSignal;
  /** Every line names the task and the attempt. */
  readonly log: Log;
  /** Tells how far it is: any JSON up to 16 KiB. Reports that come faster than they are written keep the latest. */
  readonly progress: (data: unknown) => void;
  /** Reports what it cost. Several reports add up; of `contextTokens`, `contextWindow` and `model` the last one counts. */
  readonly usage: (usage: Usage) => void;
  /**
   * Counts bytes that it holds for the task beyond the task itself, until it returns: above `scheduler.maxRunningBytes` the
   * process starts no further tasks.
   */
  readonly holds: (bytes: number) => void;
  /** How many tokens the model of the agent takes in at most, where the agent says so. */
  readonly contextWindow?: number | undefined;
  /**
   * Reads the session of the task: its generation, and its last turns with the same agent, oldest first. Null when the task
   * has none. Rejects when the attempt is over.
   */
  readonly session: (params?: ReadSessionParams) => Promise<TaskSession | null>;
  /**
   * The `webhook-signature` of a request for this task, as callbacks of its tenant are signed; null when its tenant has no
   * secret.
   */
  readonly sign: (content: SignedContent, options?: SignOptions) => string | null;
}

export interface SignOptions {
  /**
   * Not by the secret of the configuration, which signs for tenants from before they had their own. A receiver that a tenant
   * has named could send it on as a request of another tenant.
   */
  readonly ownSecretOnly?: boolean;
}

export interface ReadSessionParams {
  /** How many turns are read at most, `TURNS_MAX` in all; 0 unless told. */
  readonly turns?: number;
}

/** The session of a task, as an executor sees it. */
export interface TaskSession {
  /** How often the session was reset: what came before a reset is not among the turns. */
  readonly generation: number;
  /** How many tokens its context takes, as was reported or set last; null: nobody said. */
  readonly contextWindow: number | null;
  /** Tasks of the same session, agent and generation that are done and went before this one. */
  readonly turns: readonly Turn[];
}

/** What Standard Webhooks sign. */
export interface SignedContent {
  readonly id: string;
  /** Seconds since 1970. */
  readonly timestamp: number;
  readonly body: string;
}

/** Whole numbers, none of them negative. */
export interface Usage {
  readonly inputTokens?: number;
  readonly outputTokens?: number;
  /** How full the context is after this call; the tokens in and out of it unless told. */
  readonly contextTokens?: number;
  /** How many tokens the model takes in at most. */
  readonly contextWindow?: number;
  /** The model that was used. */
  readonly model?: string;
  /** What it cost, in millionths of whatever currency the prices are in. */
  readonly costMicros?: number;
}
