export type { ExecutorConfig } from "../model/executor-config.ts";

import type { SCHEDULE } from "../model/input/schedule-schema.ts";
import type { InputOf, OrNull } from "../model/input/schema.ts";
import type { MESSAGE } from "../model/input/session-input.ts";
import type { SubmitInput, SubmittedTask } from "../model/input/submit-input.ts";
import type { Log } from "../model/log.ts";
import type { Task } from "../model/task.ts";
import type { TaskState } from "../model/task-state.ts";
import type { TextBody } from "../model/text/text-body.ts";
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

export interface ExecutorContext extends TaskActions {
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
   * Takes the messages in mode `steer` that were sent to the session while the task runs, oldest first; none if there are none, or
   * the task has no session. Each is returned once and ends together with the task. Call it between the steps of the work:
   * a message is offered for `sessions.steerMs`, and then waits for its own turn. Rejects when the attempt is over.
   */
  readonly messages: () => Promise<readonly SteeredMessage[]>;
  /**
   * The `webhook-signature` of a request for this task, signed like the webhooks of its tenant. Null if the tenant has no secret.
   */
  readonly sign: (content: SignedContent, options?: SignOptions) => string | null;
  /**
   * Stands for "this agent within this task" in requests to Rota, as the header `X-Rota-Task-Token`. It is refused once the attempt
   * has ended. A program that has it can do what the agent may: pass it to your own programs only.
   */
  readonly taskToken: string;
  /** Whether the agent lets Rota send the token to another server, with the request of an `http` executor. */
  readonly sendsTaskToken: boolean;
}

/**
 * What a handler makes within its task: Rota records the task as its parent, and the bounds of the agent apply. Each rejects once
 * the attempt is over.
 */
export interface TaskActions {
  /**
   * Submits a task; without `agentId` for the same agent.
   *
   * @example
   * const { taskId } = await context.submit({ agentId: "writer", message: "sum it up" });
   */
  readonly submit: (input: SubmitInput) => Promise<SubmittedTask>;
  /**
   * Makes a schedule; without `agent` for the same agent.
   *
   * @example
   * await context.schedule({ schedule: "in 10 minutes", message: "look again" });
   */
  readonly schedule: (input: OrNull<InputOf<typeof SCHEDULE.fields>>) => Promise<MadeSchedule>;
  /** Sends a message to a session. */
  readonly say: (sessionKey: string, input: InputOf<typeof MESSAGE.fields>) => Promise<SaidMessage>;
}

/** What `context.schedule` returns: the response of `POST /v1/schedules`. */
export interface MadeSchedule {
  readonly scheduled_task: {
    readonly id: number;
    readonly status: string;
    readonly schedule_phrase: string;
    /** Seconds since 1970; 0: nothing is due. */
    readonly next_fire_at: number;
  };
  /** The schedule as Rota understood it. */
  readonly normalized: string;
}

/** What `context.say` returns. A stop word stops tasks instead. */
export interface SaidMessage {
  readonly taskId?: string;
  readonly state?: TaskState;
  /** Whether its text was added to the message before it. */
  readonly merged?: boolean;
  readonly stopped?: readonly string[];
  readonly cancelled?: readonly string[];
}

/** A message that was sent to the session of a task while it ran. */
export interface SteeredMessage {
  /** The task of the message. */
  readonly taskId: string;
  readonly message: string;
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
  readonly body: TextBody;
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
