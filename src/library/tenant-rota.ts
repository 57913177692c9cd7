import { EventReader } from "../events/event-reader.ts";
import { NotificationReader } from "../events/notification-log.ts";
import type { TaskWaiter } from "../events/task-waiter.ts";
import type { Agents } from "../interface/agents.ts";
import type { LocalBulks } from "../interface/bulks.ts";
import type { Lanes } from "../interface/lanes.ts";
import type { NotificationsOptions } from "../interface/notifications.ts";
import type {
  EventPage,
  EventPageFilter,
  EventsOptions,
  LocalReading,
  LocalTenant,
  RotaState,
} from "../interface/rota.ts";
import type { LocalSchedules, Runs } from "../interface/schedules.ts";
import type { Sessions } from "../interface/sessions.ts";
import type { LocalTasks } from "../interface/tasks.ts";
import type { WaitingReasons } from "../interface/waiting.ts";
import type { Webhooks } from "../interface/webhooks.ts";
import type { LocalWorkers } from "../interface/workers.ts";
import type { Writs } from "../interface/writs.ts";
import { DEFAULT_AGENT } from "../model/agent.ts";
import type { Bounds } from "../model/bounds.ts";
import { RotaError } from "../model/errors.ts";
import { checkEventsOptions, checkNotificationsOptions } from "../model/input/events-options.ts";
import type { StatsSeriesQuery } from "../model/input/stats-series-input.ts";
import { parseSeriesQuery } from "../model/input/stats-series-input.ts";
import type { TaskDefaults } from "../model/input/task-input.ts";
import { TASKS_LANE } from "../model/lane.ts";
import type { Provenance } from "../model/provenance.ts";
import type { SchedulerStats } from "../model/scheduler-stats.ts";
import { ALL_DELEGATES, type Scope } from "../model/scope.ts";
import type { StatsSeries } from "../model/stats-series.ts";
import { maxAgentsOf, maxSchedulesOf, maxSessionsOf } from "../model/tenant.ts";
import { goDuration } from "../model/text/go-duration.ts";
import { keyGone, liveKey } from "../tenants/live-key.ts";
import { namesOther, permitted, refuseAgent } from "./agent-scope.ts";
import { CallerBounds } from "./caller-bounds.ts";
import type { OpenStreams } from "./open-streams.ts";
import { createAgents } from "./resources/agents.ts";
import { createBulks } from "./resources/bulks.ts";
import { collectMetrics } from "./resources/collect-metrics.ts";
import { EndedTasks } from "./resources/ended-tasks.ts";
import { eventPage } from "./resources/event-page.ts";
import type { ProcessSituation } from "./resources/explain-task.ts";
import { createLanes } from "./resources/lanes.ts";
import { ownSchedules } from "./resources/own-schedules.ts";
import { createRuns } from "./resources/runs.ts";
import { createSchedules } from "./resources/schedules.ts";
import { createSessions } from "./resources/sessions.ts";
import { statsSeries } from "./resources/stats-series.ts";
import { taskParser } from "./resources/task-parser.ts";
import { createTasks } from "./resources/tasks.ts";
import type { TokenEstimates } from "./resources/token-estimates.ts";
import { waitingReasons } from "./resources/waiting-reasons.ts";
import { createWebhooks } from "./resources/webhooks.ts";
import { createWorkers } from "./resources/workers.ts";
import { WritAnswers } from "./resources/writ-answers.ts";
import { WritRunner } from "./resources/writ-runner.ts";
import { createWrits } from "./resources/writs.ts";
import type { SharedParts } from "./shared-parts.ts";

/** Also what they share of the Rota around them. */
export interface TenantRotaParts extends SharedParts {
  readonly streams: OpenStreams;
  readonly estimates: TokenEstimates;
  readonly waiter: TaskWaiter;
  readonly newTaskId: () => string;
  readonly newBatchId: () => string;
  readonly newBulkId: () => string;
  readonly newWorkerId: () => string;
  readonly state: () => RotaState;
  /** Throws if the scheduler is disabled. */
  readonly checkEnabled: () => void;
  /** Throws while no tasks are accepted. */
  readonly checkOpen: () => void;
  /** Throws once this process stops. */
  readonly checkNotDraining: () => void;
}

/** Who calls. */
export interface TenantCaller {
  readonly provenance: Provenance;
  /** The bounds of its key; undefined: none. */
  readonly bounds: Bounds | undefined;
  /** Those of another key that it has as well; undefined: none. */
  readonly besideBounds: Bounds | undefined;
}

/** The API of one tenant, or of one agent in it, in this process. It has no state that would be missed when it is made again. */
export class TenantRota implements LocalTenant {
  readonly tenant: string;
  readonly tasks: LocalTasks;
  readonly sessions: Sessions;
  readonly schedules: LocalSchedules;
  readonly runs: Runs;
  readonly writs: Writs;
  /** Carries out the writs in results of agents. */
  readonly writAnswers: WritAnswers;
  readonly lanes: Lanes;
  readonly bulks: LocalBulks;
  readonly agents: Agents;
  readonly webhooks: Webhooks;
  readonly workers: LocalWorkers;
  readonly #scope: Scope;
  readonly #parts: TenantRotaParts;

  constructor(scope: Scope, caller: TenantCaller, parts: TenantRotaParts) {
    const { tenant } = scope;
    const provenance = withReach(scope, caller.provenance);
    const { storage, storageClock, engine, eventLog, notificationLog, clock, log } = parts;
    const { current, guard, turns, deliverer, catalogue, laneCatalogue, tenants } = parts;
    const { newTaskId, newBatchId, checkNotDraining } = parts;
    this.tenant = tenant;
    this.#scope = scope;
    this.#parts = parts;
    const checkNotGone = () => tenants.checkNotGone(tenant);
    const boundsOf = (of: Provenance, ofKey: Bounds | undefined, ofKeyBeside?: Bounds) =>
      new CallerBounds({
        tenant,
        provenance: of,
        ofKey,
        ofKeyBeside,
        ofAgent: (agent) => parts.agents.find({ tenant, agent })?.agent.bounds,
        configured: () => current.value.options.bounds,
        storage,
        now: () => storageClock.now(),
      });
    const bounds = boundsOf(provenance, caller.bounds, caller.besideBounds);
    const checkOpen = () => {
      parts.checkOpen();
      checkNotGone();
    };
    const redactor = () => current.value.redactor;
    const defaults = () => this.#taskDefaults();
    const parse = taskParser({ defaults, lanes: laneCatalogue, checkOpen });
    const ended = new EndedTasks({ tenant, engine, onEnded: () => deliverer.wake() });
    const isKnown = (agent: string) => catalogue.isKnown({ tenant, agent });
    const noExecutorMs = () => current.value.scheduler.noExecutorSec * 1_000;
    // A caller that sees one agent does not learn the names of others.
    const agentIds = () => (scope.agent === undefined ? parts.agents.ids(tenant) : []);
    const agents = createAgents({
      scope,
      storage,
      table: parts.agents,
      catalogue,
      guard: () => guard.value,
      box: parts.box,
      turns,
      clock,
      maxAgents: () => maxAgentsOf({ id: tenant, limits: tenants.limitsOf(tenant) ?? { maxAgents: null } }),
      checkNotGone,
    });
    const tasks = createTasks({
      scope,
      provenance,
      bounds,
      storage,
      engine,
      eventLog,
      waiter: parts.waiter,
      limits: () => current.value.limits,
      maxQueued: () => tenants.limitsOf(tenant)?.maxQueued ?? null,
      quota: parts.quota,
      work: parts.work,
      parse,
      redactor,
      storageNow: () => storageClock.now(),
      newTaskId,
      newBatchId,
      checkCallback: (url, field) => guard.value.check(url, field),
      processSituation: (lane) => this.#processSituation(lane),
      requiredLabels: (agent) => parts.agents.find({ tenant, agent })?.agent.require?.labels,
      noExecutorMs,
      checkOpen,
      checkNotGone,
      ended,
    });
    const sessions = createSessions({
      scope,
      provenance,
      bounds,
      storage,
      engine,
      eventLog,
      tasks,
      estimates: parts.estimates,
      ended,
      settings: () => current.value.sessions,
      defaults,
      quota: parts.quota,
      parse,
      maxSessions: async () => {
        const record = await storage.tenants.get({ id: tenant });
        return record === null ? null : maxSessionsOf(record);
      },
      contextWindow: (agent) => parts.agents.contextWindow({ tenant, agent }),
      newTaskId,
      checkCallback: (url, field) => guard.value.check(url, field),
      noExecutorMs,
      checkOpen,
      checkNotGone,
    });
    const scheduling = {
      scope,
      provenance,
      bounds,
      boundsOf: async (of: Provenance) => boundsOf(of, await this.#keyBounds(of)),
      storage,
      storageClock,
      runner: engine.scheduleTicker,
      eventLog,
      notificationLog,
      ended,
      isKnown,
      agentIds,
      timeoutMaxMs: () => current.value.timeoutMaxMs,
      redactor,
      checkCallback: (url: string, field: "callback_url") => guard.value.check(url, field),
      maxSchedules: async () => {
        const record = await storage.tenants.get({ id: tenant });
        return record === null ? null : maxSchedulesOf(record);
      },
      work: parts.work,
      quota: parts.quota,
    };
    const schedules = createSchedules({ ...scheduling, checkOpen });
    const writOptions = { tenant, storage, log };
    this.agents = permitted(scope, agents, ["get", "list"]);
    this.tasks = permitted(scope, tasks, [
      ...(["submit", "dryRun", "submitAgain", "submitBatch", "get", "getBatch", "explain", "logs"] as const),
      ...(["list", "listRows", "wait", "cancel", "retry"] as const),
    ]);
    this.sessions = permitted(scope, sessions, ["send", "get", "list"]);
    const hasWrits = () => parts.agents.hasWrits({ tenant, agent: scope.agent ?? DEFAULT_AGENT });
    this.schedules = permitted(scope, ownSchedules(schedules, { scope, storage, hasWrits }), [
      ...(["get", "list", "runs", "preview"] as const),
      ...(["create", "dryRun", "update", "delete", "run"] as const),
    ]);
    this.writs = createWrits({
      scope,
      storage,
      runner: new WritRunner({
        ...writOptions,
        schedules: createSchedules({
          ...scheduling,
          provenance: asWrit(provenance),
          // A task token has the defaults on this route as on others.
          bounds: provenance.within === null ? boundsOf(asWrit(provenance), caller.bounds) : bounds,
          checkOpen,
        }),
      }),
      // With a task token the agent itself writes, as in its answers. A key is given by a person.
      mayWrite: () => provenance.within === null || hasWrits(),
      isKnown,
      agentIds,
      checkOpen,
    });
    this.writAnswers = new WritAnswers({
      ...writOptions,
      storageClock,
      // Tasks that still run while this node drains may create schedules: other nodes fire them.
      runner: new WritRunner({
        ...writOptions,
        schedules: createSchedules({ ...scheduling, checkOpen: () => tenants.checkNotGone(tenant) }),
      }),
    });
    this.runs = createRuns({ scope, storage, redactor });
    const bulks = createBulks({ tenant, bounds, storage, newBulkId: parts.newBulkId, checkOpen });
    this.bulks = permitted(scope, bulks, []);
    const lanes = createLanes({
      tenant,
      storage,
      storageClock,
      engine,
      table: parts.lanes,
      catalogue: laneCatalogue,
      ended,
      checkNotDraining,
    });
    this.lanes = permitted(scope, lanes, []);
    const webhooks = createWebhooks({
      tenant,
      storage,
      storageClock,
      isDisabled: () => tenants.isDisabled(tenant),
      onResend: () => deliverer.wake(),
    });
    this.webhooks = permitted(scope, webhooks, []);
    const workers = createWorkers({
      tenant,
      storage,
      storageClock,
      engine,
      random: parts.random,
      newWorkerId: parts.newWorkerId,
      executorOf: (agent) => parts.agents.executorName({ tenant, agent }),
      excluded: (labels) => parts.agents.notForLabels(tenant, labels),
      contextWindow: (record) => parts.agents.contextWindow(record),
      taskToken: (record, fence) => parts.tokens.sign(record, fence),
      checkEnabled: parts.checkEnabled,
      checkNotGone,
      isDraining: () => parts.state() !== "running" && parts.state() !== "created",
    });
    this.workers = permitted(scope, workers, []);
  }

  events(options: EventsOptions & LocalReading = {}): EventReader {
    const { eventLog, streams } = this.#parts;
    const { tenant, agent } = this.#scope;
    if (namesOther(this.#scope, options.agentId)) throw new RotaError("not_found", "agent not found");
    const { agentId = agent, ...checked } = checkEventsOptions(options);
    return new EventReader(eventLog, { ...checked, agentId, tenant, onEnd: streams.open(tenant) });
  }

  async eventPage(filter: EventPageFilter = {}): Promise<EventPage> {
    refuseAgent(this.#scope);
    const { storage, current } = this.#parts;
    return eventPage({ storage, tenant: this.tenant, redactor: current.value.redactor }, filter);
  }

  notifications(options: NotificationsOptions & LocalReading = {}): NotificationReader {
    const { notificationLog, streams } = this.#parts;
    const checked = checkNotificationsOptions(options);
    const onEnd = streams.open(this.tenant);
    return new NotificationReader(notificationLog, this.#scope, { ...checked, onEnd });
  }

  async stats(): Promise<SchedulerStats> {
    refuseAgent(this.#scope);
    const { storage, engine, current, lanes } = this.#parts;
    const { scheduler, resultTTLSec } = current.value;
    const tasksLane = lanes.lanes.get(TASKS_LANE);
    const depth = await storage.tasks.queueDepth({ tenant: this.tenant });
    return {
      queue: { totalQueued: depth.queued, totalInflight: depth.inflight, agentCounts: depth.agents },
      metrics: engine.metrics.shownTo(this.tenant).snapshot(),
      config: {
        strategy: scheduler.strategy,
        maxQueueSize: scheduler.maxQueueSize,
        maxPerAgent: scheduler.maxPerAgent,
        maxInflight: tasksLane?.total ?? 0,
        maxPerAgentFlight: scheduler.maxPerAgentInflight,
        workerCount: tasksLane?.concurrency ?? 0,
        resultTTL: goDuration(resultTTLSec(storage.capabilities)),
      },
    };
  }

  async waiting(): Promise<WaitingReasons> {
    refuseAgent(this.#scope);
    const { tenant } = this;
    const waiting = await this.#parts.storage.tasks.waiting({ tenant });
    return waitingReasons(waiting, { tenant, processSituation: (lane) => this.#processSituation(lane) });
  }

  async statsSeries(query: StatsSeriesQuery = {}): Promise<StatsSeries> {
    refuseAgent(this.#scope);
    const { storage, storageClock } = this.#parts;
    return statsSeries(storage, this.tenant, parseSeriesQuery({ ...query }, storageClock.now()));
  }

  async metrics(): Promise<string> {
    refuseAgent(this.#scope);
    return collectMetrics({ ...this.#parts, tenant: this.tenant, waiting: () => this.waiting() });
  }

  /** The bounds of the key that submitted a task, on whose behalf the task acts. */
  /** Throws `forbidden` once the key was deleted or has expired. */
  async #keyBounds({ createdBy: { keyId } }: Provenance): Promise<Bounds | undefined> {
    if (keyId === null) return undefined;
    const { storage, storageClock } = this.#parts;
    const key = await liveKey(storage, { tenant: this.tenant, id: keyId }, storageClock.now());
    if (key === null) throw keyGone();
    return key.bounds ?? undefined;
  }

  #processSituation(lane: string): ProcessSituation {
    const { current, engine, state } = this.#parts;
    const { enabled, noExecutorSec } = current.value.scheduler;
    return {
      state: state(),
      enabled,
      lane: engine.laneLoad(lane),
      memory: engine.memory,
      alonePhase: engine.alonePhase,
      noExecutorMs: noExecutorSec * 1_000,
      now: this.#parts.storageClock.now(),
    };
  }

  #taskDefaults(): TaskDefaults {
    const { current, lanes, agents, storageClock } = this.#parts;
    const { tenant } = this;
    const settings = current.value;
    return {
      now: storageClock.now(),
      timeoutMs: settings.timeoutMs,
      timeoutMaxMs: settings.timeoutMaxMs,
      retryPolicy: settings.retryPolicy,
      hasLane: (lane) => lanes.lanes.has(lane),
      laneOf: (agent) => agents.laneOf({ tenant, agent }),
      maxQueuedOf: (agent) => agents.maxQueued({ tenant, agent }),
      sessionMaxConcurrent: settings.sessions.maxConcurrent,
      redactor: settings.redactor,
    };
  }
}

function asWrit(provenance: Provenance): Provenance {
  return { ...provenance, createdBy: { ...provenance.createdBy, via: "writ" } };
}

/** What a caller for one agent makes reaches no further than the caller itself. */
function withReach({ agent, delegates = [] }: Scope, provenance: Provenance): Provenance {
  if (agent === undefined || delegates.includes(ALL_DELEGATES)) return provenance;
  return { ...provenance, reach: [agent, ...delegates] };
}
