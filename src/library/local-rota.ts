import type { Engine } from "../engine/engine.ts";
import { idMaker } from "../engine/new-id.ts";
import { type EventHandler, handleEvents } from "../events/event-handlers.ts";
import type { EventLog } from "../events/event-log.ts";
import { EventReader } from "../events/event-reader.ts";
import { TaskWaiter } from "../events/task-waiter.ts";
import type { Executor } from "../executors/executor.ts";
import type { Agents as AgentCalls } from "../interface/agents.ts";
import type { AgentOptions } from "../interface/options.ts";
import type { EventsOptions, Health, Reloaded, Rota, RotaState } from "../interface/rota.ts";
import type { LocalTasks } from "../interface/tasks.ts";
import type { Webhooks } from "../interface/webhooks.ts";
import type { Clock } from "../model/clock.ts";
import { RotaError } from "../model/errors.ts";
import { checkEventsOptions } from "../model/events-options.ts";
import { goDuration } from "../model/go-duration.ts";
import type { Log } from "../model/log.ts";
import type { SchedulerStats } from "../model/scheduler-stats.ts";
import { DEFAULT_TENANT } from "../model/task.ts";
import type { TaskDefaults } from "../model/task-input.ts";
import type { StorageClock } from "../services/storage-clock.ts";
import type { Storage } from "../storage/storage.ts";
import { VERSION } from "../version.ts";
import type { Agents } from "./agents.ts";
import type { Settings } from "./settings.ts";
import { createTasks } from "./tasks.ts";
import { warnOfUnservedLanes } from "./unserved-lanes.ts";

/**
 * Timers of the clock never keep the process alive, but a Rota that was started does, until it is stopped: a program
 * may well have nothing else to do than to wait for its next task. How often this does nothing is of no importance.
 */
const KEEP_ALIVE_MS = 60 * 60 * 1_000;

/** A storage that takes longer than this to say what time it is counts as away: whoever asks wants to know soon. */
const HEALTH_MS = 2_000;

export interface LocalRotaParts {
  readonly settings: Settings;
  readonly storage: Storage;
  readonly storageClock: StorageClock;
  readonly agents: Agents;
  readonly engine: Engine;
  readonly eventLog: EventLog;
  readonly clock: Clock;
  readonly log: Log;
}

/** The scheduler in this process: what its users call, on top of the engine and the storage. */
export class LocalRota implements Rota {
  readonly tasks: LocalTasks;
  readonly agents: AgentCalls = undefined as never;
  readonly webhooks: Webhooks = undefined as never;
  readonly #parts: LocalRotaParts;
  /** Agents whose limit the storage was not told yet, or not since it changed. */
  readonly #unstored: Set<string>;
  #storing: Promise<void> | null = null;
  #state: RotaState = "created";
  #starting: Promise<void> | null = null;
  #draining: Promise<void> | null = null;
  #stopping: Promise<void> | null = null;
  #keepAlive: NodeJS.Timeout | undefined;
  readonly #drainBegins = new AbortController();

  constructor(parts: LocalRotaParts) {
    const { storage, engine, eventLog, clock, settings } = parts;
    this.#parts = parts;
    this.#unstored = new Set(parts.agents.ids());
    this.tasks = createTasks({
      tenant: DEFAULT_TENANT,
      storage,
      engine,
      eventLog,
      waiter: new TaskWaiter({ eventLog, clock }),
      limits: () => settings.limits,
      defaults: () => this.#taskDefaults(),
      newTaskId: idMaker("tsk_", clock),
      newBatchId: idMaker("bat_", clock),
      checkCallback: async () => {},
      checkOpen: () => this.#checkOpen(),
    });
    storage.subscribe((signal) => {
      if (signal.kind === "events" || signal.kind === "reconnected") eventLog.wake();
      engine.onSignal(signal);
    });
  }

  get state(): RotaState {
    return this.#state;
  }

  get draining(): AbortSignal {
    return this.#drainBegins.signal;
  }

  agent(id: string, first: Executor | AgentOptions, handler?: Executor): void {
    const options = typeof first === "function" ? { executor: first } : first;
    this.#parts.agents.set(id, handler === undefined ? options : { ...options, executor: handler });
    this.#unstored.add(id);
    // Before that, `start()` does it, and tells its caller if it cannot.
    if (this.#state === "running") void this.#storeLateAgents();
  }

  start(): Promise<void> {
    if (this.#stopping !== null || this.#draining !== null) {
      return Promise.reject(new RotaError("draining", "this Rota was stopped: create a new one"));
    }
    this.#starting ??= this.#start().catch((error) => {
      this.#starting = null;
      throw error;
    });
    return this.#starting;
  }

  drain({ graceMs }: { graceMs?: number } = {}): Promise<void> {
    this.#draining ??= this.#drain(graceMs ?? this.#parts.settings.shutdownGraceMs);
    return this.#draining;
  }

  stop(options: { graceMs?: number } = {}): Promise<void> {
    this.#stopping ??= this.#stop(options);
    return this.#stopping;
  }

  events(options: EventsOptions = {}): EventReader {
    return new EventReader(this.#parts.eventLog, checkEventsOptions(options));
  }

  onEvent(handler: EventHandler): () => void {
    return handleEvents(this.#parts.eventLog, handler, this.#parts.log);
  }

  async stats(): Promise<SchedulerStats> {
    const { storage, engine, settings } = this.#parts;
    const { scheduler } = settings;
    const depth = await storage.tasks.queueDepth({ tenant: DEFAULT_TENANT });
    return {
      queue: { totalQueued: depth.queued, totalInflight: depth.inflight, agentCounts: depth.agents },
      metrics: engine.metrics.snapshot(),
      config: {
        strategy: scheduler.strategy,
        maxQueueSize: scheduler.maxQueueSize,
        maxPerAgent: scheduler.maxPerAgent,
        maxInflight: scheduler.maxInflight,
        maxPerAgentFlight: scheduler.maxPerAgentInflight,
        workerCount: scheduler.workerCount,
        resultTTL: goDuration(settings.resultTTLSec(storage.capabilities)),
      },
    };
  }

  async metrics(): Promise<string> {
    throw new Error("not built yet");
  }

  async reload(): Promise<Reloaded> {
    throw new Error("not built yet");
  }

  async health(): Promise<Health> {
    const { storage, clock } = this.#parts;
    const late = Promise.withResolvers<"unavailable">();
    const timer = clock.setTimer(HEALTH_MS, () => late.resolve("unavailable"));
    const answered = storage.now().then(
      () => "ok" as const,
      () => "unavailable" as const,
    );
    const found = await Promise.race([answered, late.promise]);
    timer.cancel();
    return { status: "ok", version: VERSION, state: this.#state, storage: found, config: { ok: true } };
  }

  async #start(): Promise<void> {
    const { engine, settings, storage, log } = this.#parts;
    await this.#storeAgents();
    if (settings.scheduler.enabled) {
      await warnOfUnservedLanes({ storage, lanes: settings.lanes, log });
      await engine.start();
    }
    this.#keepAlive = setInterval(() => {}, KEEP_ALIVE_MS);
    this.#state = "running";
    // Agents that were made known while the engine started: their limits, too, hold once this answers.
    await this.#storeLateAgents();
  }

  async #drain(graceMs: number): Promise<void> {
    // A start that is under way ends first: what it began is then stopped in order.
    await this.#starting?.catch(() => {});
    this.#state = "draining";
    this.#drainBegins.abort();
    await this.#parts.engine.drain(graceMs);
    clearInterval(this.#keepAlive);
    this.#state = "drained";
  }

  async #stop(options: { graceMs?: number }): Promise<void> {
    await this.drain(options);
    await this.#parts.eventLog.close();
    await this.#parts.storage.close();
    this.#state = "stopped";
  }

  /** Once it runs nobody is left to be told of a failure but the log; the next change of an agent tries again. */
  async #storeLateAgents(): Promise<void> {
    await this.#storeAgents().catch((error) =>
      this.#parts.log.error({ error, agents: [...this.#unstored] }, "could not store the limits of agents"),
    );
  }

  /** One after the other, and never twice at once: of two limits of one agent the later must be the one that stays. */
  #storeAgents(): Promise<void> {
    if (this.#unstored.size === 0) return this.#storing ?? Promise.resolve();
    this.#storing ??= this.#storeUnstored();
    return this.#storing;
  }

  async #storeUnstored(): Promise<void> {
    const { storage, agents } = this.#parts;
    try {
      // A set goes on to what is added to it meanwhile.
      for (const agent of this.#unstored) {
        this.#unstored.delete(agent);
        try {
          const maxInflight = agents.maxInflight(agent);
          await storage.agents.configure({ tenant: DEFAULT_TENANT, agent, maxInflight });
        } catch (error) {
          this.#unstored.add(agent);
          throw error;
        }
      }
    } finally {
      this.#storing = null;
    }
  }

  #checkOpen(): void {
    if (!this.#parts.settings.scheduler.enabled) {
      throw new RotaError("scheduler_disabled", "the scheduler is disabled: set `scheduler.enabled` to true");
    }
    if (this.#draining !== null || this.#stopping !== null) {
      throw new RotaError("draining", "this node is stopping and takes no new work");
    }
  }

  #taskDefaults(): TaskDefaults {
    const { settings, agents, storageClock } = this.#parts;
    return {
      now: storageClock.now(),
      timeoutMs: settings.timeoutMs,
      timeoutMaxMs: settings.timeoutMaxMs,
      retryPolicy: settings.retryPolicy,
      hasLane: (lane) => settings.lanes.some(({ name }) => name === lane),
      laneOf: (agent) => agents.laneOf(agent),
      maxQueuedOf: (agent) => agents.maxQueued(agent),
    };
  }
}
