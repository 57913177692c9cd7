import { setImmediate as nextTurn } from "node:timers/promises";
import { RotaError } from "../../model/errors.ts";
import type { TaskRecord } from "../../model/task-record.ts";
import { isTerminal, type TaskState } from "../../model/task-state.ts";
import { Service, type ServiceOptions } from "../../services/service.ts";
import { isStorageAway } from "../../services/storage-away.ts";
import {
  type AttemptSecret,
  CLAIMED_PER_POLL_MAX,
  type Held,
  type Storage,
  type WorkerExchange,
  type WorkerFinish,
} from "../../storage/storage.ts";
import type { MetricsByTenant } from "../work/metrics-by-tenant.ts";
import { type Poll, type PollAnswer, type PollRequest, WorkerPolls } from "./worker-polls.ts";

/** Ends, and as many progress reports, written in one transaction. */
const FINISHES_MAX = 200;
/** Tasks that one exchange assigns at most, to all its polls together, and of how many bytes about. It holds all in memory at once. */
const ASSIGNED_MAX = 500;
const ASSIGNED_BYTES = 64 * 1_048_576;
/** Polls asked for in one transaction. */
const POLLS_ASKED_MAX = 200;
/** How many turns of the event loop an exchange waits for more ends at most, as long as each turn brings some. */
const GATHER_TURNS = 10;
/** Signals can be lost: waiting polls ask at least this often, as nodes do. */
const ASK_EVERY_MS = 5_000;
/** While no poll waits there is nothing to do. */
const IDLE_MS = 600_000;

export interface WorkerDispatcherOptions extends ServiceOptions {
  readonly storage: Storage;
  readonly metrics: MetricsByTenant;
  readonly tenantPollsMax: () => number;
  /** Another number whenever agents have changed. */
  readonly agentsVersion: () => number;
  /** Called when a retry was written that is due at this time of the storage's clock. */
  readonly onRetryAt: (runAt: number) => void;
  /** Called when tasks ended that may have a callback URL. */
  readonly onEnded: () => void;
  /** Called with attempts that were assigned to workers here. */
  readonly onAssigned: (
    worker: string,
    assigned: PollAnswer["assigned"],
    secrets: readonly AttemptSecret[],
  ) => void;
  /** Called with attempts that went back because their worker did not get them. */
  readonly onPutBack: (tokens: readonly number[]) => void;
}

/** A response to a claim that is on its way to its worker. */
export interface Delivery {
  /** The response has no room for the others. */
  hasOnly(attempts: PollAnswer["assigned"]): void;
  /**
   * The response was sent, or could not be sent. Then its attempts go back, but not if the worker has repeated the claim: it gets them
   * by another response. Calling it again does nothing.
   */
  end(result: { readonly sent: boolean }): Promise<void>;
}

/** An end of an attempt that waits to be written. */
export interface WorkerEnd {
  readonly finish: WorkerFinish;
  readonly record: Pick<TaskRecord, "tenant" | "agent" | "lane" | "callbackUrl">;
}

interface Ending extends WorkerEnd {
  /** With the state of the task; null: the attempt was no longer held. */
  readonly resolve: (state: TaskState | null) => void;
  readonly reject: (error: unknown) => void;
}

export type WorkerProgress = Held & { readonly worker: string; readonly progress: unknown };

/** The latest progress of an attempt, and when it is written. */
interface PendingProgress {
  readonly report: WorkerProgress;
  readonly written: PromiseWithResolvers<void>;
}

/**
 * Ends attempts of workers and assigns tasks to the polls that wait here: all that is pending in one transaction, one after the
 * other. Without ends and signals it asks for nothing.
 */
export class WorkerDispatcher extends Service<WorkerDispatcherOptions> {
  readonly name = "worker dispatcher";
  readonly polls: WorkerPolls;
  #ends: Ending[] = [];
  /** The latest report of each attempt that waits to be written, by fencing token. */
  readonly #progress = new Map<number, PendingProgress>();
  /** Polls that have not asked yet, and ask at once. */
  readonly #new = new Set<Poll>();
  /** Polls that have not asked yet, but others with the same agents found nothing: they ask when the others ask again. */
  readonly #joined = new Set<Poll>();
  /** How many tasks the next exchange may assign: fewer if those of the last one were large. */
  #assignedMax = CLAIMED_PER_POLL_MAX;
  /** The newest response to each claim with attempts that is on its way. */
  readonly #deliveries = new Map<string, Delivery>();
  /** Polls that should have asked already, but the last exchange had enough others. */
  #postponed: readonly Poll[] = [];
  /** The agents that may have ready tasks; null: any. */
  #wanted: Set<string> | null = new Set();
  /** Whether limits held back tasks at the last exchange. */
  #isHeldBack = false;
  #askedAt = 0;
  #isClosed = false;
  #isStopped = false;
  /** How many attempts each worker holds, as far as this node knows. */
  readonly #held = new Map<string, number>();

  constructor(options: WorkerDispatcherOptions) {
    super(options);
    this.polls = new WorkerPolls({
      clock: this.clock,
      random: this.random,
      tenantMax: options.tenantPollsMax,
      agentsVersion: options.agentsVersion,
      // Nodes of an earlier version, which may share a storage with this one, do not know such tokens.
      timedTokens: options.storage.capabilities.exclusive,
      heldBy: (worker) => this.#held.get(worker) ?? 0,
    });
  }

  /** Waits for tasks. Throws `too_many_polls`. */
  async poll(request: PollRequest): Promise<PollAnswer> {
    if (this.#isClosed) return { assigned: [], empty: "draining" };
    const poll = this.polls.add(request);
    const joins = request.waitMs > ASK_EVERY_MS && this.polls.hasIdle(poll);
    const asksLater = joins ? this.#joined : this.#new;
    asksLater.add(poll);
    this.wake(joins ? Math.max(this.#askedAt + ASK_EVERY_MS - this.clock.monotonic(), 0) : 0);
    const answer = await poll.answer;
    asksLater.delete(poll);
    return answer;
  }

  /** Ends an attempt. Resolves once that is stored for good, with the state of the task; null: it was no longer held. */
  finish(end: WorkerEnd): Promise<TaskState | null> {
    if (this.#isStopped)
      return Promise.reject(
        new RotaError("draining", "this node has stopped: report the end to another node"),
      );
    const { promise, resolve, reject } = Promise.withResolvers<TaskState | null>();
    this.#ends.push({ ...end, resolve, reject });
    this.wake();
    return promise;
  }

  /** Of several reports of an attempt that wait to be written the last one counts. */
  report(report: WorkerProgress): Promise<void> {
    if (this.#isStopped) return Promise.resolve();
    const written = this.#progress.get(report.token)?.written ?? Promise.withResolvers<void>();
    this.#progress.set(report.token, { report, written });
    this.wake();
    return written.promise;
  }

  /** Tasks of these agents may be ready. */
  wakeFor(agents: Iterable<string>): void {
    if (this.polls.size === 0) return;
    if (this.#wanted !== null) for (const agent of agents) this.#wanted.add(agent);
    this.wake();
  }

  /** Tasks of any agent may be ready. */
  wakeAll(): void {
    if (this.polls.size === 0) return;
    this.#wanted = null;
    this.wake();
  }

  /** An attempt ended on this node: a task that limits held back may start. */
  slotFreed(): void {
    if (this.#isHeldBack) this.wakeAll();
  }

  /** A worker no longer holds attempts that it got here. */
  freed(worker: string, count: number): void {
    const left = (this.#held.get(worker) ?? 0) - count;
    if (left > 0) this.#held.set(worker, left);
    else this.#held.delete(worker);
  }

  /** How many attempts each worker holds now. This node does not notice what ends elsewhere, or by a cancel. */
  correctHeld(held: ReadonlyMap<string, number>): void {
    this.#held.clear();
    for (const [worker, count] of held) if (count > 0) this.#held.set(worker, count);
  }

  /** From now on polls end empty. Ends are still written. */
  closeDown(): void {
    this.#isClosed = true;
    this.polls.endAll("draining");
  }

  /** Writes what is pending. */
  override async stop(): Promise<void> {
    this.closeDown();
    this.#isStopped = true;
    await super.stop();
    while (this.#ends.length + this.#progress.size > 0) await this.tick().catch(() => undefined);
  }

  async tick(): Promise<number> {
    await this.#gather();
    const ends = this.#takeEnds();
    // These ends make room for tasks that limits held back: the polls that wait for them come before new ones.
    if (ends.length > 0 && this.#isHeldBack) this.#wanted = null;
    const progress = this.#takeProgress();
    const wasHeldBack = this.#isHeldBack && this.#postponed.length > 0;
    const polls = this.#takePolls();
    if (ends.length + progress.length + polls.length > 0) await this.#exchange(ends, progress, polls);
    // This exchange asked for the rest of those of the last one.
    this.#isHeldBack ||= wasHeldBack;
    const waiting = this.#ends.length + this.#progress.size + this.#new.size + this.#postponed.length;
    if (waiting > 0 || this.#isWanted) return 0;
    return this.polls.size > 0 ? ASK_EVERY_MS : IDLE_MS;
  }

  /**
   * Busy workers ask again as soon as they have a response, so those that got one together come back together: half a millisecond
   * of waiting for the last of them doubles what an exchange writes. Tasks that were submitted do not wait for that.
   */
  async #gather(): Promise<void> {
    let before = 0;
    for (let turn = 0; turn < GATHER_TURNS && this.#ends.length > before; turn++) {
      before = this.#ends.length;
      await nextTurn();
    }
  }

  /** The ends that are written next, of each tenant in turn: many of one tenant do not delay those of another. */
  #takeEnds(): Ending[] {
    if (this.#ends.length <= FINISHES_MAX) return this.#ends.splice(0);
    const taken = takeInTurn(this.#ends, { max: FINISHES_MAX, tenantOf: ({ record }) => record.tenant });
    this.#ends = this.#ends.filter((end) => !taken.has(end));
    return [...taken];
  }

  #takeProgress(): PendingProgress[] {
    const taken = [...this.#progress.values()].slice(0, FINISHES_MAX);
    for (const { report } of taken) this.#progress.delete(report.token);
    return taken;
  }

  get #isWanted(): boolean {
    return this.polls.size > 0 && (this.#wanted === null || this.#wanted.size > 0);
  }

  #takePolls(): Poll[] {
    const isLate = this.clock.monotonic() - this.#askedAt >= ASK_EVERY_MS;
    const wanted = isLate ? null : this.#wanted;
    const woken = wanted !== null && wanted.size === 0 ? [] : this.polls.next(wanted);
    if (isLate) this.#askedAt = this.clock.monotonic();
    this.#wanted = new Set();
    const polls = new Set([...this.#postponed, ...woken, ...this.#new, ...(isLate ? this.#joined : [])]);
    for (const poll of polls) this.#joined.delete(poll);
    this.#new.clear();
    const open = [...polls].filter(({ isOver }) => !isOver);
    for (const poll of open) poll.isAsking = true;
    this.#postponed = [];
    if (open.length <= POLLS_ASKED_MAX) return open;
    const tenantOf = ({ request }: Poll) => request.worker.tenant;
    const taken = takeInTurn(open, { max: POLLS_ASKED_MAX, tenantOf });
    this.#postponed = open.filter((poll) => !taken.has(poll));
    return open.filter((poll) => taken.has(poll));
  }

  async #exchange(
    ends: readonly Ending[],
    progress: readonly PendingProgress[],
    polls: readonly Poll[],
  ): Promise<void> {
    const { storage } = this.options;
    let answer: WorkerExchange;
    const heldBy = ({ request }: Poll) => this.#held.get(request.worker.id) ?? 0;
    const share = this.#shareOf(polls.map((poll) => poll.wants(heldBy(poll))));
    try {
      answer = await storage.workers.exchange({
        finishes: ends.map(({ finish }) => finish),
        progress: progress.map(({ report }) => report),
        polls: polls.map((poll) => poll.ask(heldBy(poll), share)),
      });
    } catch (error) {
      for (const poll of polls) {
        this.polls.asked(poll);
        if (!poll.isOver) this.#new.add(poll);
      }
      for (const { written } of progress) written.resolve();
      const isShared = ends.length + progress.length + polls.length > 1;
      if (ends.length > 0 && isShared && !isStorageAway(error)) return this.#exchangeApart(ends);
      for (const { reject } of ends) reject(error);
      throw error;
    }
    this.#isHeldBack = answer.held;
    for (const { written } of progress) written.resolve();
    this.#limitNext(answer);
    this.#assign(polls, answer);
    this.#settle(ends, answer);
    this.options.metrics.expired(answer.expired);
    if (answer.expired.length > 0) this.options.onEnded();
  }

  /** Writes each end by itself: one that cannot be stored must not fail the others. Only its own caller gets its error. */
  async #exchangeApart(ends: readonly Ending[]): Promise<void> {
    for (const [index, end] of ends.entries()) {
      try {
        await this.#exchange([end], [], []);
      } catch (error) {
        if (!isStorageAway(error)) continue;
        for (const { reject } of ends.slice(index + 1)) reject(error);
        throw error;
      }
    }
  }

  /** How many tasks each poll may get from one exchange: equal shares, if they want too many together. */
  #shareOf(wants: readonly number[]): number {
    const wanted = wants.reduce((sum, each) => sum + each, 0);
    if (wanted <= this.#assignedMax) return CLAIMED_PER_POLL_MAX;
    return Math.max(Math.floor(this.#assignedMax / wants.length), 1);
  }

  /** The tasks of the next exchange are probably about as large as those of this one. */
  #limitNext({ claimed }: WorkerExchange): void {
    const assigned = claimed.flatMap((tasks) => tasks ?? []);
    const bytes = assigned.reduce((sum, each) => sum + each.bytes, 0);
    if (bytes > ASSIGNED_BYTES)
      this.#assignedMax = Math.max(Math.floor((assigned.length * ASSIGNED_BYTES) / bytes), 1);
    else if (2 * bytes <= ASSIGNED_BYTES && assigned.length > 0)
      this.#assignedMax = Math.min(2 * this.#assignedMax, ASSIGNED_MAX);
  }

  #assign(polls: readonly Poll[], { claimed }: WorkerExchange): void {
    const { onAssigned, metrics } = this.options;
    for (const [index, poll] of polls.entries()) {
      const assigned = claimed[index] ?? null;
      const { worker } = poll.request;
      if (assigned === null) {
        this.polls.end(poll, "gone");
      } else if (assigned.length > 0) {
        onAssigned(worker.id, assigned, poll.tokens);
        for (const { task } of assigned) metrics.of(task.tenant).dispatched(task);
        this.#held.set(worker.id, (this.#held.get(worker.id) ?? 0) + assigned.length);
        this.#deliver(poll, assigned);
        // There may be more for the other polls.
        this.wakeFor(assigned.map(({ task }) => task.agent));
      } else {
        this.polls.asked(poll);
      }
    }
  }

  /** A poll that ended meanwhile may have been replaced by a repeated claim, which gets the same attempts. */
  #deliver(poll: Poll, assigned: PollAnswer["assigned"]): void {
    const { worker, claimId } = poll.request;
    if (!poll.isOver) this.polls.give(poll, assigned);
    else if (!this.#passOn(worker.id, claimId, assigned)) void this.putBack(worker.id, assigned);
  }

  /** Whether the worker has repeated the claim, and gets these attempts by another response. */
  #passOn(worker: string, claimId: string, assigned: PollAnswer["assigned"]): boolean {
    if (this.#deliveries.has(`${worker} ${claimId}`)) return true;
    const repeated = this.polls.of(worker).find(({ request }) => request.claimId === claimId);
    // One that is about to ask will find them.
    if (repeated?.isAsking === false) this.polls.give(repeated, assigned);
    return repeated !== undefined;
  }

  /** A response to a claim is about to be sent, with these attempts. */
  deliver(worker: string, claimId: string, assigned: PollAnswer["assigned"]): Delivery {
    const key = `${worker} ${claimId}`;
    let attempts = assigned;
    const delivery: Delivery = {
      hasOnly: (fitting) => {
        attempts = fitting;
      },
      end: async ({ sent }) => {
        // Another response to the same claim was sent meanwhile, or is on its way.
        if (this.#deliveries.get(key) !== delivery) return;
        this.#deliveries.delete(key);
        if (sent || this.#passOn(worker, claimId, attempts)) return;
        await this.putBack(worker, attempts);
      },
    };
    this.#deliveries.set(key, delivery);
    return delivery;
  }

  /** The worker did not get these: the tasks go back at once, uncounted. Those that it has named it did get: they stay. */
  async putBack(worker: string, attempts: PollAnswer["assigned"]): Promise<void> {
    if (attempts.length === 0) return;
    try {
      const { requeued } = await this.options.storage.workers.takeBack({
        worker,
        attempts: attempts.map(({ token, task }) => ({ seq: task.seq, token })),
        limit: attempts.length,
        counted: false,
        error: "the response to its claim could not be sent",
      });
      this.freed(worker, requeued.length);
      const ids = new Set(requeued.map(({ id }) => id));
      this.options.onPutBack(attempts.filter(({ task }) => ids.has(task.id)).map(({ token }) => token));
    } catch (error) {
      this.log.warn({ error, worker }, "could not put tasks back that were not delivered; their lease ends");
    }
    this.wakeAll();
  }

  #settle(ends: readonly Ending[], answer: WorkerExchange): void {
    const { durable } = answer;
    if (durable === undefined) this.#settled(ends, answer);
    else
      durable.then(
        () => this.#settled(ends, answer),
        (error) => {
          for (const { reject } of ends) reject(error);
        },
      );
  }

  #settled(ends: readonly Ending[], { finished }: WorkerExchange): void {
    const { metrics, onRetryAt, onEnded } = this.options;
    const states = new Map(finished.map(({ token, state }) => [token, state]));
    let callsBack = false;
    for (const { finish, record, resolve } of ends) {
      const state = states.get(finish.token) ?? null;
      states.delete(finish.token);
      resolve(state);
      if (state === null) continue;
      this.freed(finish.worker, 1);
      metrics.of(record.tenant).ended(record, state);
      callsBack ||= record.callbackUrl !== null && isTerminal(state);
      if (finish.settlement.to === "delayed") onRetryAt(finish.settlement.runAt);
    }
    if (callsBack) onEnded();
    if (ends.length > 0) this.wakeAll();
  }
}

/** The first items of each tenant in turn. */
function takeInTurn<Item>(
  items: readonly Item[],
  { max, tenantOf }: { max: number; tenantOf: (item: Item) => string },
): Set<Item> {
  const ofTenants = [...Map.groupBy(items, tenantOf).values()];
  const taken = new Set<Item>();
  const count = Math.min(max, items.length);
  for (let round = 0; taken.size < count; round += 1) {
    for (const own of ofTenants) {
      const item = own[round];
      if (item !== undefined && taken.size < count) taken.add(item);
    }
  }
  return taken;
}
