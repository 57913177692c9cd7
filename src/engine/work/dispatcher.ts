import type { AgentName } from "../../model/agent.ts";
import { RotaError } from "../../model/errors.ts";
import { isTerminal } from "../../model/task-state.ts";
import { Service, type ServiceOptions } from "../../services/service.ts";
import { isStorageAway } from "../../services/storage-away.ts";
import type { ClaimedTask, FinishedAndClaimed, InsertClaim, Storage } from "../../storage/storage.ts";
import { AheadTasks } from "./ahead-tasks.ts";
import { type AlonePhase, AloneTurns } from "./alone-turns.ts";
import type { Begun } from "./begun-attempts.ts";
import type { Completed, Completer, Finish } from "./completer.ts";
import { afterFailure, FaultyEndSearch } from "./faulty-end-search.ts";
import type { Capacity, ClaimBounds, LaneClaim, LaneSlots, SlotHolder } from "./lane-slots.ts";
import { LINGER_MS, LookAhead } from "./look-ahead.ts";
import type { MetricsByTenant } from "./metrics-by-tenant.ts";
import type { Runner } from "./runner.ts";
import type { RunningBytes } from "./running-bytes.ts";
import { UnflushedEnds } from "./unflushed-ends.ts";

/** Signals can be lost: the dispatcher tries to claim from every lane at least this often. */
const POLL_MS = 5_000;
const STOPPING = "not started: its node was stopping";
const OUT_OF_MEMORY = "not started: the tasks that run in its process hold too much memory";
const OVER_SHARE = "not started: the tasks of its tenant hold their share of its process's memory";
const ALONE_FIRST = "not started: another task runs alone in its process";

export interface DispatcherOptions extends ServiceOptions {
  readonly storage: Storage;
  /** The id of the current membership. */
  readonly node: () => string;
  readonly slots: LaneSlots;
  readonly runner: Runner;
  readonly completer: Completer;
  readonly metrics: MetricsByTenant;
  /** Limits how much may be claimed. */
  readonly memory: RunningBytes;
  /** The storage's time. */
  readonly storageNow: () => number;
  /** Whether a caller of this process waits for tasks to end, or reads the log as it grows: then ends are written at once. */
  readonly isFollowed: () => boolean;
  /** Whether the end of a task of this agent can let tasks of other lanes start. */
  readonly spansLanes: (name: AgentName) => boolean;
  /** Called when a retry was written that is due at this time of the storage's clock. */
  readonly onRetryAt: (runAt: number) => void;
  /** Called when tasks ended that may have a callback URL. */
  readonly onEnded: () => void;
}

/**
 * Writes the ends of attempts and claims tasks to start, both in one transaction. Transactions do not overlap. If an exchange takes
 * long, short tasks are also claimed ahead, and begin when a slot becomes free.
 */
export class Dispatcher extends Service<DispatcherOptions> {
  readonly name = "dispatcher";
  #claiming = true;
  #closing = false;
  #begun = 0;
  #ended = 0;
  readonly #unflushed = new UnflushedEnds();
  #lookedAt: number;
  readonly #faultyEndSearch = new FaultyEndSearch();
  /** Attempts that lost their lease while an exchange was under way. */
  readonly #fencedEarly = new Set<number>();
  readonly #turns: AloneTurns;
  readonly #ahead: AheadTasks;
  readonly #lookAhead = new LookAhead();
  /** The lanes of ends that wait to be written, and until when they wait for others. */
  readonly #endedIn = new Set<string>();
  #lingersUntil = Number.POSITIVE_INFINITY;
  /** Resolves once the storage has answered the claim of an insert; null: no insert claims now. */
  #inserting: Promise<void> | null = null;

  constructor(options: DispatcherOptions) {
    super(options);
    this.#lookedAt = this.clock.monotonic();
    this.#turns = new AloneTurns(this.#lookedAt);
    this.#ahead = new AheadTasks({ ...options, run: (claimed) => this.#run(claimed) });
  }

  /** There may be work in these lanes. */
  wakeLanes(lanes: Iterable<string>): void {
    let free = false;
    for (const lane of lanes) free = this.options.slots.wake(lane) || free;
    if (free) this.wake();
  }

  /** There may be work in any lane. */
  wakeAll(): void {
    this.options.slots.wakeAll();
    this.wake();
  }

  /** From now on only writes ends, until `startClaiming` is called. */
  stopClaiming(): void {
    this.#claiming = false;
    this.#ahead.putBackAll(STOPPING);
  }

  /** From now on only writes ends, for good. */
  closeDown(): void {
    this.#closing = true;
    this.stopClaiming();
    this.wake();
  }

  get isClosing(): boolean {
    return this.#closing;
  }

  /** Whether a task runs alone here, or is about to. */
  get alonePhase(): AlonePhase {
    return this.#turns.phase;
  }

  /** The attempts of tasks that are held ahead. */
  get aheadTokens(): number[] {
    return this.#ahead.tokens;
  }

  /** How many tasks are held ahead. */
  get aheadSize(): number {
    return this.#ahead.size;
  }

  /**
   * Lets an insert of tasks in these lanes claim for the free slots of this node, in the same transaction. Null: no slots are free,
   * other work comes first, or the storage is so near that a claim of its own costs little.
   */
  claimWithInsert(lanes: ReadonlySet<string>): ClaimWithInsert | null {
    const { storage, node, slots, completer } = this.options;
    if (!storage.capabilities.claimsAhead || !this.#isOpen()) return null;
    if (this.#begun > this.#ended || completer.size + this.#ahead.begun.size > 0) return null;
    const bounds = this.#bounds();
    const claims = slots.claimsOfInsert(lanes, this.clock.monotonic(), bounds);
    if (claims.length === 0) return null;
    const answered = Promise.withResolvers<void>();
    this.#inserting = answered.promise;
    this.#fencedEarly.clear();
    this.#begun += 1;
    const settle = () => {
      this.#ended += 1;
      this.#inserting = null;
      answered.resolve();
    };
    const claimed = new Set<string>();
    const onClaimed = (answer: FinishedAndClaimed) => {
      this.#wroteDown([], answer);
      this.#begin(answer, claims, bounds);
      // Only now: if a task could not be begun, `end` settles.
      for (const { lane } of claims) claimed.add(lane);
      settle();
    };
    const end = () => {
      if (claimed.size > 0) return;
      slots.unanswered(claims);
      settle();
    };
    return { claim: { node: node(), claims, onClaimed }, lanes: claimed, end };
  }

  /** An attempt has ended. Its slot goes to the next task that is held ahead. */
  ended({ lane, tenant }: SlotHolder, ranMs: number): void {
    this.options.slots.ended({ lane, tenant });
    if (!this.options.storage.capabilities.claimsAhead) {
      this.wake();
      return;
    }
    const now = this.clock.monotonic();
    this.#lookAhead.ran(lane, ranMs);
    this.#endedIn.add(lane);
    this.#lingersUntil = Math.min(this.#lingersUntil, now + LINGER_MS);
    this.#ahead.begin([lane]);
    // While an exchange is under way, what comes after it is decided at its end.
    this.wake(this.#begun > this.#ended ? LINGER_MS : this.#lingersMs(now));
  }

  /** A critical task waits for slots of these lanes: no task that is held ahead gets one before the next claim. */
  reserve(lanes: Iterable<string>): void {
    for (const lane of lanes) this.options.slots.reserve(lane);
  }

  /** Called when a claimed task of this lane cannot be executed here. */
  notExecuted(lane: string): void {
    this.options.slots.rest(lane, this.clock.monotonic());
  }

  /** There may be a task that runs alone. */
  lookForAlone(): void {
    this.#turns.lookSoon();
    this.wake();
  }

  /** How many tasks of each lane this node runs at once: none once it closes down. */
  get serves(): Capacity {
    return this.#closing ? { slots: {}, perTenant: {} } : this.options.slots.capacity;
  }

  /**
   * These attempts lost their lease. Those that are held ahead are dropped. One that does not run here yet may be in a response
   * that is on its way: it is not started then.
   */
  fenced(tokens: readonly number[]): void {
    for (const token of tokens) if (this.#ahead.drop(token)) this.wakeAll();
    if (this.#begun > this.#ended) for (const token of tokens) this.#fencedEarly.add(token);
  }

  /** Whether the ends of all attempts so far are stored for good. */
  get flushed(): boolean {
    const { completer } = this.options;
    return this.#begun === this.#ended && this.#unflushed.size === 0 && completer.finishes === 0;
  }

  /** One tick, until its ends are stored for good. Throws if they may be lost: they are in the completer again. */
  async flush(): Promise<void> {
    if (!(await this.#unflushed.areKept(() => this.tick())))
      throw new RotaError("storage_unavailable", "the storage did not store how these attempts ended");
  }

  /** Whether this attempt is held ahead, or an end of it is written, but may still be lost. It is then written again. */
  keeps(token: number): boolean {
    return this.#ahead.has(token) || this.#unflushed.has(token);
  }

  get exchanges(): { readonly begun: number; readonly ended: number } {
    return { begun: this.#begun, ended: this.#ended };
  }

  /** Claims again, unless the dispatcher closes down. */
  startClaiming(): void {
    this.#claiming = !this.#closing;
    this.wakeAll();
  }

  async tick(): Promise<number> {
    await this.#unflushed.room();
    this.#lookNowAndThen();
    await this.#lookForAloneNowAndThen();
    const { completer, slots, memory } = this.options;
    // That insert may fill the free slots: they must not be claimed twice.
    while (this.#inserting !== null) await this.#inserting;
    this.#giveBackHeldTooLong();
    const lingersMs = this.#lingersMs(this.clock.monotonic());
    if (lingersMs > 0) return lingersMs;
    this.#endedIn.clear();
    this.#lingersUntil = Number.POSITIVE_INFINITY;
    const taken = completer.take(this.#faultyEndSearch.max);
    const begun = this.#ahead.begun.take(taken.finishes, { areAll: completer.finishes === 0 });
    const completed = this.#withoutWaiting(taken);
    if (completed.finishes.some((finish) => this.options.spansLanes(finish))) slots.wakeAll();
    const bounds = this.#bounds();
    const claims = this.#isOpen()
      ? slots.claims(
          completed.finishes.filter(({ freesSlot }) => freesSlot),
          this.clock.monotonic(),
          bounds,
        )
      : [];
    const { finishes, progress } = completed;
    const isNeeded =
      finishes.length + progress.length + begun.length > 0 || claims.some(({ limit }) => limit > 0);
    if (isNeeded) await this.#exchange({ completed, begun, claims, bounds });
    else slots.unanswered(claims);
    if (this.#turns.phase === "alone" && this.#isEmpty()) this.#reopen();
    if (this.#turns.phase === "closing" && this.#isEmpty() && this.#mayClaim()) await this.#claimAlone();
    if (completer.size > 0) return this.#lingersMs(this.clock.monotonic());
    if (!this.#mayClaim()) return POLL_MS;
    const now = this.clock.monotonic();
    const claimsInMs =
      this.#isOpen() && memory.claimsMax > 0 ? slots.hungryInMs(now) : Number.POSITIVE_INFINITY;
    return Math.min(POLL_MS, claimsInMs, this.#turns.lookInMs(now), this.#ahead.lateInMs(now));
  }

  #bounds(): ClaimBounds {
    const { memory, storage } = this.options;
    const bounds = { claimsMax: memory.claimsMax, overShare: memory.tenantsOverShare };
    if (!storage.capabilities.claimsAhead) return bounds;
    return { ...bounds, target: (lane, slots) => this.#lookAhead.target(lane, slots) };
  }

  /**
   * How long to wait before the next exchange; 0: not at all. Ends wait for others if nothing else is to be written, no caller
   * waits for them, all slots are busy, and enough tasks are held ahead to keep them busy until the ends are written.
   */
  #lingersMs(now: number): number {
    const { completer, slots, isFollowed } = this.options;
    const leftMs = this.#lingersUntil - now;
    if (this.#endedIn.size === 0 || leftMs <= 0 || !this.#isOpen() || isFollowed()) return 0;
    if (completer.size > completer.finishes || slots.hungryInMs(now) === 0) return 0;
    for (const lane of this.#endedIn) {
      const needed = this.#lookAhead.needed(lane, slots.load(lane)?.concurrency ?? 0);
      if (slots.isReserved(lane) || this.#ahead.sizeOf(lane) <= needed) return 0;
    }
    return leftMs;
  }

  /** Progress of attempts that are not reported as begun yet waits for the next exchange. */
  #withoutWaiting(completed: Completed): Completed {
    const waiting = this.#ahead.begun.waiting(completed);
    if (waiting.length === 0) return completed;
    this.options.completer.giveBack({ finishes: [], progress: waiting });
    return { ...completed, progress: completed.progress.filter((report) => !waiting.includes(report)) };
  }

  #giveBackHeldTooLong(): void {
    if (this.#ahead.size === 0) return;
    if (this.#turns.phase !== "open") this.#ahead.putBackAll(ALONE_FIRST);
    for (const lane of this.#ahead.putBackLate()) this.#lookAhead.stalled(lane);
  }

  #run(claimed: ClaimedTask): void {
    this.options.metrics.of(claimed.task.tenant).dispatched(claimed.task);
    this.options.runner.run(claimed);
  }

  async #lookForAloneNowAndThen(): Promise<void> {
    const now = this.clock.monotonic();
    if (!this.#mayClaim() || this.#turns.lookInMs(now) > 0) return;
    const { storage, node, slots } = this.options;
    const waits = await storage.tasks.isAloneWaiting({ node: node(), lanes: slots.lanes });
    this.#turns.looked(now, { waits });
  }

  /** Lets the other tasks start, which had to wait. */
  #reopen(): void {
    this.#turns.reopen(this.clock.monotonic());
    this.options.slots.wakeAll();
  }

  /** Whether no attempt runs here, and no end waits to be written. */
  #isEmpty(): boolean {
    const { runner, completer } = this.options;
    return runner.size === 0 && completer.finishes === 0 && this.#ahead.size === 0;
  }

  async #claimAlone(): Promise<void> {
    const { storage, node, slots } = this.options;
    const answer = await this.#ask(() => storage.tasks.claimAlone({ node: node(), lanes: slots.lanes }));
    this.#wroteDown([], answer);
    if (answer.claimed.length > 0) this.#turns.began();
    else this.#reopen();
    this.#begin(answer, [], { claimsMax: 1, overShare: this.options.memory.tenantsOverShare });
  }

  #isOpen(): boolean {
    return this.#mayClaim() && this.#turns.phase === "open";
  }

  #mayClaim(): boolean {
    // During the search for an end that cannot be stored, a claim could be another cause of a failure.
    return this.#claiming && !this.#faultyEndSearch.isOn;
  }

  #lookNowAndThen(): void {
    if (this.clock.monotonic() - this.#lookedAt < POLL_MS) return;
    this.#lookedAt = this.clock.monotonic();
    this.options.slots.wakeAll();
  }

  async #exchange({ completed, begun, claims, bounds }: Exchange): Promise<void> {
    const { storage, node, slots } = this.options;
    const { claimsMax } = bounds;
    const asked = claims.reduce((sum, { limit, ahead = 0 }) => sum + limit + ahead, 0);
    const more = {
      // Left out where it limits nothing: an exchange with such a limit does not share a step with those of other nodes.
      ...(asked > claimsMax && { claimsMax }),
      ...(begun.length > 0 && { begun }),
    };
    let answer: FinishedAndClaimed;
    try {
      answer = await this.#ask(() =>
        storage.tasks.finishAndClaim({ node: node(), ...completed, claims, ...more }),
      );
    } catch (error) {
      this.#ahead.begun.giveBack(begun);
      slots.unanswered(claims);
      this.#keep(completed, error);
      throw error;
    }
    for (const finish of completed.finishes) if (finish.freesSlot) slots.written(finish);
    if (answer.durable === undefined) this.#wroteDown(completed.finishes, answer);
    else this.#keepUntilDurable(completed.finishes, answer, answer.durable);
    this.#begin(answer, claims, bounds);
  }

  /** One exchange with the storage. */
  async #ask(exchange: () => Promise<FinishedAndClaimed>): Promise<FinishedAndClaimed> {
    this.#fencedEarly.clear();
    this.#begun += 1;
    const askedAt = this.clock.monotonic();
    try {
      return await exchange();
    } finally {
      this.#ended += 1;
      this.#lookAhead.exchanged(this.clock.monotonic() - askedAt);
    }
  }

  /** Ends that a crash of the database may have lost are written again. Their slots are free already. */
  #keepUntilDurable(finishes: readonly Finish[], answer: FinishedAndClaimed, durable: Promise<void>): void {
    const tokens = finishes.map(({ token }) => token);
    this.#unflushed.add(tokens, durable, {
      onFlushed: () => this.#wroteDown(finishes, answer),
      onLost: () => {
        const again = finishes.map((finish) => ({ ...finish, freesSlot: false }));
        this.options.completer.giveBack({ finishes: again, progress: [] });
        this.wake();
      },
    });
  }

  #wroteDown(finishes: readonly Finish[], answer: FinishedAndClaimed): void {
    const { metrics, memory, completer, onRetryAt, onEnded } = this.options;
    const states = new Map(answer.finished.map(({ token, state }) => [token, state]));
    let hasEnded = answer.expired.length > 0;
    for (const { token, tenant, lane, agent, settlement, callsBack, heldBytes } of finishes) {
      memory.release(tenant, heldBytes);
      const state = states.get(token);
      if (state === undefined) continue;
      metrics.of(tenant).ended({ agent, lane }, state);
      hasEnded ||= callsBack && isTerminal(state);
      if (settlement.to === "delayed") onRetryAt(settlement.runAt);
      if (settlement.to === "queued") this.wakeAll();
    }
    metrics.expired(answer.expired);
    if (hasEnded) onEnded();
    if (!this.#faultyEndSearch.isOn) return;
    this.#faultyEndSearch.succeeded(completer.finishes);
    this.wake();
  }

  #begin(answer: FinishedAndClaimed, claims: readonly LaneClaim[], bounds: ClaimBounds): void {
    const { claimed, criticalWaits = [] } = answer;
    const { slots } = this.options;
    const given = new Map<string, { given: number; ahead: number }>();
    for (const { task } of claimed) {
      const counts = given.get(task.lane) ?? { given: 0, ahead: 0 };
      given.set(task.lane, counts);
      if (task.state === "assigned") {
        slots.tookAhead(task);
        counts.ahead += 1;
      } else {
        slots.took(task);
        counts.given += 1;
      }
    }
    const isCut = claimed.length >= bounds.claimsMax;
    for (const claim of claims) {
      const counts = given.get(claim.lane) ?? { given: 0 };
      slots.answered(claim, counts, { isCut, criticalWaits: criticalWaits.includes(claim.lane) });
    }
    for (const task of claimed) this.#accept(task, bounds);
    this.#ahead.begin();
  }

  /** Begins a claimed task or holds it ahead, unless there is a reason against it now. */
  #accept(claimed: ClaimedTask, { overShare }: ClaimBounds): void {
    const { slots, memory } = this.options;
    const { token, task } = claimed;
    const isAhead = task.state === "assigned";
    if (this.#fencedEarly.has(token)) {
      if (isAhead) slots.droppedAhead(task);
      else slots.freed(task);
      this.wakeAll();
    } else if (!memory.hasRoom) {
      // The tasks that were claimed with it hold more memory than expected.
      this.#putBack(claimed, OUT_OF_MEMORY);
    } else if (memory.isOverShare(task.tenant) && !overShare.has(task.tenant)) {
      // The same for its tenant. A tenant that was over its share before the claim gets tasks only if the storage
      // knows no second enabled tenant: those start.
      this.#putBack(claimed, OVER_SHARE);
    } else if (!this.#claiming) {
      // Claimed just before this node began to stop: it goes back to the queue.
      this.#putBack(claimed, STOPPING);
    } else if (isAhead) {
      this.#ahead.hold(claimed);
    } else {
      this.#run(claimed);
    }
  }

  #putBack(claimed: ClaimedTask, error: string): void {
    if (claimed.task.state === "assigned") {
      this.#ahead.putBack(claimed, error);
      return;
    }
    this.options.slots.ended(claimed.task);
    this.options.completer.putBack(claimed, error);
  }

  /** Keeps the ends after a failed write. If the connection is not the cause, one of the ends may be. */
  #keep(completed: Completed, error: unknown): void {
    const { completer } = this.options;
    const [first, second] = completed.finishes;
    const isSuspect = first !== undefined && !isStorageAway(error);
    if (isSuspect) this.#faultyEndSearch.failed(completed.finishes);
    if (!isSuspect || second !== undefined) {
      completer.giveBack(completed);
      return;
    }
    completer.giveBack({ ...completed, finishes: [] });
    completer.giveBackLast(afterFailure(first, error));
  }
}

/** A claim that an insert makes for this node. */
export interface ClaimWithInsert {
  readonly claim: InsertClaim;
  /** The lanes in which the insert has claimed, empty before it is answered: no other claim is needed there. */
  readonly lanes: ReadonlySet<string>;
  /** Call it once the insert has ended in any way. */
  readonly end: () => void;
}

interface Exchange {
  readonly completed: Completed;
  readonly begun: readonly Begun[];
  readonly claims: readonly LaneClaim[];
  readonly bounds: ClaimBounds;
}
