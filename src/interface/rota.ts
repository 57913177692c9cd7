import type { Executor } from "../executors/executor.ts";
import type { Bounds } from "../model/bounds.ts";
import type { RotaEvent } from "../model/event.ts";
import type { EVENT_FILTER } from "../model/input/events-options.ts";
import type { InputOf } from "../model/input/schema.ts";
import type { StatsSeriesQuery } from "../model/input/stats-series-input.ts";
import type { Provenance } from "../model/provenance.ts";
import type { ReadPace } from "../model/read-pace.ts";
import type { SchedulerStats } from "../model/scheduler-stats.ts";
import type { StatsSeries } from "../model/stats-series.ts";
import type { Agents } from "./agents.ts";
import type { Audit, LocalAudit } from "./audit.ts";
import type { Bulks, LocalBulks } from "./bulks.ts";
import type { DoctorOptions, DoctorReport } from "./doctor.ts";
import type { Keys, LocalKeys } from "./keys.ts";
import type { Lanes } from "./lanes.ts";
import type { Nodes } from "./nodes.ts";
import type { Notifications, NotificationsOptions } from "./notifications.ts";
import type { AgentOptions, ReloadOptions } from "./options.ts";
import type { LocalSchedules, Runs, Schedules } from "./schedules.ts";
import type { Sessions } from "./sessions.ts";
import type { LocalTasks, Tasks } from "./tasks.ts";
import type { Tenants } from "./tenants.ts";
import type { WaitingReasons } from "./waiting.ts";
import type { Webhooks } from "./webhooks.ts";
import type { LocalWorkers, Workers } from "./workers.ts";
import type { Writs } from "./writs.ts";

/** The API that works the same in this process (`createRota`) and over HTTP (`RotaClient`). */
export interface RotaApi {
  readonly tasks: Tasks;
  readonly sessions: Sessions;
  readonly schedules: Schedules;
  readonly runs: Runs;
  readonly writs: Writs;
  readonly lanes: Lanes;
  readonly agents: Agents;
  readonly webhooks: Webhooks;
  readonly workers: Workers;
  readonly bulks: Bulks;
  readonly nodes: Nodes;
  readonly tenants: Tenants;
  readonly keys: Keys;
  readonly audit: Audit;

  /**
   * Events in order, from now on or after an event seen before. A reader that falls behind misses nothing and slows down no
   * other reader.
   *
   * @example
   * for await (const event of rota.events({ after: lastSeen })) console.log(event.type, event.taskId);
   */
  events(options?: EventsOptions): Events;
  /**
   * Returns a page of stored events: newest first, or oldest first with `after`. Throws `invalid_field`.
   *
   * @example
   * const { events, next } = await rota.eventPage({ type: "task.failed", limit: 20 });
   */
  eventPage(filter?: EventPageFilter): Promise<EventPage>;
  /** Calls `handler` with every event from now on, in order. Returns a function that unsubscribes it. */
  onEvent(handler: (event: RotaEvent) => void | Promise<void>): () => void;

  /**
   * Notifications of schedules, their runs and workers, in order, from now on or after one seen before.
   *
   * @example
   * for await (const { kind, task_id } of rota.notifications()) console.log(kind, task_id);
   */
  notifications(options?: NotificationsOptions): Notifications;

  stats(): Promise<SchedulerStats>;
  /**
   * Counts all waiting tasks by the first reason that holds each, as the responding node sees it.
   *
   * @example
   * const { reasons, total } = await rota.waiting();
   */
  waiting(): Promise<WaitingReasons>;
  /**
   * Returns statistics of the tenant's tasks over all nodes: by minute for 48 hours, by hour and day for 90 days.
   *
   * @example
   * const { series } = await rota.statsSeries({ metrics: ["done", "failed"], by: "lane", step: 3600 });
   */
  statsSeries(query?: StatsSeriesQuery): Promise<StatsSeries>;
  /**
   * Looks for inconsistent data: wrong counters, due times of schedules without a run. It counts every row, in slices between
   * which other work continues. A node runs one examination at a time; callers that come meanwhile share its report.
   *
   * @example
   * const { ok, checks } = await rota.doctor({ signal: AbortSignal.timeout(60_000) });
   */
  doctor(options?: DoctorOptions): Promise<DoctorReport>;
  /** The state of this process, its storage and its configuration. */
  health(): Promise<Health>;
  /** What Prometheus reads: the text of `/metrics`. */
  metrics(): Promise<string>;
}

/** The same API for one tenant, without what concerns the whole installation. */
export type TenantApi = Omit<
  RotaApi,
  "nodes" | "tenants" | "keys" | "audit" | "health" | "doctor" | "onEvent"
>;

/** The same in this process. */
export interface LocalTenant extends TenantApi {
  readonly tasks: LocalTasks;
  readonly workers: LocalWorkers;
  readonly bulks: LocalBulks;
  readonly schedules: LocalSchedules;
  events(options?: EventsOptions & LocalReading): Events;
  notifications(options?: NotificationsOptions & LocalReading): Notifications;
}

/**
 * A scheduler in this process.
 *
 * @example
 * const rota = await createRota({ storage: "sqlite:rota.db" });
 * rota.agent("research", async (task, { signal }) => askModel(task.instruction, { signal }));
 * await rota.start();
 * const { taskId } = await rota.tasks.submit({ agentId: "research", instruction: "What is new?" });
 * const task = await rota.tasks.wait(taskId);
 * await rota.stop();
 */
export interface Rota extends RotaApi {
  readonly state: RotaState;
  /** The id of this process among the nodes that share the storage; another one after its lease was lost. */
  readonly node: string;
  /** Fires when it begins to drain: a server that waits on behalf of callers can stop then. */
  readonly draining: AbortSignal;
  readonly tasks: LocalTasks;
  readonly workers: LocalWorkers;
  readonly bulks: LocalBulks;
  readonly keys: LocalKeys;
  readonly audit: LocalAudit;

  /** The report for `tenantId`; left out: `default`. Of other tenants it says only that something is wrong, and no details. */
  doctor(options?: DoctorOptions & { readonly tenantId?: string }): Promise<DoctorReport>;
  events(options?: EventsOptions & LocalReading): Events;
  notifications(options?: NotificationsOptions & LocalReading): Notifications;

  /**
   * Registers an agent, or changes it: its executor, its lane and its limits. Limits apply once `start()` has resolved, and
   * right away if it is already running.
   *
   * @example
   * rota.agent("research", async (task, { signal, progress }) => …);
   * rota.agent("crawler", { lane: "subagent", maxInflight: 2 }, async (task) => …);
   */
  agent(id: string, handler: Executor): void;
  agent(id: string, options: AgentOptions, handler?: Executor): void;

  /**
   * The same for another tenant; the methods of this object itself act for `default`. It does not check that the tenant exists:
   * an unknown one owns nothing. With `agentId`: what a key of the role `agent` may see and do for that agent. Anything else
   * throws `forbidden`, and what other agents own is `not_found`.
   *
   * @example
   * await rota.tenant("ten_acme").tasks.submit({ message: "hello" });
   * await rota.tenant("ten_acme", { agentId: "research" }).tasks.list();
   */
  tenant(id: string, options?: TenantAccess): LocalTenant;

  /**
   * Whether a second enabled tenant exists, as far as this process knows. The server then keeps one tenant from taking what all
   * share.
   */
  hasSecondTenant(): boolean;

  /** Called by the server for each request that it refused because of a rate limit or the storage quota of the tenant. */
  noteRefused(reason: "rate" | "quota"): void;

  /** Called by the server for each request that it refused with 401, 403 or 429, with the permission that the route needs. */
  noteDenied(request: { readonly tenantId: string; readonly status: number; readonly access: string }): void;

  /** Begins to run tasks. Tasks submitted before are stored and wait for it. */
  start(): Promise<void>;
  /**
   * Accepts and starts no more tasks, and gives running tasks `graceMs` to end. Then it aborts them: they go back to the queue
   * if they have retries left, otherwise they fail with `interrupted by shutdown`. Reads and events still work.
   */
  drain(options?: { graceMs?: number }): Promise<void>;
  /** Drains, then closes the storage. Stopping twice is fine. */
  stop(options?: { graceMs?: number }): Promise<void>;

  /**
   * Applies what can change while running: limits, retention, lanes, sessions, agents, executors, retries, timeouts. A section
   * that is left out keeps its values. `lanes`, `agents`, `executors` and `webhooks` are replaced as a whole. In the other
   * sections, an option that is left out keeps its value, and so does a number of `scheduler` that is 0. Throws one
   * `invalid_field` with everything that is wrong, and then changes nothing.
   */
  reload(options: ReloadOptions): Promise<Reloaded>;
  /**
   * For a program that reads a configuration in order to reload it, as `ConfigWatcher` does: reports that the configuration
   * cannot be read or used, or with null that it can. `health()` shows the fault, and the log has each fault once.
   */
  configFault(error: Error | null): void;
}

/** For whom `rota.tenant()` acts. */
export interface TenantAccess {
  /** Only for this agent, as with a key of the role `agent`. Left out: for the whole tenant. */
  readonly agentId?: string;
  /** Who calls: all that is made through this object says so. Left out: the program that embeds Rota. */
  readonly provenance?: Provenance;
  /** The bounds of the API key of the caller. Left out: it has none of its own. */
  readonly bounds?: Bounds;
  /** The bounds of an API key that was sent beside a task token: those hold as well. */
  readonly besideBounds?: Bounds;
  /** With `agentId`: other agents that the caller may submit tasks to; `*`: all. Left out: none. */
  readonly delegates?: readonly string[];
}

/** `drained` still serves reads; `stopped` has closed everything. */
export type RotaState = "created" | "running" | "draining" | "drained" | "stopped";

/** Events, one after the other. */
export interface Events extends AsyncIterableIterator<RotaEvent, undefined> {
  /** Resolves once the reader will get every event from then on; rejects if that is impossible. */
  readonly ready: Promise<void>;
  /**
   * Pass it as `after` to continue from here later. The reader has got all events up to it, or they do not match its filter.
   * Undefined before `ready`.
   */
  readonly position: number | undefined;
}

export interface EventsOptions {
  /** The `seq` of the last event seen; 0: all that are stored; left out: from now on. */
  readonly after?: number;
  /** Only events of this agent. */
  readonly agentId?: string;
  /** Only events of this batch. */
  readonly batchId?: string;
  /** Only events of this session. */
  readonly sessionKey?: string;
  /** Only events of the runs of this schedule. */
  readonly scheduleId?: number;
  /** Ends the iteration. */
  readonly signal?: AbortSignal;
  /**
   * Called before the first event if some after `after` have been deleted, and at any time if the database was restored to an
   * earlier state: events seen up to `after` may no longer be true. Reading continues with the events that are stored.
   */
  readonly onGap?: (gap: { readonly after: number; readonly oldest: number }) => void;
}

export type EventPageFilter = InputOf<typeof EVENT_FILTER.fields>;

export interface EventPage {
  readonly events: readonly RotaEvent[];
  /** Events on this page. A page ends early if its events are large, or if few events of the log match. */
  readonly count: number;
  /** For the next page, pass it as `after` if this call had `after`, otherwise as `before`; null on the last page. */
  readonly next: number | null;
}

/** For the server, which streams events of this process to callers. */
export interface LocalReading {
  /** Called when a mebibyte waits for the reader. Later events are read from the storage once there is room. */
  readonly onBehind?: () => void;
  /** Schedules each read of past events. Left out: they are read at once. */
  readonly pace?: ReadPace;
}

export interface Health {
  readonly status: "ok";
  readonly version: string;
  readonly state: RotaState;
  /** Since when this process counts its metrics, RFC 3339. */
  readonly startedAt: string;
  /** Whether something can be written to it, and survives a power cut. */
  readonly storage: "ok" | "unavailable";
  /** Why it is unavailable. */
  readonly storageError?: string;
  /** `scheduler.enabled` is false: this process accepts and starts no tasks. Left out: it does. */
  readonly scheduler?: "disabled";
  /** Whether the configuration that was read last could be used. */
  readonly config: { readonly ok: true } | { readonly ok: false; readonly error: string };
}

/** Options by their path: `scheduler.maxInflight`, `lanes.main`, `agents.research`. */
export interface Reloaded {
  readonly changed: readonly string[];
  /** These differ from what runs, and take effect with the next start. */
  readonly needsRestart: readonly string[];
}
