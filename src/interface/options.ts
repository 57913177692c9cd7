import type { Executor, ExecutorConfig } from "../executors/executor.ts";
import type { Bounds } from "../model/bounds.ts";
import type { Clock } from "../model/clock.ts";
import type { Strategy } from "../model/lane.ts";
import type { ConsoleLog, Log } from "../model/log.ts";
import type { RetryPolicy } from "../model/retry-policy.ts";
import type { SessionSettings } from "../model/session.ts";
import type { TaskKind } from "../model/task.ts";

/** The options of `createRota`; each has a default. */
export interface RotaOptions {
  /** `sqlite:rota.db` (default), `sqlite::memory:` or `postgres://…`. */
  readonly storage?: string;
  /** How long a start waits for a PostgreSQL that is not up yet; left out: 60 seconds; 0: not at all. */
  readonly storageWaitSec?: number;
  readonly scheduler?: SchedulerOptions;
  /** Lanes besides `tasks`, which the options of `scheduler` describe. A number is the concurrency of the lane. */
  readonly lanes?: Readonly<Record<string, number | LaneOptions>>;
  /** Defaults for sessions without settings of their own. */
  readonly sessions?: Partial<SessionSettings & { readonly steerMs: number }>;
  readonly schedules?: ScheduleOptions;
  /** The retry policy of instructions that have none. */
  readonly retry?: Partial<RetryPolicy>;
  readonly timeouts?: TimeoutOptions;
  readonly tenants?: TenantOptions;
  /** What callers may make whose key and agent set nothing else; null: no bound. */
  readonly bounds?: Bounds;
  readonly agents?: Readonly<Record<string, AgentOptions>>;
  /** Executors for agents that have none of their own, by the kind of task. */
  readonly executors?: Readonly<Partial<Record<TaskKind, Executor | ExecutorConfig>>>;
  readonly outbound?: OutboundOptions;
  readonly webhooks?: WebhookOptions;
  /**
   * Names of fields whose values are masked as `…`, at any depth of `params`, `payload`, `metadata`, `llmConfig` and results, and
   * in errors. Case does not matter. `apiKey`, `secretAccessKey` and `sessionToken` in `llmConfig` are always masked.
   */
  readonly redact?: readonly string[];
  readonly audit?: AuditOptions;
  /** How long running tasks may continue after `stop()` or `drain()`. */
  readonly shutdownGraceSec?: number;
  /**
   * Returns how full the context of a session is, for programs that keep the context outside of Rota. From 60 % on the session
   * runs one task at a time. Called before a message is stored, and when a task of the session has ended in this process.
   */
  readonly estimateTokens?: EstimateTokens;
  /** Silent when left out. A pino logger fits, and so does `console`. */
  readonly log?: Log | ConsoleLog;
  /** For tests: the source of time. */
  readonly clock?: Clock;
  /** For tests: random numbers in [0, 1). */
  readonly random?: () => number;
}

/** Returns null if it does not know. Rota logs and ignores what it throws, and a call that takes longer than 2 seconds. */
export type EstimateTokens = (
  sessionKey: string,
  /** The tenant of the session: two tenants may use the same key. */
  owner: { readonly tenantId: string },
) => ContextUse | null | undefined | Promise<ContextUse | null | undefined>;

export interface ContextUse {
  readonly tokens: number;
  readonly contextWindow: number;
}

export interface SchedulerOptions {
  /** False: this process accepts and runs no tasks; reads work. */
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
  /** After how many seconds of waiting a task gains one step of priority; 0, the default: never. */
  readonly agingSec?: number;
  /**
   * How many seconds a queued task waits if its agent has no executor and no live node has one for it; then it fails. 60 by
   * default; 0: at once.
   */
  readonly noExecutorSec?: number;
  /** How often the node that runs a task may be lost before the task fails, whatever its retry policy. 5 by default. */
  readonly maxLost?: number;
  /** How many bytes the running tasks of this process may hold: 256 MiB by default; 0: no limit. */
  readonly maxRunningBytes?: number;
  /** How long ended tasks and events are kept; 300 in memory, 30 days on a durable storage. */
  readonly resultTTLSec?: number;
}

export interface LaneOptions {
  /** How many of its tasks this process runs at once. */
  readonly concurrency: number;
  /** How many run at once over all nodes; left out: no limit beyond the sum of the processes. */
  readonly total?: number;
}

export interface AuditOptions {
  /** How long entries of the audit log are kept: 90 days by default. */
  readonly retentionDays?: number;
}

export interface ScheduleOptions {
  /** How long ended runs of schedules, and all notifications, are kept: 90 days by default. */
  readonly runRetentionDays?: number;
}

export interface TimeoutOptions {
  /** The timeout of an attempt if the task sets none. */
  readonly defaultMs?: number;
  /** The longest `timeout` that a task may set. */
  readonly maxMs?: number;
}

export interface TenantOptions {
  /**
   * The share of a lane's slots that one tenant may hold once a second enabled tenant exists, even while others have no work;
   * 0.8 by default. Rounded down, at least 1, and at least one slot less than the lane has.
   */
  readonly maxLaneShare?: number;
  /**
   * How often the schedules of one tenant may fire in this process, per second on average, once a second enabled tenant exists;
   * 200 by default, and ten seconds' worth at once. Beyond it they fire late. 0: any number.
   */
  readonly maxFiresPerSec?: number;
}

export interface AgentOptions {
  /** Executes its tasks; left out: the executor of the task's kind does. */
  readonly executor?: Executor | ExecutorConfig;
  /** The lane of its tasks that name none. */
  readonly lane?: string;
  /** How many of its tasks run at once, over all lanes and nodes; left out: no limit of its own. */
  readonly maxInflight?: number;
  /** How many of its tasks may wait, in place of `scheduler.maxPerAgent`. */
  readonly maxQueued?: number;
  /**
   * The context window of its model in tokens. Sessions use it unless a result reports another, and history must fit into it.
   */
  readonly contextWindow?: number;
  /** Only workers with all these labels run its tasks. */
  readonly require?: { readonly labels: Readonly<Record<string, string>> };
  /** Whether Rota carries out `/schedule` lines in its results. */
  readonly writs?: boolean;
  /** The agents that its tasks may submit to with their task token, besides itself; `*`: all. Left out: none. */
  readonly delegates?: readonly string[];
  /** Whether an executor of type `http` gets the task token. */
  readonly taskToken?: boolean;
  /** What its tasks, and keys for it without bounds of their own, may make. */
  readonly bounds?: Bounds;
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

/** The argument of `reload`: the configuration as it should be now. */
export type ReloadOptions = Omit<RotaOptions, "estimateTokens" | "log" | "clock" | "random">;
