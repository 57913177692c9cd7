export type { ExecutorConfig } from "../model/executor-config.ts";

import type { Log } from "../model/log.ts";
import type { Task } from "../model/task.ts";

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
  /** Reports what it cost. Several reports add up; of `contextWindow` the last one counts. */
  readonly usage: (usage: Usage) => void;
}

/** Whole numbers, none of them negative. */
export interface Usage {
  readonly inputTokens?: number;
  readonly outputTokens?: number;
  /** How many tokens the model takes in at most. */
  readonly contextWindow?: number;
}
