import type { Executor } from "../executors/executor.ts";
import type { EventType, RotaEvent } from "../model/event.ts";
import type { ReadPace } from "../model/read-pace.ts";
import type { SchedulerStats } from "../model/scheduler-stats.ts";
import type { StatsSeries, StatsSeriesQuery } from "../model/stats-series.ts";
import type { Agents } from "./agents.ts";
import type { Audit, LocalAudit } from "./audit.ts";
import type { Bulks, LocalBulks } from "./bulks.ts";
import type { DoctorOptions, DoctorReport } from "./doctor.ts";
import type { Keys, LocalKeys } from "./keys.ts";
import type { Lanes } from "./lanes.ts";
import type { Nodes } from "./nodes.ts";
import type { Notifications, NotificationsOptions } from "./notifications.ts";
import type { AgentOptions, ReloadOptions } from "./options.ts";
import type { Runs, Schedules } from "./schedules.ts";
import type { Sessions } from "./sessions.ts";
import type { LocalTasks, Tasks } from "./tasks.ts";
import type { Tenants } from "./tenants.ts";
import type { WaitingReasons } from "./waiting.ts";
import type { Webhooks } from "./webhooks.ts";
import type { Writs } from "./writs.ts";

/** What every way in can do, in this process (`createRota`) and over HTTP (`RotaClient`). */
export interface RotaApi {
  readonly tasks: Tasks;
  readonly sessions: Sessions;
  readonly schedules: Schedules;
  readonly runs: Runs;
  readonly writs: Writs;
  readonly lanes: Lanes;
  readonly agents: Agents;
  readonly webhooks: Webhooks;
  readonly bulks: Bulks;
  readonly nodes: Nodes;
  readonly tenants: Tenants;
  readonly keys: Keys;
  readonly audit: Audit;

  /**
   * What happens, in order, from now on or after an event seen before. A reader that falls behind misses nothing and
   * holds up nobody.
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
  /** Calls `handler` with everything that happens from now on, in order; returns what undoes it. */
  onEvent(handler: (event: RotaEvent) => void | Promise<void>): () => void;

  /**
   * What schedules and their runs do, in order, from now on or after one seen before.
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
   * Looks for what cannot be: counters that are off, moments of schedules that left no run. It counts every row, in slices
   * that let other work through. A node does it once at a time: callers that come meanwhile share the answer.
   *
   * @example
   * const { ok, checks } = await rota.doctor({ signal: AbortSignal.timeout(60_000) });
   */
  doctor(options?: DoctorOptions): Promise<DoctorReport>;
  /** How it is. */
  health(): Promise<Health>;
  /** What Prometheus reads: the text of `/metrics`. */
  metrics(): Promise<string>;
}

/** What one tenant can do: all that every way in can, for itself alone. */
export type TenantApi = Omit<
  RotaApi,
  "nodes" | "tenants" | "keys" | "audit" | "health" | "doctor" | "onEvent"
>;

/** The same in this process. */
export interface LocalTenant extends TenantApi {
  readonly tasks: LocalTasks;
  readonly bulks: LocalBulks;
  readonly schedules: Schedules;
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
  /** Fires when it begins to drain: whoever waits on behalf of others can stop then. */
  readonly draining: AbortSignal;
  readonly tasks: LocalTasks;
  readonly bulks: LocalBulks;
  readonly keys: LocalKeys;
  readonly audit: LocalAudit;

  /** As this tenant is told: of others it learns that something is wrong, and not what they have. Left out: `default`. */
  doctor(options?: DoctorOptions & { readonly tenantId?: string }): Promise<DoctorReport>;
  events(options?: EventsOptions & LocalReading): Events;
  notifications(options?: NotificationsOptions & LocalReading): Notifications;

  /**
   * Makes an agent known, or changes it: who does its work, where, and how much of it at once. Limits hold once
   * `start()` has answered, and right away when it already runs.
   *
   * @example
   * rota.agent("research", async (task, { signal, progress }) => …);
   * rota.agent("crawler", { lane: "subagent", maxInflight: 2 }, async (task) => …);
   */
  agent(id: string, handler: Executor): void;
  agent(id: string, options: AgentOptions, handler?: Executor): void;

  /**
   * The same for another tenant; what stands directly on this object is that of `default`. Whether there is such a tenant is
   * not looked at: what one that is not there owns is nothing.
   *
   * @example
   * await rota.tenant("ten_acme").tasks.submit({ message: "hello" });
   */
  tenant(id: string): LocalTenant;

  /** For a server: counts a request that it refused, since its key asks for too much or its tenant stores too much. */
  noteRefused(reason: "rate" | "quota"): void;

  /** Called by the server for each request that it refused with 401, 403 or 429, with the permission that the route needs. */
  noteDenied(request: { readonly tenantId: string; readonly status: number; readonly access: string }): void;

  /** Begins to run tasks. What was submitted before waits for it, durably. */
  start(): Promise<void>;
  /**
   * Takes no new work and starts none, gives what runs `graceMs` to end, then aborts it: back to the queue if it has
   * retries left, else failed with `interrupted by shutdown`. Reads and events go on.
   */
  drain(options?: { graceMs?: number }): Promise<void>;
  /** Drains, then lets go of the storage. Stopping twice is fine. */
  stop(options?: { graceMs?: number }): Promise<void>;

  /**
   * Takes over what can change while running: limits, retention, lanes, sessions, agents, executors, retries, timeouts. A section
   * that is left out keeps its values; `lanes`, `agents`, `executors` and `webhooks` are taken whole; in the others, what is
   * left out keeps its value, and so does a number of `scheduler` that is 0. Throws one `invalid_field` with everything that
   * is wrong, and then changes nothing.
   */
  reload(options: ReloadOptions): Promise<Reloaded>;
  /**
   * For whoever reads a configuration in order to reload it, as `ConfigWatcher` does: tells that it cannot be read or
   * used, or with null that it can. `health()` shows it, and the log tells each fault once.
   */
  configFault(error: Error | null): void;
}

/** `stopped` has let go of everything; `drained` still answers reads. */
export type RotaState = "created" | "running" | "draining" | "drained" | "stopped";

/** What happens, one event after the other. */
export interface Events extends AsyncIterableIterator<RotaEvent, undefined> {
  /** Resolves once everything that happens from then on will be handed out; rejects when that cannot be. */
  readonly ready: Promise<void>;
  /**
   * What to give as `after` to go on from here later: all up to this one have been handed out, or were not asked for.
   * Undefined before `ready`.
   */
  readonly position: number | undefined;
}

export interface EventsOptions {
  /** The `seq` of the last event seen; 0 for all there are; left out: from now on. */
  readonly after?: number;
  /** Only what concerns this agent. */
  readonly agentId?: string;
  /** Only what concerns this batch. */
  readonly batchId?: string;
  /** Only what concerns this session. */
  readonly sessionKey?: string;
  /** Only what concerns runs of this schedule. */
  readonly scheduleId?: number;
  /** Ends the iteration. */
  readonly signal?: AbortSignal;
  /**
   * Called before the first event if some after `after` have been deleted, and at any time if the database was restored to an
   * earlier state: what was seen up to `after` may no longer be so. Events go on from what is there.
   */
  readonly onGap?: (gap: { readonly after: number; readonly oldest: number }) => void;
}

export interface EventPageFilter {
  /** Only events with a larger number, oldest first; 0: from the oldest stored one. Left out: newest first. */
  readonly after?: number;
  /** Only events with a smaller number. */
  readonly before?: number;
  readonly type?: EventType;
  /** Only those of this task. */
  readonly taskId?: string;
  /** The most events: 1 to 1000, 100 by default. */
  readonly limit?: number;
}

export interface EventPage {
  readonly events: readonly RotaEvent[];
  /** Events on this page. A page ends early if its events are large, or if few events of the log match. */
  readonly count: number;
  /** For the next page, pass it as `after` if this call had `after`, otherwise as `before`; null on the last page. */
  readonly next: number | null;
}

/** For whoever hands on to others what happens in this process. */
export interface LocalReading {
  /** Called when a mebibyte waits to be read: the rest is read from the storage, once there is room for it. */
  readonly onBehind?: () => void;
  /** Schedules each read of past events. Left out: they are read at once. */
  readonly pace?: ReadPace;
}

export interface Health {
  readonly status: "ok";
  readonly version: string;
  readonly state: RotaState;
  /** From when on this process counts what it does, RFC 3339. */
  readonly startedAt: string;
  /** Whether something can be written to it, and survives a power cut. */
  readonly storage: "ok" | "unavailable";
  /** Why it is unavailable. */
  readonly storageError?: string;
  /** `scheduler.enabled` is false: this process takes and starts nothing. Left out: it does. */
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
