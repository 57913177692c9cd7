import { pause } from "../clock/pause.ts";
import { within } from "../clock/within.ts";
import { RunMetrics } from "../metrics/run-metrics.ts";
import { isCritical } from "../model/priority.ts";
import { REPLACED } from "../model/run.ts";
import type { TaskRecord } from "../model/task-record.ts";
import { WORKER_LEASE_MS } from "../model/worker.ts";
import type { Service } from "../services/service.ts";
import { type SignalTable, wakeAt } from "../services/signal-table.ts";
import type { Held, InsertedTask, NewTask, StorageSignal } from "../storage/storage.ts";
import {
  createServices,
  type EngineEvents,
  type EngineOptions,
  type EngineServices,
} from "./engine-services.ts";
import { Orphans } from "./node/orphans.ts";
import type { TenantTask } from "./schedules/run-maker.ts";
import type { ScheduleRunner } from "./schedules/schedule-ticker.ts";
import type { AlonePhase } from "./work/alone-turns.ts";
import type { Attempt } from "./work/attempt.ts";
import type { DependencyReader } from "./work/dependency-results.ts";
import type { Intake } from "./work/intake.ts";
import { logFailure } from "./work/log-failure.ts";
import { MetricsByTenant } from "./work/metrics-by-tenant.ts";
import type { RunnerOptions } from "./work/runner.ts";
import type { RunningMemory } from "./work/running-bytes.ts";
import type { WorkerAttempts } from "./workers/worker-attempts.ts";
import type { WorkerDispatcher } from "./workers/worker-dispatcher.ts";
import type { WorkerRecords } from "./workers/worker-records.ts";
import type { WorkerSignals } from "./workers/worker-signals.ts";
import type { WorkerWatch } from "./workers/worker-watch.ts";

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

/** When an attempt of a worker takes too long, as far as its task says. */
function dueAtOf({ spec: { timeoutMs }, deadline }: TaskRecord, assignedAt: number): number {
  return Math.min(
    timeoutMs === null ? Number.POSITIVE_INFINITY : assignedAt + timeoutMs,
    deadline ?? Number.POSITIVE_INFINITY,
    assignedAt + WORKER_LEASE_MS.default,
  );
}

export interface WorkerServices {
  readonly dispatcher: WorkerDispatcher;
  readonly watch: WorkerWatch;
  readonly attempts: WorkerAttempts;
  readonly records: WorkerRecords;
  readonly signals: WorkerSignals;
  readonly dependencies: DependencyReader;
}

/** The services that move tasks. Two tables say which of them wake: at what they report to each other, and at signals. */
export class Engine {
  readonly metrics = new MetricsByTenant();
  readonly runMetrics = new RunMetrics();
  readonly #options: EngineOptions;
  readonly #services: EngineServices;
  readonly #orphans = new Orphans();
  #started = false;
  #onIdle: (() => void) | null = null;

  /** What a service reports → what the others do. */
  readonly #on: EngineEvents = {
    memoryFreed: () => this.#services.dispatcher.wakeAll(),
    tasksSent: (tasks) => this.#wakeFor(tasks),
    tasksInserted: (tasks, answers, claimedIn) => this.#inserted(tasks, answers, claimedIn),
    attemptEnded: (attempt, outcome) => this.#ended(attempt, outcome),
    attemptFenced: (attempt) => this.#fenced(attempt),
    attemptProgressed: (attempt, data) => {
      this.#services.completer.report(attempt, data);
      this.#services.dispatcher.wake();
    },
    retryScheduled: (runAt) => this.#services.timekeeper.expect(runAt),
    tasksPromoted: () => this.#wakeAll(),
    tasksEnded: () => this.#options.onEnded?.(),
    runsReplaced: (tasks) => this.#replaced(tasks),
    tasksRescued: () => {
      this.#wakeAll();
      this.#services.dispatcher.lookForAlone();
    },
    bulkCancelled: (tenant, tasks) => this.#cancelled(tasks.map((task) => ({ ...task, tenant }))),
    leasesTakenOver: (tokens) => this.fence(tokens, "its lease was taken over"),
    leasesRenewed: (held) => this.#putBackOrphans(held),
    nodeLost: (reason) => this.#lost(reason),
    workerAssigned: (worker, assigned, secrets) => {
      this.#services.workerAttempts.assigned(worker, assigned, secrets);
      for (const { task, assignedAt } of assigned)
        this.#services.workerWatch.expect(dueAtOf(task, assignedAt));
    },
    workerPutBack: (tokens) => this.#services.workerAttempts.fenced(tokens),
  };

  /** A signal of the storage → which services wake. */
  readonly #signals: SignalTable = {
    work: [() => this.#wakeAll()],
    due: [() => this.#services.timekeeper.wake(DUE_SIGNAL_MS)],
    schedules: [() => this.#services.scheduleTicker.schedulesChanged()],
    release: [() => this.#services.releaser.wake()],
    bulks: [() => this.#services.bulkWorker.wake()],
    events: [() => this.#services.rollupWriter.eventsAdded()],
    reconnected: [() => this.#services.heartbeat.wake(), () => this.#services.workerSignals.reconnected()],
  };

  constructor(options: EngineOptions) {
    this.#options = options;
    const { metrics, runMetrics } = this;
    this.#services = createServices({ ...options, metrics, runMetrics, on: this.#on });
  }

  get intake(): Intake {
    return this.#services.intake;
  }

  /** How many tasks run here right now. */
  get running(): number {
    return this.#services.runner.size;
  }

  /** How many slots of a lane are taken here; null: this process does not run the lane. */
  laneLoad(lane: string): { readonly running: number; readonly concurrency: number } | null {
    return this.#services.slots.load(lane);
  }

  /** How many bytes the tasks that run here hold, and how many they may; `max` 0: any number. */
  get memory(): RunningMemory {
    return this.#services.memory;
  }

  /** Whether this process runs one task alone, or is about to, and so starts no others. */
  get alonePhase(): AlonePhase {
    return this.#services.dispatcher.alonePhase;
  }

  /** For code that creates, changes or runs schedules. */
  get scheduleTicker(): ScheduleRunner {
    return this.#services.scheduleTicker;
  }

  /** What workers ask of this node. */
  get workers(): WorkerServices {
    const { workerDispatcher, workerWatch, workerAttempts, workerRecords, workerSignals, dependencies } =
      this.#services;
    return {
      dispatcher: workerDispatcher,
      watch: workerWatch,
      attempts: workerAttempts,
      records: workerRecords,
      signals: workerSignals,
      dependencies,
    };
  }

  get node(): string {
    return this.#services.membership.node;
  }

  async start(): Promise<void> {
    const { membership, dispatcher, heartbeat, rescuer, logs, workerDispatcher } = this.#services;
    await membership.begin({ dispatcher, heartbeat, rescuer });
    this.#started = true;
    // On an exclusive storage no other node can take over tasks, so there is no lease to renew.
    if (!this.#options.storage.capabilities.exclusive) heartbeat.start();
    const others = [membership, dispatcher, rescuer, logs, workerDispatcher];
    for (const service of [...others, ...this.#upkeep(), ...this.#watches()]) service.start();
  }

  /** In a process that runs no tasks: workers report on the attempts that they hold, as they do after a restart. */
  startForWorkers(): void {
    const { logs, workerDispatcher, workerWatch } = this.#services;
    for (const service of [logs, workerDispatcher, workerWatch]) service.start();
  }

  /** From now on fires no schedules. Call it before a drain. */
  stopFiring(): void {
    this.#services.scheduleTicker.closeDown();
  }

  /** Starts no more tasks, gives running ones `graceMs` to end, then interrupts them. Writes everything before it resolves. */
  async drain(graceMs: number): Promise<void> {
    this.stopFiring();
    if (this.#started) this.#closeDown();
    await this.intake.flush();
    const wasStarted = this.#started;
    this.#started = false;
    await stopAll(this.#upkeep());
    await this.#idle(graceMs);
    await stopAll(this.#watches());
    this.#services.runner.interruptAll("interrupted by shutdown");
    await this.#services.dispatcher.stop();
    await this.#services.workerDispatcher.stop();
    await this.#lastFlush();
    await this.#services.logs.close();
    if (!wasStarted) return;
    await Promise.all([
      this.#services.heartbeat.stop(),
      this.#services.membership.stop(),
      this.#services.rescuer.stop(),
    ]);
    await this.#leave();
    this.#services.runner.close();
  }

  /** The settings have changed: tasks that they allow start at once, and data past the new retention is deleted. */
  settingsChanged(): void {
    this.#services.slots.configure(this.#options.concurrency(), this.#options.maxLaneShare());
    this.#services.membership.changed();
    this.#services.dispatcher.wakeAll();
    this.#services.pruner.wake();
  }

  /** The abilities of this process have changed. */
  abilitiesChanged(): void {
    this.#services.membership.changed();
  }

  /** Stops attempts that lost their lease. Returns those that ran here. */
  fence(tokens: readonly number[], reason: string): readonly Attempt[] {
    this.#services.dispatcher.fenced(tokens);
    return this.#services.runner.fence(tokens, reason);
  }

  /** A task was returned to the queue. */
  wakeFor(task: InsertedTask): void {
    this.#wakeAll();
    this.#expect(task);
  }

  /**
   * The storage was restored to an earlier state. The heartbeat, which a reconnect wakes, finds out which attempts the storage
   * no longer has, or that it does not know this node.
   */
  restored(): void {
    this.#services.membership.restored();
  }

  onSignal(signal: StorageSignal): void {
    const { dispatcher, workerDispatcher, workerAttempts, workerSignals } = this.#services;
    if (signal.kind === "workers") {
      workerSignals.changed(signal.ids);
    } else if (signal.kind === "fenced") {
      const { tokens, reason } = signal;
      workerAttempts.fenced(tokens);
      workerSignals.fenced(tokens);
      if (reason === "preempted") this.#preempt(tokens);
      else this.fence(tokens, "cancelled");
    } else if (signal.kind === "work" && signal.lanes !== undefined) {
      dispatcher.wakeLanes(signal.lanes);
      workerDispatcher.wakeAll();
    } else {
      wakeAt(this.#signals, signal);
    }
  }

  /** What a drain stops at once: it fires schedules, or can wait for the next start. */
  #upkeep(): Service[] {
    const { releaser, pruner, recounter, rewinder, scheduleTicker, bulkWorker, rollupWriter } =
      this.#services;
    return [scheduleTicker, releaser, pruner, recounter, rewinder, bulkWorker, rollupWriter];
  }

  /**
   * What goes on while a drain waits for running tasks, as there may be no other node: deadlines of waiting tasks pass, and workers
   * give signs of life.
   */
  #watches(): Service[] {
    const { timekeeper, workerWatch } = this.#services;
    return [timekeeper, workerWatch];
  }

  #inserted(
    tasks: readonly NewTask[],
    answers: readonly InsertedTask[],
    claimedIn: ReadonlySet<string> = new Set(),
  ): void {
    for (const [index, { rejection, repeats }] of answers.entries()) {
      const task = tasks[index];
      if (task !== undefined && repeats === null) {
        this.metrics.of(task.tenant).submitted(task, { rejected: rejection !== null });
      }
    }
    this.#services.dispatcher.reserve(
      tasks.filter(({ priority }) => isCritical(priority)).map(({ lane }) => lane),
    );
    this.#wakeFor(tasks, claimedIn);
    for (const answer of answers) this.#expect(answer);
  }

  #wakeFor(tasks: readonly NewTask[], claimedIn: ReadonlySet<string> = new Set()): void {
    const lanes = new Set(tasks.map(({ lane }) => lane));
    this.#services.dispatcher.wakeLanes([...lanes].filter((lane) => !claimedIn.has(lane)));
    this.#services.workerDispatcher.wakeFor(tasks.map(({ agent }) => agent));
    if (tasks.some(({ priority }) => isCritical(priority))) this.#services.workerWatch.expectCritical();
  }

  #expect({ runAt, deadline, unserved }: InsertedTask): void {
    if (unserved) this.#services.timekeeper.expectUnserved();
    const due = Math.min(runAt ?? Number.POSITIVE_INFINITY, deadline ?? Number.POSITIVE_INFINITY);
    if (due !== Number.POSITIVE_INFINITY) this.#services.timekeeper.expect(due);
  }

  /** Newer runs of their schedules replaced these tasks. */
  #replaced(tasks: readonly TenantTask[]): void {
    this.fence(
      tasks.flatMap(({ token }) => token ?? []),
      REPLACED,
    );
    this.#cancelled(tasks);
  }

  #cancelled(tasks: readonly TenantTask[]): void {
    for (const task of tasks) this.metrics.of(task.tenant).cancelled(task);
    if (tasks.length > 0) this.#on.tasksEnded();
  }

  #wakeAll(): void {
    this.#services.dispatcher.wakeAll();
    this.#services.workerDispatcher.wakeAll();
  }

  /** Starts no more tasks, and registers that this node has no slots any more. */
  #closeDown(): void {
    this.#services.dispatcher.closeDown();
    this.#services.workerDispatcher.closeDown();
    this.#services.membership.changed();
  }

  /** The storage has already returned these tasks to the queue, and the critical task waits for the slot: nothing to write. */
  #preempt(tokens: readonly number[]): void {
    for (const { record } of this.fence(tokens, PREEMPTED)) {
      this.metrics.of(record.tenant).preempted(record);
      this.#services.dispatcher.reserve([record.lane]);
    }
  }

  #ended(attempt: Attempt, outcome: Parameters<RunnerOptions["onOutcome"]>[1]): void {
    const { dispatcher, membership, completer } = this.#services;
    const ranMs = this.#ran(attempt);
    if (outcome.kind === "not_executed") {
      dispatcher.notExecuted(attempt.record.lane);
      membership.abilitiesDoubted();
    }
    logFailure(attempt, completer.finish(attempt, outcome));
    dispatcher.ended(attempt.record, ranMs);
    this.#services.workerDispatcher.slotFreed();
    this.#ifIdle();
  }

  #fenced(attempt: Attempt): void {
    this.#ran(attempt);
    this.#services.slots.freed(attempt.record);
    this.#services.completer.drop(attempt);
    this.#services.dispatcher.wakeAll();
    this.#ifIdle();
  }

  /** Returns how long it ran. */
  #ran({ record, begunAt }: Attempt): number {
    const ms = this.#options.clock.monotonic() - begunAt;
    this.metrics.of(record.tenant).ran(record, ms);
    return ms;
  }

  #lost(reason: string): void {
    const { runner, dispatcher } = this.#services;
    this.fence([...runner.tokens(), ...dispatcher.aheadTokens], `the node lost its lease: ${reason}`);
    this.#services.membership.lose();
    this.#options.log.error({ node: this.node, reason }, "lost its lease and aborted its running tasks");
  }

  #putBackOrphans(held: readonly Held[]): void {
    const { runner, completer, dispatcher } = this.#services;
    const orphans = this.#orphans.check({
      held,
      knows: (token) => runner.has(token) || completer.has(token) || dispatcher.keeps(token),
      exchanges: dispatcher.exchanges,
    });
    for (const orphan of orphans) completer.putBackOrphan(orphan, "not started: its claim got lost");
    if (orphans.length > 0) dispatcher.wake();
  }

  #ifIdle(): void {
    if (this.#services.runner.size === 0) this.#onIdle?.();
  }

  async #idle(graceMs: number): Promise<void> {
    if (this.#services.runner.size === 0 || graceMs <= 0) return;
    this.#logWait(graceMs);
    const idle = Promise.withResolvers<void>();
    this.#onIdle = idle.resolve;
    await within({
      clock: this.#options.clock,
      ms: graceMs,
      work: idle.promise,
      onLate: () => undefined,
    });
    this.#onIdle = null;
  }

  #logWait(graceMs: number): void {
    const running = this.#services.runner.size;
    const tasks = running === 1 ? "1 running task" : `${running} running tasks`;
    const taskIds = this.#services.runner.taskIds(WAITED_FOR_SHOWN_MAX);
    this.#options.log.info({ running, taskIds }, `waiting up to ${graceMs / 1_000} s for ${tasks} to end`);
  }

  async #lastFlush(): Promise<void> {
    for (let tries = 1; this.#services.completer.size > 0 || !this.#services.dispatcher.flushed; ) {
      try {
        await this.#services.dispatcher.flush();
      } catch (error) {
        if (tries++ === LAST_FLUSH_TRIES) {
          const ends = this.#services.completer.finishes;
          this.#options.log.error(
            { error, ends },
            "could not store the outcomes of some tasks; they run again after the next start",
          );
          return;
        }
        await pause(this.#options.clock, LAST_FLUSH_PAUSE_MS);
      }
    }
  }

  async #leave(): Promise<void> {
    try {
      await this.#services.membership.end();
    } catch (error) {
      this.#options.log.warn(
        { error, node: this.node },
        "could not unregister this node; other nodes notice it after a lease",
      );
    }
  }
}

async function stopAll(services: readonly Service[]): Promise<void> {
  await Promise.all(services.map((service) => service.stop()));
}
