import { errorText } from "../../attempts/attempt-error.ts";
import type { AgentName } from "../../model/agent.ts";
import { RotaError } from "../../model/errors.ts";
import { isTerminal } from "../../model/task-state.ts";
import { Service, type ServiceOptions } from "../../services/service.ts";
import { isStorageAway } from "../../services/storage-away.ts";
import type { ClaimedTask, FinishedAndClaimed, Storage } from "../../storage/storage.ts";
import { type AlonePhase, AloneTurns } from "./alone-turns.ts";
import type { Completed, Completer, Finish } from "./completer.ts";
import type { Capacity, ClaimBounds, LaneClaim, LaneSlots } from "./lane-slots.ts";
import type { MetricsByTenant } from "./metrics-by-tenant.ts";
import type { Runner } from "./runner.ts";
import type { RunningBytes } from "./running-bytes.ts";

/** Ends of attempts written in one transaction: a larger one would make other writes wait longer. */
const FINISHES_MAX = 200;
/** Signals can be lost: the dispatcher tries to claim from every lane at least this often. */
const POLL_MS = 5_000;
/**
 * Exchanges whose ends are not yet stored for good. Each keeps a connection until its flush: the others are for reads and
 * inserts while the disk is slow.
 */
const NOT_DURABLE_MAX = 3;
/** After this many failures on its own, for reasons other than the connection, an end counts as one that cannot be stored. */
const ALONE_TRIES_MAX = 5;

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
  /** Whether the end of a task of this agent can let tasks of other lanes start. */
  readonly spansLanes: (name: AgentName) => boolean;
  /** Called when a retry was written that is due at this time of the storage's clock. */
  readonly onRetryAt: (runAt: number) => void;
  /** Called when tasks ended that may have a callback URL. */
  readonly onEnded: () => void;
}

/** Writes the ends of attempts and claims tasks to start, both in one transaction. Transactions do not overlap. */
export class Dispatcher extends Service<DispatcherOptions> {
  readonly name = "dispatcher";
  #claiming = true;
  #closing = false;
  #begun = 0;
  #ended = 0;
  /** Exchanges whose ends are written, but may still be lost, with the tokens of these ends. */
  readonly #notDurable = new Map<Promise<void>, ReadonlySet<number>>();
  /** How many of them had to be written again. */
  #notKept = 0;
  #lookedAt: number;
  #finishesMax = FINISHES_MAX;
  /** Attempts that lost their lease while an exchange was under way. */
  readonly #fencedEarly = new Set<number>();
  readonly #turns: AloneTurns;

  constructor(options: DispatcherOptions) {
    super(options);
    this.#lookedAt = this.clock.monotonic();
    this.#turns = new AloneTurns(this.#lookedAt);
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
  }

  /** From now on only writes ends, for good. */
  closeDown(): void {
    this.#claiming = false;
    this.#closing = true;
  }

  get isClosing(): boolean {
    return this.#closing;
  }

  /** Whether a task runs alone here, or is about to. */
  get alonePhase(): AlonePhase {
    return this.#turns.phase;
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
   * These attempts lost their lease. One that does not run here yet may be in a response that is on its way: it is not started
   * then.
   */
  fenced(tokens: readonly number[]): void {
    if (this.#begun > this.#ended) for (const token of tokens) this.#fencedEarly.add(token);
  }

  /** Whether the ends of all attempts so far are stored for good. */
  get flushed(): boolean {
    const { completer } = this.options;
    return this.#begun === this.#ended && this.#notDurable.size === 0 && completer.finishes === 0;
  }

  /** One tick, until its ends are stored for good. Throws if they may be lost: they are in the completer again. */
  async flush(): Promise<void> {
    const notKept = this.#notKept;
    await this.tick();
    await Promise.all(this.#notDurable.keys());
    if (this.#notKept > notKept)
      throw new RotaError("storage_unavailable", "the storage did not keep the ends");
  }

  /** Whether an end of this attempt is written, but may still be lost. It is then written again. */
  keeps(token: number): boolean {
    return [...this.#notDurable.values()].some((tokens) => tokens.has(token));
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
    if (this.#notDurable.size >= NOT_DURABLE_MAX) await Promise.race(this.#notDurable.keys());
    this.#lookNowAndThen();
    await this.#lookForAloneNowAndThen();
    const { completer, slots, memory } = this.options;
    const completed = completer.take(this.#finishesMax);
    if (completed.finishes.some((finish) => this.options.spansLanes(finish))) slots.wakeAll();
    const bounds = { claimsMax: memory.claimsMax, overShare: memory.tenantsOverShare };
    const claims = this.#isOpen()
      ? slots.claims(
          completed.finishes.filter(({ freesSlot }) => freesSlot),
          this.clock.monotonic(),
          bounds,
        )
      : [];
    if (completed.finishes.length > 0 || completed.progress.length > 0 || claims.length > 0) {
      await this.#exchange(completed, claims, bounds);
    }
    if (this.#turns.phase === "alone" && this.#isEmpty()) this.#reopen();
    if (this.#turns.phase === "closing" && this.#isEmpty() && this.#mayClaim()) await this.#claimAlone();
    if (completer.size > 0) return 0;
    if (!this.#mayClaim()) return POLL_MS;
    const now = this.clock.monotonic();
    const claimsInMs =
      this.#isOpen() && memory.claimsMax > 0 ? slots.hungryInMs(now) : Number.POSITIVE_INFINITY;
    return Math.min(POLL_MS, claimsInMs, this.#turns.lookInMs(now));
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
    return runner.size === 0 && completer.finishes === 0;
  }

  async #claimAlone(): Promise<void> {
    const { storage, node, slots } = this.options;
    const answer = await this.#ask(() => storage.tasks.claimAlone({ node: node(), lanes: slots.lanes }));
    this.#wroteDown([], answer);
    if (answer.claimed.length > 0) this.#turns.began();
    else this.#reopen();
    this.#begin(answer.claimed, [], { claimsMax: 1, overShare: this.options.memory.tenantsOverShare });
  }

  #isOpen(): boolean {
    return this.#mayClaim() && this.#turns.phase === "open";
  }

  #mayClaim(): boolean {
    // While the dispatcher searches for an end that cannot be stored, a claim could be another cause of a failure.
    return this.#claiming && this.#finishesMax === FINISHES_MAX;
  }

  #lookNowAndThen(): void {
    if (this.clock.monotonic() - this.#lookedAt < POLL_MS) return;
    this.#lookedAt = this.clock.monotonic();
    this.options.slots.wakeAll();
  }

  async #exchange(completed: Completed, claims: readonly LaneClaim[], bounds: ClaimBounds): Promise<void> {
    const { storage, node } = this.options;
    const { claimsMax } = bounds;
    const max = Number.isFinite(claimsMax) ? { claimsMax } : {};
    let answer: FinishedAndClaimed;
    try {
      answer = await this.#ask(() =>
        storage.tasks.finishAndClaim({ node: node(), ...completed, claims, ...max }),
      );
    } catch (error) {
      this.#keep(completed, error);
      throw error;
    }
    for (const finish of completed.finishes) if (finish.freesSlot) this.options.slots.freed(finish);
    if (answer.durable === undefined) this.#wroteDown(completed.finishes, answer);
    else this.#keepUntilDurable(completed.finishes, answer, answer.durable);
    this.#begin(answer.claimed, claims, bounds);
  }

  /** One exchange with the storage. */
  async #ask(exchange: () => Promise<FinishedAndClaimed>): Promise<FinishedAndClaimed> {
    this.#fencedEarly.clear();
    this.#begun += 1;
    try {
      return await exchange();
    } finally {
      this.#ended += 1;
    }
  }

  /** Ends that a crash of the database may have lost are written again. Their slots are free already. */
  #keepUntilDurable(finishes: readonly Finish[], answer: FinishedAndClaimed, durable: Promise<void>): void {
    const kept = durable
      .then(
        () => this.#wroteDown(finishes, answer),
        () => {
          this.#notKept += 1;
          const again = finishes.map((finish) => ({ ...finish, freesSlot: false }));
          this.options.completer.giveBack({ finishes: again, progress: [] });
          this.wake();
        },
      )
      .finally(() => this.#notDurable.delete(kept));
    this.#notDurable.set(kept, new Set(finishes.map(({ token }) => token)));
  }

  #wroteDown(finishes: readonly Finish[], answer: FinishedAndClaimed): void {
    const { metrics, memory, onRetryAt, onEnded } = this.options;
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
    this.#askForMore();
  }

  /** After a success the next exchange may be twice as large; once no ends are left, of full size. */
  #askForMore(): void {
    if (this.#finishesMax === FINISHES_MAX) return;
    const left = this.options.completer.finishes;
    this.#finishesMax = left === 0 ? FINISHES_MAX : Math.min(this.#finishesMax * 2, FINISHES_MAX);
    this.wake();
  }

  #begin(claimed: readonly ClaimedTask[], claims: readonly LaneClaim[], bounds: ClaimBounds): void {
    const { slots, runner, completer, metrics, memory } = this.options;
    const { claimsMax, overShare } = bounds;
    const given = new Map<string, number>();
    for (const { task } of claimed) {
      slots.took(task);
      given.set(task.lane, (given.get(task.lane) ?? 0) + 1);
    }
    const isCut = claimed.length >= claimsMax;
    for (const claim of claims) slots.answered(claim, given.get(claim.lane) ?? 0, { isCut });
    for (const task of claimed) {
      if (this.#fencedEarly.has(task.token)) {
        slots.freed(task.task);
        this.wakeAll();
      } else if (!memory.hasRoom) {
        // The tasks that were claimed with it hold more memory than expected.
        completer.putBack(task, "not started: the tasks that run in its process hold too much memory");
      } else if (memory.isOverShare(task.task.tenant) && !overShare.has(task.task.tenant)) {
        // The same for its tenant. A tenant that was over its share before the claim gets tasks only if the storage
        // knows no second enabled tenant: those start.
        completer.putBack(
          task,
          "not started: the tasks of its tenant hold their share of its process's memory",
        );
      } else if (this.#claiming) {
        metrics.of(task.task.tenant).dispatched(task.task);
        runner.run(task);
      } else {
        // Claimed just before this node began to stop: it goes back to the queue.
        completer.putBack(task, "not started: its node was stopping");
      }
    }
  }

  /**
   * Keeps the ends after a failed write. If the connection is not the cause, one of the ends may be. The dispatcher halves the
   * group until that end is alone, so that it does not block the others. After some tries its task fails.
   */
  #keep(completed: Completed, error: unknown): void {
    const { completer } = this.options;
    const [first, second] = completed.finishes;
    if (first !== undefined && !isStorageAway(error)) {
      this.#finishesMax = Math.max(Math.floor(completed.finishes.length / 2), 1);
      if (second === undefined) {
        completer.giveBack({ ...completed, finishes: [] });
        completer.giveBackLast(blamed(first, error));
        return;
      }
    }
    completer.giveBack(completed);
  }
}

/** An end whose write failed on its own: it is tried again, or replaced by a failure of its task. */
function blamed(finish: Finish, error: unknown): Finish {
  const failures = finish.failures + 1;
  if (failures < ALONE_TRIES_MAX) return { ...finish, failures };
  const settlement = { to: "failed", error: `its end could not be stored: ${errorText(error)}` } as const;
  // Usage and summary may be what cannot be stored: they are left out.
  const { usage: _, summary: __, ...bare } = finish;
  return { ...bare, failures, settlement };
}
