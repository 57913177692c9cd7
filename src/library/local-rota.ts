import { pause } from "../clock/pause.ts";
import { idMaker } from "../engine/work/new-id.ts";
import { type EventHandler, handleEvents } from "../events/event-handlers.ts";
import type { EventReader } from "../events/event-reader.ts";
import type { NotificationReader } from "../events/notification-log.ts";
import { TaskWaiter } from "../events/task-waiter.ts";
import { endingPrograms } from "../executors/command-group.ts";
import type { Executor } from "../executors/executor.ts";
import type { Agents } from "../interface/agents.ts";
import type { LocalAudit } from "../interface/audit.ts";
import type { LocalBulks } from "../interface/bulks.ts";
import type { DoctorOptions, DoctorReport } from "../interface/doctor.ts";
import type { LocalKeys } from "../interface/keys.ts";
import type { Lanes } from "../interface/lanes.ts";
import type { Nodes } from "../interface/nodes.ts";
import type { NotificationsOptions } from "../interface/notifications.ts";
import type { AgentOptions, ReloadOptions } from "../interface/options.ts";
import type {
  EventPage,
  EventPageFilter,
  EventsOptions,
  Health,
  LocalReading,
  Reloaded,
  Rota,
  RotaState,
  TenantAccess,
} from "../interface/rota.ts";
import type { LocalSchedules, Runs } from "../interface/schedules.ts";
import type { Sessions } from "../interface/sessions.ts";
import type { LocalTasks } from "../interface/tasks.ts";
import type { Tenants } from "../interface/tenants.ts";
import type { WaitingReasons } from "../interface/waiting.ts";
import type { Webhooks } from "../interface/webhooks.ts";
import type { LocalWorkers } from "../interface/workers.ts";
import type { Writs } from "../interface/writs.ts";
import { checkAgentId } from "../model/agent.ts";
import { RotaError } from "../model/errors.ts";
import type { StatsSeriesQuery } from "../model/input/stats-series-input.ts";
import type { SchedulerStats } from "../model/scheduler-stats.ts";
import type { StatsSeries } from "../model/stats-series.ts";
import { DEFAULT_TENANT } from "../model/tenant.ts";
import { rfc3339 } from "../model/text/rfc3339.ts";
import { TASK_TOKEN_PREFIX } from "../model/text/task-token-mask.ts";
import { WORKER_ID_PREFIX } from "../model/worker.ts";
import { type Backoff, backoffMs } from "../services/backoff.ts";
import type { Service } from "../services/service.ts";
import { type SignalTable, wakeAt } from "../services/signal-table.ts";
import { isStorageAway } from "../services/storage-away.ts";
import type { StorageSignal } from "../storage/storage.ts";
import { VERSION } from "../version.ts";
import { OpenStreams } from "./open-streams.ts";
import { TenantDeleter } from "./registries/tenant-deleter.ts";
import { TenantRotas } from "./registries/tenant-rotas.ts";
import { warnOfUnservedLanes } from "./registries/unserved-lanes.ts";
import { type Examined, examine } from "./resources/doctor.ts";
import { createNodes } from "./resources/nodes.ts";
import { SharedExamination } from "./resources/shared-examination.ts";
import { createTenants } from "./resources/tenants.ts";
import { TokenEstimates } from "./resources/token-estimates.ts";
import { ConfigHealth } from "./settings/config-health.ts";
import { RestoreWatch } from "./settings/restore-watch.ts";
import { StorageHealth } from "./settings/storage-health.ts";
import type { SharedParts } from "./shared-parts.ts";
import type { TenantRota } from "./tenant-rota.ts";

/**
 * Timers of the clock never keep the process alive. A started Rota has to, until it is stopped: the program may have nothing
 * else to do than to wait for its next task. The length of the interval does not matter.
 */
const KEEP_ALIVE_MS = 60 * 60 * 1_000;

/** The backoff of a start while the storage is unavailable. */
const START_RETRY: Backoff = { firstMs: 250, maxMs: 2_000 };

/** Other nodes refuse a deleted key within a second; the rest is for requests that they accepted just before. */
const LOCKED_ELSEWHERE_MS = 3_000;

/** How long a stop waits, within its grace period, for callbacks of the last tasks. The next start sends the rest. */
const CALLBACK_GRACE_MS = 5_000;

/** The scheduler in this process: the public API on top of the engine and the storage. */
export class LocalRota implements Rota {
  readonly tasks: LocalTasks;
  readonly sessions: Sessions;
  readonly schedules: LocalSchedules;
  readonly runs: Runs;
  readonly writs: Writs;
  readonly lanes: Lanes;
  readonly bulks: LocalBulks;
  readonly agents: Agents;
  readonly webhooks: Webhooks;
  readonly workers: LocalWorkers;
  readonly nodes: Nodes;
  readonly tenants: Tenants;
  readonly keys: LocalKeys;
  readonly audit: LocalAudit;
  readonly #parts: SharedParts;
  readonly #configHealth: ConfigHealth;
  readonly #storageHealth: StorageHealth;
  readonly #estimates: TokenEstimates;
  readonly #restoreWatch: RestoreWatch;
  readonly #tenantDeleter: TenantDeleter;
  readonly #tenants: TenantRotas;
  /** The API of the tenant `default`, which this object itself has. */
  readonly #own: TenantRota;
  readonly #startedAt: string;
  #state: RotaState = "created";
  #starting: Promise<void> | null = null;
  #draining: Promise<void> | null = null;
  #stopping: Promise<void> | null = null;
  #keepAlive: NodeJS.Timeout | undefined;
  readonly #examination: SharedExamination<Examined>;
  readonly #drainBegins = new AbortController();

  readonly #keysChanged = () => this.#parts.access.keysChanged();
  /** A signal of the storage → what wakes besides the services of the engine. */
  readonly #signals: SignalTable = {
    events: [() => this.#parts.eventLog.wake()],
    notifications: [() => this.#parts.notificationLog.wake()],
    deliveries: [() => this.#parts.deliverer.wake()],
    agents: [() => this.#parts.catalogue.agentsChanged()],
    lanes: [() => this.#parts.laneCatalogue.wake()],
    tenants: [() => this.#parts.tenants.wake(), this.#keysChanged],
    keys: [this.#keysChanged],
    reconnected: [() => this.#restoreWatch.wake()],
  };

  constructor(parts: SharedParts) {
    const { storage, engine, eventLog, clock, tenants } = parts;
    this.#parts = parts;
    this.#startedAt = rfc3339(clock.now());
    this.keys = {
      ...parts.access.keys,
      callerOfTask: (token) => parts.tokens.callerOf(token),
      watch: (key) => (key.startsWith(TASK_TOKEN_PREFIX) ? parts.tokens : parts.access.keys).watch(key),
    };
    this.audit = parts.access.audit;
    this.#configHealth = new ConfigHealth(parts.log);
    this.#storageHealth = new StorageHealth({ storage, clock, log: parts.log });
    this.#examination = new SharedExamination(({ signal, onProgress }) =>
      examine({
        storage,
        clock,
        config: () => this.#configHealth.state,
        runRetentionMs: () => parts.current.value.runRetentionMs,
        fires: () => this.#state === "running" && parts.current.value.scheduler.enabled,
        hasLane: (lane) => parts.lanes.lanes.has(lane),
        signal,
        onProgress,
      }),
    );
    this.#estimates = new TokenEstimates({
      estimate: parts.estimateTokens,
      storage,
      eventLog,
      clock,
      log: parts.log,
      defaultMax: () => parts.current.value.sessions.maxConcurrent,
      node: () => engine.node,
      onChanged: () => engine.onSignal({ kind: "work" }),
    });
    this.#tenants = new TenantRotas({
      ...parts,
      streams: new OpenStreams({ limitsOf: (tenant) => tenants.limitsOf(tenant) }),
      estimates: this.#estimates,
      waiter: new TaskWaiter({ eventLog, clock }),
      newTaskId: idMaker("tsk_", clock),
      newBatchId: idMaker("bat_", clock),
      newBulkId: idMaker("blk_", clock),
      newWorkerId: idMaker(WORKER_ID_PREFIX, clock),
      checkEnabled: () => this.#checkEnabled(),
      state: () => this.#state,
      checkOpen: () => this.#checkOpen(),
      checkNotDraining: () => this.#checkNotDraining(),
    });
    this.#own = this.#tenants.of(DEFAULT_TENANT);
    this.nodes = createNodes({ storage, storageClock: parts.storageClock, node: () => engine.node });
    this.#tenantDeleter = new TenantDeleter({
      storage,
      storageClock: parts.storageClock,
      catalogue: tenants,
      accepted: () => engine.intake.written(),
      lockedElsewhere: () => this.#lockedElsewhere(),
      clock,
      log: parts.log,
      random: parts.random,
    });
    this.tenants = createTenants({
      storage,
      catalogue: tenants,
      newTenantId: idMaker("ten_", clock),
      hasConfiguredSecret: () => parts.current.value.webhookKey !== null,
      bounded: () => parts.bounds.settled(),
      erase: (tenant) => this.#tenantDeleter.delete(tenant),
      resume: (tenant) => engine.scheduleTicker.resumeTenant(tenant),
    });
    this.tasks = this.#own.tasks;
    this.sessions = this.#own.sessions;
    this.schedules = this.#own.schedules;
    this.runs = this.#own.runs;
    this.writs = this.#own.writs;
    this.lanes = this.#own.lanes;
    this.agents = this.#own.agents;
    this.webhooks = this.#own.webhooks;
    this.workers = this.#own.workers;
    this.bulks = this.#own.bulks;
    this.#restoreWatch = new RestoreWatch({
      clock,
      log: parts.log,
      random: parts.random,
      storage,
      source: eventLog.source,
      onRestored: () => this.storageRestored(),
    });
    storage.subscribe(this.#onSignal);
    // No other node changes them if this process has the storage to itself.
    if (!storage.capabilities.exclusive) for (const each of this.#watchers()) each.start();
  }

  #onSignal = (signal: StorageSignal): void => {
    this.#parts.engine.onSignal(signal);
    wakeAt(this.#signals, signal);
  };

  #watchers(): Service[] {
    const { catalogue, laneCatalogue, tenants } = this.#parts;
    return [catalogue, laneCatalogue, tenants, this.#restoreWatch];
  }

  /**
   * The database was restored to an earlier state: this process drops its caches of it, and writes again what it had stored for
   * other nodes.
   */
  storageRestored(): void {
    const { engine, bounds, catalogue, laneCatalogue, access, tokens, log } = this.#parts;
    access.restored();
    // A token that was signed with the key of the restored database works once this is done.
    tokens.restored().catch((error) => log.error({ error }, "could not read the key of task tokens"));
    engine.restored();
    catalogue.restored();
    laneCatalogue.restored();
    void bounds.restored();
    this.#onSignal({ kind: "reconnected" });
  }

  get state(): RotaState {
    return this.#state;
  }

  get node(): string {
    return this.#parts.engine.node;
  }

  get draining(): AbortSignal {
    return this.#drainBegins.signal;
  }

  agent(given: string, first: Executor | AgentOptions, handler?: Executor): void {
    const { agents, bounds, engine } = this.#parts;
    const id = checkAgentId(given);
    const options = typeof first === "function" ? { executor: first } : first;
    bounds.changeForAll(id, () =>
      agents.set(id, handler === undefined ? options : { ...options, executor: handler }),
    );
    engine.abilitiesChanged();
  }

  tenant(id: string, options: TenantAccess = {}): TenantRota {
    return this.#tenants.of(id, options);
  }

  start(): Promise<void> {
    if (this.#stopping !== null || this.#draining !== null) {
      return Promise.reject(new RotaError("draining", "this Rota has been stopped: create a new one"));
    }
    this.#starting ??= this.#startPatiently().catch((error) => {
      this.#starting = null;
      throw error;
    });
    return this.#starting;
  }

  drain({ graceMs }: { graceMs?: number } = {}): Promise<void> {
    if (this.#draining === null) {
      // At once, also while a start is under way: callers must not send work here any more, and schedules must not fire.
      this.#state = "draining";
      this.#parts.engine.stopFiring();
      this.#drainBegins.abort();
      this.#draining = this.#drain(graceMs ?? this.#parts.current.value.shutdownGraceMs);
    }
    return this.#draining;
  }

  stop(options: { graceMs?: number } = {}): Promise<void> {
    this.#stopping ??= this.#stop(options);
    return this.#stopping;
  }

  events(options: EventsOptions & LocalReading = {}): EventReader {
    return this.#own.events(options);
  }

  eventPage(filter: EventPageFilter = {}): Promise<EventPage> {
    return this.#own.eventPage(filter);
  }

  notifications(options: NotificationsOptions & LocalReading = {}): NotificationReader {
    return this.#own.notifications(options);
  }

  onEvent(handler: EventHandler): () => void {
    return handleEvents(this.#parts.eventLog, handler, this.#parts.log);
  }

  stats(): Promise<SchedulerStats> {
    return this.#own.stats();
  }

  waiting(): Promise<WaitingReasons> {
    return this.#own.waiting();
  }

  statsSeries(query?: StatsSeriesQuery): Promise<StatsSeries> {
    return this.#own.statsSeries(query);
  }

  metrics(): Promise<string> {
    return this.#own.metrics();
  }

  hasSecondTenant(): boolean {
    return this.#parts.tenants.hasSecond;
  }

  noteRefused(reason: "rate" | "quota"): void {
    this.#parts.requestMetrics.refused(reason);
  }

  noteDenied(request: { readonly tenantId: string; readonly status: number; readonly access: string }): void {
    this.#parts.requestMetrics.denied(request);
  }

  async reload(options: ReloadOptions): Promise<Reloaded> {
    if (this.#stopping !== null)
      throw new RotaError("draining", "this Rota has been stopped: create a new one");
    try {
      const reloaded = await this.#parts.reloader.reload(options);
      this.#configHealth.setFault(null);
      return reloaded;
    } catch (error) {
      this.#configHealth.setFault(error as Error);
      throw error;
    }
  }

  async doctor(options: DoctorOptions & { readonly tenantId?: string } = {}): Promise<DoctorReport> {
    const { tenantId = DEFAULT_TENANT, ...caller } = options;
    const examined = await this.#examination.join(caller);
    return examined(tenantId);
  }

  configFault(error: Error | null): void {
    this.#configHealth.report(error);
  }

  async health(): Promise<Health> {
    const trouble = await this.#storageHealth.trouble();
    return {
      status: "ok",
      version: VERSION,
      state: this.#state,
      startedAt: this.#startedAt,
      storage: trouble === null ? "ok" : "unavailable",
      ...(trouble === null ? {} : { storageError: trouble }),
      ...(this.#parts.current.value.scheduler.enabled ? {} : { scheduler: "disabled" as const }),
      config: this.#configHealth.state,
    };
  }

  /** A database shared with other processes may be unavailable for a moment: retries for `storageWaitMs`, as at the opening. */
  async #startPatiently(): Promise<void> {
    const { storage, clock, random, current, log } = this.#parts;
    const giveUpAt = clock.monotonic() + current.value.storageWaitMs;
    for (let failures = 1; ; failures += 1) {
      try {
        return await this.#start();
      } catch (error) {
        const isPatient = isStorageAway(error) && !storage.capabilities.exclusive && this.#draining === null;
        if (!isPatient || clock.monotonic() >= giveUpAt) throw error;
        if (failures === 1) log.warn({ error }, "waiting for the storage, which does not respond");
        await this.#pause(backoffMs(START_RETRY, failures, random));
        this.#checkNotDraining();
      }
    }
  }

  /** Ends early when draining begins. Keeps the process alive, which timers of the clock do not. */
  async #pause(ms: number): Promise<void> {
    const keepAlive = setInterval(() => {}, KEEP_ALIVE_MS);
    await pause(this.#parts.clock, ms, this.draining).catch(() => undefined);
    clearInterval(keepAlive);
  }

  async #start(): Promise<void> {
    const { engine, bounds, current, lanes, storage, deliverer, access, log } = this.#parts;
    await bounds.mend();
    await bounds.store();
    if (current.value.scheduler.enabled) {
      await warnOfUnservedLanes({ storage, lanes: lanes.lanes, log });
      await engine.start();
    } else {
      engine.startForWorkers();
    }
    // Callbacks of tasks that ended before are still to be sent, even if this process runs no more tasks.
    deliverer.start();
    access.start();
    this.#tenantDeleter.start();
    this.#estimates.start();
    this.#keepAlive = setInterval(() => {}, KEEP_ALIVE_MS);
    if (this.#draining === null) this.#state = "running";
    // The limits of agents that were registered while the engine started also apply once this resolves.
    await bounds.goLive();
  }

  async #drain(graceMs: number): Promise<void> {
    // A start that is under way ends first, so that everything it began is stopped in order.
    await this.#starting?.catch(() => {});
    const { engine, deliverer, eventLog, notificationLog, bounds, clock } = this.#parts;
    bounds.rest();
    const began = clock.monotonic();
    await engine.drain(graceMs);
    const leftMs = graceMs - (clock.monotonic() - began);
    await deliverer.drain(Math.min(leftMs, CALLBACK_GRACE_MS));
    // Readers of events get the last ones before the server closes their connections.
    await Promise.all([eventLog.caughtUp(), notificationLog.caughtUp()]);
    clearInterval(this.#keepAlive);
    this.#state = "drained";
  }

  async #stop(options: { graceMs?: number }): Promise<void> {
    const { turns, access } = this.#parts;
    const { guard, eventLog, notificationLog, storage } = this.#parts;
    await this.drain(options);
    await endingPrograms();
    await turns.idle();
    await Promise.all([...this.#watchers(), this.#tenantDeleter].map((each) => each.stop()));
    await access.close();
    await guard.close();
    this.#estimates.stop();
    await Promise.all([eventLog.close(), notificationLog.close()]);
    await storage.close();
    this.#state = "stopped";
  }

  async #lockedElsewhere(): Promise<void> {
    const { storage, clock } = this.#parts;
    if (storage.capabilities.exclusive) return;
    await pause(clock, LOCKED_ELSEWHERE_MS);
  }

  #checkOpen(): void {
    this.#checkEnabled();
    this.#checkNotDraining();
  }

  #checkEnabled(): void {
    if (this.#parts.current.value.scheduler.enabled) return;
    throw new RotaError("scheduler_disabled", "the scheduler is disabled: set `scheduler.enabled` to true");
  }

  #checkNotDraining(): void {
    if (this.#draining === null && this.#stopping === null) return;
    throw new RotaError("draining", "this node is stopping and accepts no new work");
  }
}
