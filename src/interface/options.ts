import type { Executor, ExecutorConfig } from "../executors/executor.ts";
import type { Clock } from "../model/clock.ts";
import type { Strategy } from "../model/lane.ts";
import type { ConsoleLog, Log } from "../model/log.ts";
import type { RetryPolicy } from "../model/retry-policy.ts";
import type { SessionSettings } from "../model/session.ts";
import type { TaskKind } from "../model/task.ts";

/** Everything `createRota` can be told; each has a default. */
export interface RotaOptions {
  /** `sqlite:rota.db` (default), `sqlite::memory:` or `postgres://…`. */
  readonly storage?: string;
  /** How long a PostgreSQL that is not up yet is waited for at the start; 60 seconds when left out, 0 for not at all. */
  readonly storageWaitSec?: number;
  readonly scheduler?: SchedulerOptions;
  /** Pools of concurrency besides `tasks`, which the `scheduler` numbers describe: a number is its concurrency. */
  readonly lanes?: Readonly<Record<string, number | LaneOptions>>;
  /** How sessions take messages when they do not say. */
  readonly sessions?: Partial<SessionSettings>;
  readonly schedules?: ScheduleOptions;
  /** How a failed instruction is tried again when it does not say. */
  readonly retry?: Partial<RetryPolicy>;
  readonly timeouts?: TimeoutOptions;
  readonly tenants?: TenantOptions;
  readonly agents?: Readonly<Record<string, AgentOptions>>;
  /** What does the work of agents that have no executor of their own, by the kind of task. */
  readonly executors?: Readonly<Partial<Record<TaskKind, Executor | ExecutorConfig>>>;
  readonly outbound?: OutboundOptions;
  readonly webhooks?: WebhookOptions;
  /**
   * Names of fields whose values are shown as `…`, at any depth of `params`, `payload`, `metadata`, `llmConfig` and results, and in
   * errors. Case does not matter. `apiKey`, `secretAccessKey` and `sessionToken` in `llmConfig` are always masked.
   */
  readonly redact?: readonly string[];
  readonly audit?: AuditOptions;
  /** How long running work may go on after `stop()` or `drain()`. */
  readonly shutdownGraceSec?: number;
  /**
   * Says how full the context of a session is, for who keeps that outside of Rota: from 60 % on the session runs one task
   * at a time. Asked before a message is taken in, and when a task of the session has ended in this process.
   */
  readonly estimateTokens?: EstimateTokens;
  /** Silent when left out. A pino logger fits, and so does `console`. */
  readonly log?: Log | ConsoleLog;
  /** For tests: where time comes from. */
  readonly clock?: Clock;
  /** For tests: chance, in [0, 1). */
  readonly random?: () => number;
}

/** Answers null when it does not know. What it throws is logged and passed over, and so is an answer that takes too long. */
export type EstimateTokens = (
  sessionKey: string,
  /** Whose session it is: two tenants may well have one of the same key. */
  owner: { readonly tenantId: string },
) => ContextUse | null | undefined | Promise<ContextUse | null | undefined>;

export interface ContextUse {
  readonly tokens: number;
  readonly contextWindow: number;
}

export interface SchedulerOptions {
  /** False: nothing is accepted or run, reads work. */
  readonly enabled?: boolean;
  readonly strategy?: Strategy;
  /** Waiting tasks of one tenant, unless it has a `limits.maxQueued`; a task beyond it is rejected. */
  readonly maxQueueSize?: number;
  /**
   * Waiting tasks of all enabled tenants; a task beyond it is rejected. Once a second enabled tenant exists, each tenant gets at
   * most half. Left out: the larger of 100 000 and twice `maxQueueSize`.
   */
  readonly maxQueueSizeTotal?: number;
  /** Waiting tasks of one agent; a task beyond it is rejected. */
  readonly maxPerAgent?: number;
  /** Running tasks of the lane `tasks`, over all nodes. */
  readonly maxInflight?: number;
  /** Running tasks of one agent in the lane `tasks`, over all nodes. */
  readonly maxPerAgentInflight?: number;
  /** Running tasks of the lane `tasks` in this process. */
  readonly workerCount?: number;
  /** How many seconds a task waits to be lifted by one step of priority; 0, the default: it never is. */
  readonly agingSec?: number;
  /**
   * How many seconds a queued task waits for an executor that no live node has, where its agent has none of its own; then it
   * fails. 60 unless told; 0: at once.
   */
  readonly noExecutorSec?: number;
  /** How often the process that runs a task may die with it before the task fails, whatever its retries: 5 unless told. */
  readonly maxLost?: number;
  /** How many bytes the running tasks of this process may hold: 256 MiB unless told; 0: any number. */
  readonly maxRunningBytes?: number;
  /** How long ended tasks and events are kept; 300 in memory, 30 days on a durable storage. */
  readonly resultTTLSec?: number;
}

export interface LaneOptions {
  /** How many of its tasks this process runs at once. */
  readonly concurrency: number;
  /** How many run at once over all nodes; left out: no bound beyond the sum of the processes. */
  readonly total?: number;
}

export interface AuditOptions {
  /** How long it is kept who did what with which key; 90 unless told. */
  readonly retentionDays?: number;
}

export interface ScheduleOptions {
  /** How long runs of schedules, and what was told of them, are kept once they are over: 90 days unless told. */
  readonly runRetentionDays?: number;
}

export interface TimeoutOptions {
  /** For an attempt of a task that says nothing. */
  readonly defaultMs?: number;
  /** The longest a task may ask for. */
  readonly maxMs?: number;
}

export interface TenantOptions {
  /**
   * The part of a lane's slots that one tenant may hold once a second enabled tenant exists, whether or not others have
   * work; 0.8 unless told. Rounded down, at least 1 and never all of several.
   */
  readonly maxLaneShare?: number;
}

export interface AgentOptions {
  /** Does its work; else the executor of the task's kind does. */
  readonly executor?: Executor | ExecutorConfig;
  /** Where its tasks run when they do not say. */
  readonly lane?: string;
  /** How many of its tasks run at once, over all lanes and nodes; left out: no bound of its own. */
  readonly maxInflight?: number;
  /** How many of its tasks may wait, in place of `scheduler.maxPerAgent`. */
  readonly maxQueued?: number;
  /** How many tokens its model takes in at most: a session's, unless an answer names another, and what history must fit into. */
  readonly contextWindow?: number;
  /** Whether `/schedule` lines in its answers are carried out. */
  readonly writs?: boolean;
}

/** Which hosts callbacks, and agents made over HTTP, may call. */
export interface OutboundOptions {
  /** Private hosts, addresses and networks that may be called. */
  readonly allow?: readonly string[];
  /** Hosts, addresses and networks that must not be called. Wins over `allow`. */
  readonly deny?: readonly string[];
}

export interface WebhookOptions {
  /** The old name of `outbound.allow`. Entries of both lists are allowed. */
  readonly allow?: readonly string[];
  /** Signs callbacks, as Standard Webhooks describe it: `whsec_…`, base64. Left out: they are not signed. */
  readonly secret?: string;
}

/** What `reload` is handed: the configuration as it should be now. */
export type ReloadOptions = Omit<RotaOptions, "estimateTokens" | "log" | "clock" | "random">;
