import type { Executor } from "../executors/executor.ts";
import type { RunMetrics } from "../metrics/run-metrics.ts";
import type { AgentName } from "../model/agent.ts";
import type { Clock } from "../model/clock.ts";
import type { Log } from "../model/log.ts";
import type { Redactor } from "../model/redactor.ts";
import type { TaskRecord } from "../model/task-record.ts";
import type { StorageClock } from "../services/storage-clock.ts";
import type { Abilities, AdmissionLimits, Storage } from "../storage/storage.ts";
import { Heartbeat, type HeartbeatOptions } from "./node/heartbeat.ts";
import { Membership } from "./node/membership.ts";
import { Rescuer, type RescuerOptions } from "./node/rescuer.ts";
import { FirePace } from "./schedules/fire-pace.ts";
import { Rewinder } from "./schedules/rewinder.ts";
import { RunMaker, type RunMakerOptions, type RunOptions } from "./schedules/run-maker.ts";
import { ScheduleTicker } from "./schedules/schedule-ticker.ts";
import { Timekeeper, type TimekeeperOptions } from "./schedules/timekeeper.ts";
import { Pruner } from "./upkeep/pruner.ts";
import { Recounter } from "./upkeep/recounter.ts";
import { RollupWriter } from "./upkeep/rollup-writer.ts";
import { BulkWorker, type BulkWorkerOptions } from "./work/bulk-worker.ts";
import { Completer } from "./work/completer.ts";
import { DependencyReader } from "./work/dependency-results.ts";
import { Dispatcher, type DispatcherOptions } from "./work/dispatcher.ts";
import { Intake, type IntakeOptions } from "./work/intake.ts";
import { LaneSlots } from "./work/lane-slots.ts";
import { LogKeeper } from "./work/log-keeper.ts";
import type { MetricsByTenant } from "./work/metrics-by-tenant.ts";
import { Releaser } from "./work/releaser.ts";
import { Runner, type RunnerOptions } from "./work/runner.ts";
import { RunningBytes, type RunningBytesOptions } from "./work/running-bytes.ts";
import { SecretHider } from "./work/secret-hider.ts";
import { readTaskSession, takeMessages } from "./work/task-session.ts";
import { WorkerAttempts, type WorkerAttemptsOptions } from "./workers/worker-attempts.ts";
import { WorkerDispatcher, type WorkerDispatcherOptions } from "./workers/worker-dispatcher.ts";
import { POLLS_MAX } from "./workers/worker-polls.ts";
import { WorkerRecords } from "./workers/worker-records.ts";
import { WorkerSignals } from "./workers/worker-signals.ts";
import { WorkerWatch } from "./workers/worker-watch.ts";

export interface EngineOptions {
  readonly storage: Storage;
  readonly storageClock: StorageClock;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
  readonly newNodeId: () => string;
  /** The version of Rota, for the list of nodes. */
  readonly version: string;
  /** How many tasks of each lane run here at once. */
  readonly concurrency: () => Readonly<Record<string, number>>;
  /** The part of a lane's slots, and of `maxRunningBytes`, that one tenant may hold once a second enabled tenant exists. */
  readonly maxLaneShare: () => number;
  /** Whether a second enabled tenant exists, as known in this process. The storage decides by its own data. */
  readonly hasSecondTenant: () => boolean;
  /** How often the schedules of one tenant may fire here once a second enabled tenant exists; null: any number. */
  readonly maxFiresPerSec: () => number | null;
  readonly limits: () => AdmissionLimits;
  readonly retentionMs: () => number;
  /** How long runs of schedules are kept. They outlive their tasks. */
  readonly runRetentionMs: () => number;
  /** Ids, defaults and checks for runs of schedules. */
  readonly runs: RunOptions;
  readonly findExecutor: (record: TaskRecord) => Executor | undefined;
  /** What this process can execute. Call `engine.abilitiesChanged` when it changes. */
  readonly abilities: () => Abilities;
  /** How many bytes the tasks that run here may hold; 0: any number. */
  readonly maxRunningBytes: () => number;
  /** How often a task may be lost with its process. */
  readonly maxLost: () => number;
  /** How long a task stays queued if its agent has no executor of its own and no live node has one for its kind. */
  readonly noExecutorMs: () => number;
  /** The context window of the model of a task's agent. Left out: unknown. */
  readonly contextWindow?: NonNullable<RunnerOptions["contextWindow"]>;
  /** Masks secrets of a task in its errors and log lines. Left out: masks those of `llmConfig` only. */
  readonly redactor?: () => Redactor;
  /** Signs the request of an executor. Left out: no secret is set. */
  readonly sign?: NonNullable<RunnerOptions["sign"]>;
  /** What attempts may do in Rota. Left out: nothing. */
  readonly taskTokens?: NonNullable<RunnerOptions["taskTokens"]>;
  /** Whether the end of one of its tasks may let tasks of any lane start: the agent or its tenant has a limit over all lanes. */
  readonly spansLanes: (name: AgentName) => boolean;
  /** Whether a caller of this process waits for tasks to end, or reads the log as it grows. Left out: none does. */
  readonly isFollowed?: () => boolean;
  /** Called when tasks ended that may have a callback URL. */
  readonly onEnded?: () => void;
  /** How many of the claims that wait on this node one tenant may have. Left out: all. */
  readonly tenantPollsMax?: () => number;
  /** Another number whenever an agent has changed, and with it which workers may run it. Left out: none changes. */
  readonly agentsVersion?: () => number;
  /** Carries out what the result of a worker asks for. Returns the result to store. Left out: stores it as it is. */
  readonly processResult?: WorkerAttemptsOptions["processResult"];
}

/** What the services report to the engine. The engine decides which services then wake. */
export interface EngineEvents {
  readonly memoryFreed: RunningBytesOptions["onRoom"];
  readonly tasksSent: IntakeOptions["onSent"];
  readonly tasksInserted: IntakeOptions["onInserted"];
  readonly attemptEnded: RunnerOptions["onOutcome"];
  readonly attemptFenced: RunnerOptions["onFenced"];
  readonly attemptProgressed: RunnerOptions["onProgress"];
  readonly retryScheduled: DispatcherOptions["onRetryAt"];
  readonly tasksPromoted: TimekeeperOptions["onPromoted"];
  /** Tasks ended that may have a callback URL. */
  readonly tasksEnded: () => void;
  readonly runsReplaced: RunMakerOptions["onCancelled"];
  readonly tasksRescued: RescuerOptions["onRequeued"];
  readonly bulkCancelled: BulkWorkerOptions["onCancelled"];
  readonly leasesTakenOver: HeartbeatOptions["onFenced"];
  readonly leasesRenewed: HeartbeatOptions["onHeld"];
  readonly nodeLost: HeartbeatOptions["onLost"];
  readonly workerAssigned: WorkerDispatcherOptions["onAssigned"];
  readonly workerPutBack: WorkerDispatcherOptions["onPutBack"];
}

export interface EngineParts extends EngineOptions {
  readonly metrics: MetricsByTenant;
  readonly runMetrics: RunMetrics;
  readonly on: EngineEvents;
}

export type EngineServices = ReturnType<typeof createServices>;

export function createServices(parts: EngineParts) {
  const { storage, storageClock, clock, random, log, metrics, on } = parts;
  const service = { clock, random, log, storage };
  const node = () => membership.node;
  const storageNow = () => storageClock.now();
  const slots = new LaneSlots(parts.concurrency(), parts.maxLaneShare());
  const memory = new RunningBytes({
    max: parts.maxRunningBytes,
    tenantShare: () => (parts.hasSecondTenant() ? parts.maxLaneShare() : null),
    running: () => runner.size + dispatcher.aheadSize,
    onRoom: on.memoryFreed,
  });
  const completer = new Completer({ storageNow, random, memory });
  const logs = new LogKeeper({ ...service, storageNow });
  const dependencies = new DependencyReader({ clock, random, storage });
  const secrets = new SecretHider(parts.redactor);
  const runner: Runner = new Runner({
    clock,
    storageNow,
    log,
    memory,
    findExecutor: parts.findExecutor,
    readDependencies: (record, signal) => dependencies.read(record, signal),
    onOutcome: (attempt, outcome) => {
      logs.ended(attempt);
      on.attemptEnded(attempt, outcome);
    },
    onFenced: on.attemptFenced,
    onProgress: on.attemptProgressed,
    onLog: (attempt, level, text) => logs.add(attempt, level, text),
    onUsage: ({ record }, usage) => metrics.of(record.tenant).used(record, usage),
    readSession: (attempt, turns) => readTaskSession({ clock, random, storage, attempt, turns }),
    takeMessages: (attempt, after) => takeMessages({ clock, random, storage, attempt, after }),
    ...(parts.contextWindow && { contextWindow: parts.contextWindow }),
    secrets,
    ...(parts.sign && { sign: parts.sign }),
    ...(parts.taskTokens && { taskTokens: parts.taskTokens }),
  });
  const dispatcher: Dispatcher = new Dispatcher({
    ...service,
    metrics,
    memory,
    node,
    storageNow,
    isFollowed: parts.isFollowed ?? (() => false),
    slots,
    runner,
    completer,
    spansLanes: parts.spansLanes,
    onRetryAt: on.retryScheduled,
    onEnded: on.tasksEnded,
  });
  const membership = new Membership({
    ...service,
    newNodeId: parts.newNodeId,
    version: parts.version,
    capacity: () => dispatcher.serves,
    draining: () => dispatcher.isClosing,
    abilities: parts.abilities,
  });
  const workerDispatcher = new WorkerDispatcher({
    ...service,
    metrics,
    tenantPollsMax: parts.tenantPollsMax ?? (() => POLLS_MAX),
    agentsVersion: parts.agentsVersion ?? (() => 0),
    onRetryAt: on.retryScheduled,
    onEnded: on.tasksEnded,
    onAssigned: on.workerAssigned,
    onPutBack: on.workerPutBack,
  });
  const workerRecords = new WorkerRecords({ storage, clock });
  const workerWatch = new WorkerWatch({
    ...service,
    storageNow,
    dispatcher: workerDispatcher,
    records: workerRecords,
    metrics,
    maxLost: parts.maxLost,
    onRequeued: on.tasksRescued,
    onFailed: on.tasksEnded,
  });
  const workerSignals = new WorkerSignals({ storage, records: workerRecords, dispatcher: workerDispatcher });
  const workerAttempts = new WorkerAttempts({
    storage,
    storageNow,
    random,
    dispatcher: workerDispatcher,
    watch: workerWatch,
    metrics,
    secrets,
    addLog: (attempt, { at, level, text }) => logs.add(attempt, level, text, at ?? storageNow()),
    processResult: parts.processResult ?? (() => null),
    contextWindow: parts.contextWindow ?? (() => undefined),
  });
  const runs = new RunMaker({
    ...parts.runs,
    storage,
    storageClock,
    metrics: parts.runMetrics,
    monotonic: () => clock.monotonic(),
    log,
    onInserted: on.tasksInserted,
    onCancelled: on.runsReplaced,
  });
  return {
    dependencies,
    workerDispatcher,
    workerWatch,
    workerAttempts,
    workerRecords,
    workerSignals,
    slots,
    memory,
    completer,
    logs,
    runner,
    dispatcher,
    membership,
    intake: new Intake({
      storage,
      clock,
      random,
      limits: parts.limits,
      claimFor: (tasks) => dispatcher.claimWithInsert(new Set(tasks.map(({ lane }) => lane))),
      onSent: on.tasksSent,
      onInserted: on.tasksInserted,
    }),
    timekeeper: new Timekeeper({
      ...service,
      storageClock,
      metrics,
      onPromoted: on.tasksPromoted,
      onExpired: on.tasksEnded,
      noExecutorMs: parts.noExecutorMs,
    }),
    scheduleTicker: new ScheduleTicker({
      ...service,
      storageClock,
      runs,
      pace: new FirePace({
        perSecond: () => (parts.hasSecondTenant() ? parts.maxFiresPerSec() : null),
        monotonic: () => clock.monotonic(),
      }),
    }),
    heartbeat: new Heartbeat({
      ...service,
      node,
      tokens: () => [...runner.tokens(), ...dispatcher.aheadTokens],
      onFenced: on.leasesTakenOver,
      onHeld: on.leasesRenewed,
      onLost: on.nodeLost,
    }),
    rescuer: new Rescuer({
      ...service,
      metrics,
      node,
      maxLost: parts.maxLost,
      onRequeued: on.tasksRescued,
      onFailed: on.tasksEnded,
    }),
    releaser: new Releaser(service),
    pruner: new Pruner({
      ...service,
      retentionMs: parts.retentionMs,
      runRetentionMs: parts.runRetentionMs,
    }),
    recounter: new Recounter(service),
    rewinder: new Rewinder({ ...service, storageClock }),
    bulkWorker: new BulkWorker({ ...service, onCancelled: on.bulkCancelled }),
    rollupWriter: new RollupWriter(service),
  };
}
