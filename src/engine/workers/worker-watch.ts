import { settle } from "../../model/outcome.ts";
import { WORKER_LOST } from "../../model/worker.ts";
import { Service, type ServiceOptions } from "../../services/service.ts";
import type { OverdueAttempt, Storage, WorkerWatch as Watched } from "../../storage/storage.ts";
import type { MetricsByTenant } from "../work/metrics-by-tenant.ts";
import type { WorkerDispatcher } from "./worker-dispatcher.ts";
import type { WorkerRecords } from "./worker-records.ts";

/**
 * Signs of life are written together: a third of the shortest lease apart, within these bounds. While many workers only wait,
 * that is one transaction in five seconds.
 */
const SIGNS_EVERY_MS = { min: 1_000, max: 5_000 } as const;
const LOOK_EVERY_MS = { min: 250, max: 5_000 } as const;
/** How often a node without workers looks whether other nodes have some. On an exclusive storage there are no others. */
const IDLE_LOOK_MS = { shared: 30_000, exclusive: 600_000 } as const;
/** Ended attempts are forgotten for this long after the last worker is gone. */
const FORGET_MS = 120_000;
const PRUNE_EVERY_MS = 30_000;
/** How many critical tasks one check looks at. */
const CRITICALS_MAX = 100;
/** Of how many tenants the lost workers are counted, as of their tasks. */
const TENANTS_KEPT_MAX = 1_000;
/** Attempts taken back or ended in one transaction. */
const SLICE = 200;

export interface WorkerWatchOptions extends ServiceOptions {
  readonly storage: Storage;
  readonly storageNow: () => number;
  readonly dispatcher: WorkerDispatcher;
  readonly records: WorkerRecords;
  readonly metrics: MetricsByTenant;
  /** How often a worker may be lost with a task before the task fails. */
  readonly maxLost: () => number;
  readonly onRequeued: () => void;
  readonly onFailed: () => void;
}

interface Renewal {
  readonly at: number;
  /** When it was last stored that the worker asks for tasks. */
  readonly polledAt: number;
}

interface Sighting {
  readonly beat: number;
  /** By this node's monotonic clock. */
  readonly since: number;
}

/**
 * Keeps workers alive that give signs of life to this node, and takes back the attempts of those that are gone. Ends attempts
 * that exceed their timeout or their task's deadline: any node does, whichever assigned them.
 */
export class WorkerWatch extends Service<WorkerWatchOptions> {
  readonly name = "worker watch";
  /** Workers with signs that are not written yet, and whether they asked for tasks. */
  readonly #signs = new Map<string, boolean>();
  /** When each worker was last renewed here, and last as one that asks for tasks, by the monotonic clock. */
  readonly #renewed = new Map<string, Renewal>();
  #seen = new Map<string, Sighting>();
  /** Workers that held attempts when this node last looked. */
  #busy: ReadonlySet<string> = new Set();
  #hasCritical = false;
  #leaseMinMs = Number.POSITIVE_INFINITY;
  /** The shortest lease of the workers that registered or gave a sign here since the last look began. */
  #leaseSinceLookMs = Number.POSITIVE_INFINITY;
  #signedAt = Number.NEGATIVE_INFINITY;
  #lookedAt = Number.NEGATIVE_INFINITY;
  /** When there last was a worker, by the monotonic clock. */
  #knownAt = Number.NEGATIVE_INFINITY;
  #prunedAt: number;
  /** How many workers of each tenant this node found lost. */
  readonly #lost = new Map<string, number>();
  /** When an attempt is overdue next, by the storage's clock; Infinity: none is held. */
  #dueAt = Number.POSITIVE_INFINITY;

  constructor(options: WorkerWatchOptions) {
    super(options);
    this.#prunedAt = this.clock.monotonic();
  }

  /** A worker gave a sign of life. `polls`: it asked for tasks. */
  sign({ id: worker, leaseMs }: SigningWorker, { polls }: { polls: boolean }): void {
    this.#keepTo(leaseMs);
    if (this.#isRecent(worker, { polls })) return;
    this.#signs.set(worker, polls || (this.#signs.get(worker) ?? false));
    if (!this.#isKnown) this.#lookedAt = Number.NEGATIVE_INFINITY;
    this.wake(Math.max(this.#signedAt + this.#signsMs - this.clock.monotonic(), 0));
  }

  /** A worker registered, perhaps again. */
  registered({ isNew, leaseMs, ...about }: RegisteredHere): void {
    this.#keepTo(leaseMs);
    if (isNew) this.log.info(about, "a worker registered");
  }

  /** Signs are written often enough for this lease from now on: the next look, which learns of all leases, may be too late for it. */
  #keepTo(leaseMs: number): void {
    this.#leaseSinceLookMs = Math.min(this.#leaseSinceLookMs, leaseMs);
    if (leaseMs >= this.#leaseMinMs) return;
    this.#leaseMinMs = leaseMs;
    this.wake(this.#nextMs());
  }

  /** A worker got an attempt that will be overdue at this time of the storage's clock. */
  expect(dueAt: number): void {
    if (this.#dueAt <= dueAt) return;
    this.#dueAt = dueAt;
    this.wake(Math.max(dueAt - this.options.storageNow(), 0));
  }

  /** A critical task may wait for a slot of a worker. */
  expectCritical(): void {
    if (this.#seen.size === 0) return;
    this.#hasCritical = true;
    this.wake();
  }

  async tick(): Promise<number> {
    await this.#writeSigns();
    const lookMs = this.#lookMs();
    if (this.clock.monotonic() - this.#lookedAt >= lookMs) await this.#look();
    if (this.#dueAt <= this.options.storageNow()) await this.#endOverdue();
    if (this.#hasCritical) {
      this.#hasCritical = false;
      await this.options.storage.workers.preempt({ limit: CRITICALS_MAX });
    }
    await this.#pruneNowAndThen();
    return this.#nextMs();
  }

  async #writeSigns(): Promise<void> {
    const now = this.clock.monotonic();
    if (now - this.#signedAt < this.#signsMs) return;
    // An open poll is a sign of life as long as it waits. A worker that holds attempts must send heartbeats: the connection of a
    // poll stays open when its process stands still or is cut off.
    for (const worker of this.options.dispatcher.polls.workers()) {
      const isSign = !this.#busy.has(worker) && !this.#isRecent(worker, { polls: true });
      if (isSign || this.#signs.has(worker)) this.#signs.set(worker, true);
    }
    if (this.#signs.size === 0) return;
    this.#signedAt = now;
    const signs = [...this.#signs].map(([worker, polls]) => ({ worker, polls }));
    this.#signs.clear();
    const { unknown } = await this.options.storage.workers.renew({ signs });
    const isUnknown = new Set(unknown);
    for (const { worker, polls } of signs) {
      if (isUnknown.has(worker)) continue;
      const polledAt = polls ? now : (this.#renewed.get(worker)?.polledAt ?? Number.NEGATIVE_INFINITY);
      this.#renewed.set(worker, { at: now, polledAt });
    }
  }

  /** Whether a sign of life was stored a moment ago that says as much. */
  #isRecent(worker: string, { polls }: { polls: boolean }): boolean {
    const renewed = this.#renewed.get(worker);
    if (renewed === undefined) return false;
    return this.clock.monotonic() - (polls ? renewed.polledAt : renewed.at) < this.#signsMs / 2;
  }

  get #signsMs(): number {
    return Math.min(Math.max(this.#leaseMinMs / 3, SIGNS_EVERY_MS.min), SIGNS_EVERY_MS.max);
  }

  /** Whether there are workers, or were a moment ago. */
  get #isKnown(): boolean {
    return this.clock.monotonic() - this.#knownAt < FORGET_MS;
  }

  #lookMs(): number {
    if (!this.#isKnown)
      return this.options.storage.capabilities.exclusive ? IDLE_LOOK_MS.exclusive : IDLE_LOOK_MS.shared;
    return Math.min(Math.max(this.#leaseMinMs / 4, LOOK_EVERY_MS.min), LOOK_EVERY_MS.max);
  }

  /** Finds workers without a sign of life for a whole lease, as this node saw it. */
  async #look(): Promise<void> {
    const now = this.clock.monotonic();
    this.#lookedAt = now;
    this.#leaseSinceLookMs = Number.POSITIVE_INFINITY;
    const { workers, any, nextDueAt } = await this.#watched();
    this.options.dispatcher.correctHeld(new Map(workers.map(({ worker, held }) => [worker, held])));
    await this.options.records.check(workers);
    if (any || nextDueAt !== null) this.#knownAt = now;
    const live = workers.filter(({ lost }) => !lost);
    this.#leaseMinMs = Math.min(this.#leaseSinceLookMs, ...live.map(({ leaseMs }) => leaseMs));
    this.#seen = new Map(
      live.map(({ worker, beat }) => {
        const before = this.#seen.get(worker);
        return [worker, before?.beat === beat ? before : { beat, since: now }];
      }),
    );
    this.#busy = new Set(live.filter(({ held }) => held > 0).map(({ worker }) => worker));
    this.#hasCritical = this.#busy.size > 0;
    for (const worker of this.#renewed.keys()) if (!this.#seen.has(worker)) this.#renewed.delete(worker);
    for (const each of workers) {
      const since = this.#seen.get(each.worker)?.since ?? now;
      if (each.lost ? each.held > 0 : now - since >= each.leaseMs) await this.#lose(each);
    }
  }

  async #lose(worker: Watched["workers"][number]): Promise<void> {
    const { storage, dispatcher, onRequeued } = this.options;
    if (!worker.lost && (await storage.workers.markLost(worker)) === null) return;
    // A process that stands still would get its tasks again by a poll that it left open.
    dispatcher.polls.endOf(worker.worker, "gone");
    const { requeued, failed } = await this.takeBackAll(worker.worker, { counted: true, error: WORKER_LOST });
    const { tenant, name } = worker;
    const about = { worker: worker.worker, name, tenant, requeued: requeued.length, failed: failed.length };
    if (!worker.lost) {
      this.#countLost(tenant);
      this.log.warn(about, "lost a worker");
    }
    onRequeued();
  }

  /** How many workers of a tenant this node found lost. */
  lostOf(tenant: string): number {
    return this.#lost.get(tenant) ?? 0;
  }

  #countLost(tenant: string): void {
    if (this.#lost.size >= TENANTS_KEPT_MAX && !this.#lost.has(tenant)) return;
    this.#lost.set(tenant, this.lostOf(tenant) + 1);
  }

  /** Takes back everything that a worker holds. */
  async takeBackAll(worker: string, { counted, error }: { counted: boolean; error: string }): Promise<Taken> {
    const { storage, maxLost } = this.options;
    const total: Taken = { requeued: [], failed: [] };
    for (let taken = SLICE; taken === SLICE; ) {
      const back = await storage.workers.takeBack({
        worker,
        limit: SLICE,
        counted,
        maxLost: maxLost(),
        error,
      });
      taken = back.requeued.length + back.failed.length;
      total.requeued.push(...back.requeued);
      total.failed.push(...back.failed);
      this.#taken(worker, back);
    }
    return total;
  }

  /** The same for some of its attempts. */
  async takeBack(
    worker: string,
    attempts: readonly { readonly seq: number; readonly token: number }[],
    end: { counted: boolean; recorded?: boolean; error: string },
  ): Promise<Taken> {
    if (attempts.length === 0) return { requeued: [], failed: [] };
    const { storage, maxLost } = this.options;
    const held = attempts.map(({ seq, token }) => ({ seq, token }));
    const back = await storage.workers.takeBack({
      worker,
      attempts: held,
      limit: held.length,
      maxLost: maxLost(),
      ...end,
    });
    this.#taken(worker, back);
    return { requeued: [...back.requeued], failed: [...back.failed] };
  }

  #taken(worker: string, back: { requeued: readonly TakenTask[]; failed: readonly TakenTask[] }): void {
    const { metrics, dispatcher, onRequeued, onFailed } = this.options;
    metrics.lost(back);
    dispatcher.freed(worker, back.requeued.length + back.failed.length);
    if (back.requeued.length > 0) onRequeued();
    if (back.failed.length > 0) onFailed();
  }

  async #endOverdue(): Promise<void> {
    const { storage } = this.options;
    const overdue = await storage.workers.overdue({ limit: SLICE });
    const unnamed = Map.groupBy(
      overdue.filter(({ reason }) => reason === "unnamed"),
      ({ worker }) => worker,
    );
    for (const [worker, attempts] of unnamed) {
      await this.takeBack(worker, attempts, { counted: true, error: WORKER_LOST });
    }
    await Promise.all(overdue.filter(({ reason }) => reason !== "unnamed").map((each) => this.#end(each)));
    await this.#watched();
  }

  /** The workers as they are now, and when an attempt is overdue next. */
  async #watched(): Promise<Watched> {
    const before = this.#dueAt;
    // Reset before the query, which may not see an attempt that `expect` is called for meanwhile.
    this.#dueAt = Number.POSITIVE_INFINITY;
    try {
      const watched = await this.options.storage.workers.watch();
      this.#dueAt = Math.min(this.#dueAt, watched.nextDueAt ?? Number.POSITIVE_INFINITY);
      return watched;
    } catch (error) {
      this.#dueAt = Math.min(this.#dueAt, before);
      throw error;
    }
  }

  async #end({ worker, seq, token, reason, task }: OverdueAttempt): Promise<void> {
    const { dispatcher, storageNow } = this.options;
    const { retryPolicy, timeoutMs } = task.spec;
    const outcome =
      reason === "deadline"
        ? ({ kind: "deadline", error: "deadline exceeded" } as const)
        : ({ kind: "failed", error: `timed out after ${timeoutMs} ms`, permanent: false } as const);
    const settlement = settle(outcome, {
      retryPolicy,
      retryCount: task.retryCount,
      deadline: task.deadline,
      now: storageNow(),
      random: this.random,
    });
    await dispatcher.finish({ finish: { worker, seq, token, settlement, recorded: false }, record: task });
  }

  async #pruneNowAndThen(): Promise<void> {
    const now = this.clock.monotonic();
    if (now - this.#prunedAt < PRUNE_EVERY_MS || !this.#isKnown) return;
    this.#prunedAt = now;
    await this.options.storage.workers.prune();
  }

  #nextMs(): number {
    const now = this.clock.monotonic();
    const waits = [
      this.#lookedAt + this.#lookMs() - now,
      this.#isKnown ? this.#prunedAt + PRUNE_EVERY_MS - now : Number.POSITIVE_INFINITY,
      this.#dueAt - this.options.storageNow(),
      this.#signs.size > 0 || this.options.dispatcher.polls.size > 0
        ? this.#signedAt + this.#signsMs - now
        : Number.POSITIVE_INFINITY,
    ];
    return Math.max(Math.min(...waits), 1);
  }
}

interface SigningWorker {
  readonly id: string;
  readonly leaseMs: number;
}

interface RegisteredHere {
  readonly worker: string;
  readonly name: string;
  readonly tenant: string;
  readonly leaseMs: number;
  readonly isNew: boolean;
}

type TakenTask = {
  readonly id: string;
  readonly tenant: string;
  readonly agent: string;
  readonly lane: string;
};

interface Taken {
  readonly requeued: TakenTask[];
  readonly failed: TakenTask[];
}
