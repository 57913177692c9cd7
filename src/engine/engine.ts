import type { Executor } from "../executors/executor.ts";
import { RunMetrics } from "../metrics/run-metrics.ts";
import type { AgentName } from "../model/agent.ts";
import type { Clock } from "../model/clock.ts";
import type { Log } from "../model/log.ts";
import { REPLACED } from "../model/run.ts";
import type { TaskRecord } from "../model/task-record.ts";
import type { Service } from "../services/service.ts";
import type { StorageClock } from "../services/storage-clock.ts";
import type {
  Abilities,
  AdmissionLimits,
  Held,
  InsertedTask,
  NewTask,
  Storage,
  StorageSignal,
} from "../storage/storage.ts";
import { Heartbeat } from "./node/heartbeat.ts";
import { Membership } from "./node/membership.ts";
import { Orphans } from "./node/orphans.ts";
import { Rescuer } from "./node/rescuer.ts";
import { Rewinder } from "./schedules/rewinder.ts";
import { RunMaker, type RunOptions, type TenantTask } from "./schedules/run-maker.ts";
import { type ScheduleRunner, ScheduleTicker } from "./schedules/schedule-ticker.ts";
import { Timekeeper } from "./schedules/timekeeper.ts";
import { Pruner } from "./upkeep/pruner.ts";
import { Recounter } from "./upkeep/recounter.ts";
import { RollupWriter } from "./upkeep/rollup-writer.ts";
import type { AlonePhase } from "./work/alone-turns.ts";
import type { Attempt } from "./work/attempt.ts";
import { BulkWorker } from "./work/bulk-worker.ts";
import { Completer } from "./work/completer.ts";
import { DependencyTurns, readDependencies } from "./work/dependency-results.ts";
import { Dispatcher } from "./work/dispatcher.ts";
import { Intake } from "./work/intake.ts";
import { LaneSlots } from "./work/lane-slots.ts";
import { logFailure } from "./work/log-failure.ts";
import { LogKeeper } from "./work/log-keeper.ts";
import { MetricsByTenant } from "./work/metrics-by-tenant.ts";
import { Releaser } from "./work/releaser.ts";
import { Runner, type RunnerOptions } from "./work/runner.ts";
import { RunningBytes, type RunningMemory } from "./work/running-bytes.ts";
import { readTaskSession } from "./work/task-session.ts";

/** Tries to write the last ends before the node stops without them. A rescue then returns their tasks to the queue. */
const LAST_FLUSH_TRIES = 5;
const LAST_FLUSH_PAUSE_MS = 500;

/**
 * The delay after a signal that a task is due earlier than known. Many arrive in a row while tasks with deadlines are
 * submitted, and each check costs three queries. Changes by this process need no signal.
 */
const DUE_SIGNAL_MS = 50;

/** How many of the tasks that a drain waits for are named in the log. */
const WAITED_FOR_SHOWN_MAX = 5;

/** The abort reason of an attempt that was pre-empted. */
const PREEMPTED = "pre-empted by a critical task";

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
  readonly redactor?: NonNullable<RunnerOptions["redactor"]>;
  /** Signs the request of an executor. Left out: no secret is set. */
  readonly sign?: NonNullable<RunnerOptions["sign"]>;
  /** Whether the end of one of its tasks may let tasks of any lane start: the agent or its tenant has a limit over all lanes. */
  readonly spansLanes: (name: AgentName) => boolean;
  /** Called when tasks ended that may have a callback URL. */
  readonly onEnded?: () => void;
}

/** Connects the services that move tasks: each wakes the others that may now have work. */
export class Engine {
  readonly metrics = new MetricsByTenant();
  readonly runMetrics = new RunMetrics();
  readonly intake: Intake;
  readonly #options: EngineOptions;
  readonly #slots: LaneSlots;
  readonly #memory: RunningBytes;
  readonly #completer: Completer;
  readonly #runner: Runner;
  readonly #logs: LogKeeper;
  readonly #membership: Membership;
  readonly #dispatcher: Dispatcher;
  readonly #timekeeper: Timekeeper;
  readonly #scheduleTicker: ScheduleTicker;
  readonly #heartbeat: Heartbeat;
  readonly #rescuer: Rescuer;
  readonly #releaser: Releaser;
  readonly #pruner: Pruner;
  readonly #recounter: Recounter;
  readonly #rewinder: Rewinder;
  readonly #bulkWorker: BulkWorker;
  readonly #rollupWriter: RollupWriter;
  readonly #orphans = new Orphans();
  #started = false;
  #onIdle: (() => void) | null = null;

  constructor(options: EngineOptions) {
    const { storage, storageClock, clock, random, log } = options;
    const { metrics } = this;
    const service = { clock, random, log };
    const node = () => this.#membership.node;
    const storageNow = () => storageClock.now();
    const onEnded = options.onEnded ?? (() => {});
    this.#options = options;
    this.#slots = new LaneSlots(options.concurrency(), options.maxLaneShare());
    this.#memory = new RunningBytes({
      max: options.maxRunningBytes,
      tenantShare: () => (options.hasSecondTenant() ? options.maxLaneShare() : null),
      running: () => this.#runner.size,
      onRoom: () => this.#dispatcher.wakeAll(),
    });
    const memory = this.#memory;
    this.#completer = new Completer({ storageNow, random, memory });
    this.intake = new Intake({
      storage,
      clock,
      random,
      limits: options.limits,
      onSent: (tasks) => this.#wakeFor(tasks),
      onInserted: (tasks, answers) => this.#inserted(tasks, answers),
    });
    const dependencyTurns = new DependencyTurns();
    this.#runner = new Runner({
      clock,
      storageNow,
      log,
      memory,
      findExecutor: options.findExecutor,
      readDependencies: (record, signal) =>
        readDependencies({ clock, random, storage, record, signal, turns: dependencyTurns }),
      onOutcome: (attempt, outcome) => {
        this.#ran(attempt);
        if (outcome.kind === "not_executed") {
          this.#dispatcher.notExecuted(attempt.record.lane);
          this.#membership.abilitiesDoubted();
        }
        logFailure(attempt, this.#completer.finish(attempt, outcome));
        this.#dispatcher.wake();
        this.#ifIdle();
      },
      onFenced: (attempt) => this.#fenced(attempt),
      onProgress: (attempt, data) => {
        this.#completer.report(attempt, data);
        this.#dispatcher.wake();
      },
      onLog: (attempt, level, text) => this.#logs.add(attempt, level, text),
      onUsage: ({ record }, usage) => metrics.of(record.tenant).used(record, usage),
      ...(options.contextWindow && { contextWindow: options.contextWindow }),
      readSession: (attempt, turns) => readTaskSession({ clock, random, storage, attempt, turns }),
      ...(options.redactor && { redactor: options.redactor }),
      ...(options.sign && { sign: options.sign }),
    });
    this.#logs = new LogKeeper({ ...service, storage, storageNow });
    this.#membership = new Membership({
      ...service,
      storage,
      newNodeId: options.newNodeId,
      version: options.version,
      capacity: () => this.#dispatcher.serves,
      draining: () => this.#dispatcher.isClosing,
      abilities: options.abilities,
    });
    this.#dispatcher = new Dispatcher({
      ...service,
      storage,
      metrics,
      memory,
      node,
      slots: this.#slots,
      runner: this.#runner,
      completer: this.#completer,
      spansLanes: options.spansLanes,
      onRetryAt: (runAt) => this.#timekeeper.expect(runAt),
      onEnded,
    });
    const wakeAll = () => this.#dispatcher.wakeAll();
    this.#timekeeper = new Timekeeper({
      ...service,
      storage,
      storageClock,
      metrics,
      onPromoted: wakeAll,
      onExpired: onEnded,
      noExecutorMs: options.noExecutorMs,
    });
    this.#scheduleTicker = new ScheduleTicker({
      ...service,
      storage,
      storageClock,
      runs: new RunMaker({
        ...options.runs,
        storage,
        storageClock,
        metrics: this.runMetrics,
        monotonic: () => clock.monotonic(),
        log,
        onInserted: (tasks, answers) => this.#inserted(tasks, answers),
        onCancelled: (tasks) => this.#replaced(tasks),
      }),
    });
    this.#rescuer = new Rescuer({
      ...service,
      storage,
      metrics,
      node,
      maxLost: options.maxLost,
      onRequeued: () => {
        wakeAll();
        this.#dispatcher.lookForAlone();
      },
      onFailed: onEnded,
    });
    this.#releaser = new Releaser({ ...service, storage });
    this.#pruner = new Pruner({
      ...service,
      storage,
      retentionMs: options.retentionMs,
      runRetentionMs: options.runRetentionMs,
    });
    this.#recounter = new Recounter({ ...service, storage });
    this.#rewinder = new Rewinder({ ...service, storage, storageClock });
    this.#bulkWorker = new BulkWorker({
      ...service,
      storage,
      onCancelled: (tenant, tasks) => {
        if (tasks.length === 0) return;
        for (const task of tasks) metrics.of(tenant).cancelled(task);
        onEnded();
      },
    });
    this.#rollupWriter = new RollupWriter({ ...service, storage });
    this.#heartbeat = new Heartbeat({
      ...service,
      storage,
      node,
      tokens: () => this.#runner.tokens(),
      onFenced: (tokens) => this.fence(tokens, "its lease was taken over"),
      onHeld: (held) => this.#putBackOrphans(held),
      onLost: (reason) => this.#lost(reason),
    });
  }

  /** How many tasks run here right now. */
  get running(): number {
    return this.#runner.size;
  }

  /** How many slots of a lane are taken here; null: this process does not run the lane. */
  laneLoad(lane: string): { readonly running: number; readonly concurrency: number } | null {
    return this.#slots.load(lane);
  }

  /** How many bytes the tasks that run here hold, and how many they may; `max` 0: any number. */
  get memory(): RunningMemory {
    return this.#memory;
  }

  /** Whether this process runs one task alone, or is about to, and so starts no others. */
  get alonePhase(): AlonePhase {
    return this.#dispatcher.alonePhase;
  }

  /** For code that creates, changes or runs schedules. */
  get scheduleTicker(): ScheduleRunner {
    return this.#scheduleTicker;
  }

  get node(): string {
    return this.#membership.node;
  }

  async start(): Promise<void> {
    await this.#membership.begin({
      dispatcher: this.#dispatcher,
      heartbeat: this.#heartbeat,
      rescuer: this.#rescuer,
    });
    this.#started = true;
    // On an exclusive storage no other node can take over tasks, so there is no lease to renew.
    if (!this.#options.storage.capabilities.exclusive) this.#heartbeat.start();
    const others = [this.#membership, this.#dispatcher, this.#rescuer, this.#logs, ...this.#background()];
    for (const service of others) service.start();
  }

  /** From now on fires no schedules. Call it before a drain. */
  stopFiring(): void {
    this.#scheduleTicker.closeDown();
  }

  /** Starts no more tasks, gives running ones `graceMs` to end, then interrupts them. Writes everything before it resolves. */
  async drain(graceMs: number): Promise<void> {
    this.stopFiring();
    if (this.#started) this.#closeDown();
    await this.intake.flush();
    if (!this.#started) return;
    this.#started = false;
    await Promise.all(this.#background().map((service) => service.stop()));
    await this.#idle(graceMs);
    this.#runner.interruptAll("interrupted by shutdown");
    await this.#dispatcher.stop();
    await this.#lastFlush();
    await this.#logs.close();
    await Promise.all([this.#heartbeat.stop(), this.#membership.stop(), this.#rescuer.stop()]);
    await this.#leave();
    this.#runner.close();
  }

  /** The settings have changed: tasks that they allow start at once, and data past the new retention is deleted. */
  settingsChanged(): void {
    this.#slots.configure(this.#options.concurrency(), this.#options.maxLaneShare());
    this.#membership.changed();
    this.#dispatcher.wakeAll();
    this.#pruner.wake();
  }

  /** The abilities of this process have changed. */
  abilitiesChanged(): void {
    this.#membership.changed();
  }

  /** Stops attempts that lost their lease. Returns those that ran here. */
  fence(tokens: readonly number[], reason: string): readonly Attempt[] {
    this.#dispatcher.fenced(tokens);
    return this.#runner.fence(tokens, reason);
  }

  /** A task was returned to the queue. */
  wakeFor(task: InsertedTask): void {
    this.#dispatcher.wakeAll();
    this.#expect(task);
  }

  /**
   * The storage was restored to an earlier state. The heartbeat, which a reconnect wakes, finds out which attempts the storage
   * no longer has, or that it does not know this node.
   */
  restored(): void {
    this.#membership.restored();
  }

  onSignal(signal: StorageSignal): void {
    if (signal.kind === "fenced" && signal.reason === "preempted") this.#preempt(signal.tokens);
    else if (signal.kind === "fenced") this.fence(signal.tokens, "cancelled");
    if (signal.kind === "work" || signal.kind === "reconnected") this.#dispatcher.wakeAll();
    if (signal.kind === "due" || signal.kind === "reconnected") this.#timekeeper.wake(DUE_SIGNAL_MS);
    if (signal.kind === "release" || signal.kind === "reconnected") this.#releaser.wake();
    if (signal.kind === "bulks" || signal.kind === "reconnected") this.#bulkWorker.wake();
    if (signal.kind === "events" || signal.kind === "reconnected") this.#rollupWriter.eventsAdded();
    if (signal.kind === "reconnected") this.#heartbeat.wake();
    this.#scheduleTicker.onSignal(signal);
  }

  #background(): Service[] {
    const upkeep = [this.#releaser, this.#pruner, this.#recounter, this.#rewinder];
    return [this.#timekeeper, this.#scheduleTicker, ...upkeep, this.#bulkWorker, this.#rollupWriter];
  }

  #inserted(tasks: readonly NewTask[], answers: readonly InsertedTask[]): void {
    for (const [place, { rejection, repeats }] of answers.entries()) {
      const task = tasks[place];
      if (task !== undefined && repeats === null) {
        this.metrics.of(task.tenant).submitted(task, { rejected: rejection !== null });
      }
    }
    this.#wakeFor(tasks);
    for (const answer of answers) this.#expect(answer);
  }

  #wakeFor(tasks: readonly NewTask[]): void {
    this.#dispatcher.wakeLanes(new Set(tasks.map(({ lane }) => lane)));
  }

  #expect({ runAt, deadline, unserved }: InsertedTask): void {
    if (unserved) this.#timekeeper.expectUnserved();
    const due = Math.min(runAt ?? Number.POSITIVE_INFINITY, deadline ?? Number.POSITIVE_INFINITY);
    if (due !== Number.POSITIVE_INFINITY) this.#timekeeper.expect(due);
  }

  /** Newer runs of their schedules replaced these tasks. */
  #replaced(tasks: readonly TenantTask[]): void {
    if (tasks.length === 0) return;
    this.fence(
      tasks.flatMap(({ token }) => token ?? []),
      REPLACED,
    );
    for (const task of tasks) this.metrics.of(task.tenant).cancelled(task);
    this.#options.onEnded?.();
  }

  /** Starts no more tasks, and registers that this node has no slots any more. */
  #closeDown(): void {
    this.#dispatcher.closeDown();
    this.#membership.changed();
  }

  /** The storage has already returned these tasks to the queue, and the critical task waits for the slot: nothing to write. */
  #preempt(tokens: readonly number[]): void {
    for (const { record } of this.fence(tokens, PREEMPTED)) this.metrics.of(record.tenant).preempted(record);
  }

  #fenced(attempt: Attempt): void {
    this.#ran(attempt);
    this.#slots.freed(attempt.record);
    this.#completer.drop(attempt);
    this.#dispatcher.wakeAll();
    this.#ifIdle();
  }

  #ran({ record, begunAt }: Attempt): void {
    this.metrics.of(record.tenant).ran(record, this.#options.clock.monotonic() - begunAt);
  }

  #lost(reason: string): void {
    this.fence(this.#runner.tokens(), `the node lost its lease: ${reason}`);
    this.#membership.lose();
    this.#options.log.error({ node: this.node, reason }, "lost its lease and aborted what it ran");
  }

  #putBackOrphans(held: readonly Held[]): void {
    const orphans = this.#orphans.check({
      held,
      knows: (token) => this.#runner.has(token) || this.#completer.has(token),
      exchanges: this.#dispatcher.exchanges,
    });
    for (const orphan of orphans) this.#completer.putBackOrphan(orphan, "not started: its claim got lost");
    if (orphans.length > 0) this.#dispatcher.wake();
  }

  #ifIdle(): void {
    if (this.#runner.size === 0) this.#onIdle?.();
  }

  async #idle(graceMs: number): Promise<void> {
    if (this.#runner.size === 0 || graceMs <= 0) return;
    this.#logWait(graceMs);
    await new Promise<void>((resolve) => {
      const timer = this.#options.clock.setTimer(graceMs, resolve);
      this.#onIdle = () => {
        timer.cancel();
        resolve();
      };
    });
    this.#onIdle = null;
  }

  #logWait(graceMs: number): void {
    const running = this.#runner.size;
    const tasks = running === 1 ? "1 running task" : `${running} running tasks`;
    const taskIds = this.#runner.taskIds(WAITED_FOR_SHOWN_MAX);
    this.#options.log.info({ running, taskIds }, `waiting up to ${graceMs / 1_000} s for ${tasks} to end`);
  }

  async #lastFlush(): Promise<void> {
    for (let tries = 1; this.#completer.size > 0; ) {
      try {
        await this.#dispatcher.tick();
      } catch (error) {
        if (tries++ === LAST_FLUSH_TRIES) {
          const ends = this.#completer.finishes;
          this.#options.log.error(
            { error, ends },
            "could not write down what ended; another start will run it again",
          );
          return;
        }
        await new Promise<void>((resolve) => this.#options.clock.setTimer(LAST_FLUSH_PAUSE_MS, resolve));
      }
    }
  }

  async #leave(): Promise<void> {
    try {
      await this.#membership.end();
    } catch (error) {
      this.#options.log.warn(
        { error, node: this.node },
        "could not sign off; others will notice after a lease",
      );
    }
  }
}
