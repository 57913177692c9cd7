import { isTerminal } from "../../model/task-state.ts";
import { Service, type ServiceOptions } from "../../services/service.ts";
import { isStorageAway } from "../../services/storage-away.ts";
import type { ClaimedTask, FinishedAndClaimed, Storage } from "../../storage/storage.ts";
import type { AgentName } from "../schedules/run-maker.ts";
import { type AlonePhase, AloneTurns } from "./alone-turns.ts";
import { errorText } from "./attempt-error.ts";
import type { Completed, Completer, Finish } from "./completer.ts";
import type { Capacity, ClaimBounds, LaneClaim, LaneSlots } from "./lane-slots.ts";
import type { MetricsByTenant } from "./metrics-by-tenant.ts";
import type { Runner } from "./runner.ts";
import type { RunningBytes } from "./running-bytes.ts";

/** Ends written in one transaction: more would only make the others wait longer for theirs. */
const FINISHES_MAX = 200;
/** Signals can be lost: every lane is asked at least this often. */
const POLL_MS = 5_000;
/** An end that alone fails this often, by no fault of the connection, is one that cannot be stored. */
const ALONE_TRIES_MAX = 5;

export interface DispatcherOptions extends ServiceOptions {
  readonly storage: Storage;
  /** The membership in whose name it acts. */
  readonly node: () => string;
  readonly slots: LaneSlots;
  readonly runner: Runner;
  readonly completer: Completer;
  readonly metrics: MetricsByTenant;
  /** Says how much may be claimed. */
  readonly memory: RunningBytes;
  /** Whether an end of this agent's tasks can make room in other lanes than their own. */
  readonly spansLanes: (name: AgentName) => boolean;
  /** Told when a retry was written down that is due at this moment of the storage's clock. */
  readonly onRetryAt: (runAt: number) => void;
  /** Told when tasks ended of which somebody may want to be told. */
  readonly onEnded: () => void;
}

/** Moves tasks: writes down what ended and starts what may start, both in one transaction, one at a time. */
export class Dispatcher extends Service {
  readonly name = "dispatcher";
  readonly #options: DispatcherOptions;
  #claiming = true;
  #closing = false;
  #begun = 0;
  #ended = 0;
  #lookedAt: number;
  #finishesMax = FINISHES_MAX;
  /** Attempts that lost their lease while an exchange was under way. */
  readonly #fencedEarly = new Set<number>();
  readonly #turns: AloneTurns;

  constructor(options: DispatcherOptions) {
    super(options);
    this.#options = options;
    this.#lookedAt = this.clock.monotonic();
    this.#turns = new AloneTurns(this.#lookedAt);
  }

  /** There may be work in these lanes. */
  wakeLanes(lanes: Iterable<string>): void {
    let free = false;
    for (const lane of lanes) free = this.#options.slots.wake(lane) || free;
    if (free) this.wake();
  }

  /** There may be work anywhere. */
  wakeAll(): void {
    this.#options.slots.wakeAll();
    this.wake();
  }

  /** Only writes down what ends, until it may go on. */
  stopClaiming(): void {
    this.#claiming = false;
  }

  /** Only writes down what ends, for good. */
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
    this.#options.slots.rest(lane, this.clock.monotonic());
  }

  /** There may be a task that runs alone. */
  lookForAlone(): void {
    this.#turns.lookSoon();
    this.wake();
  }

  /** How many tasks of each lane it is there to run: none once it closes down. */
  get serves(): Capacity {
    return this.#closing ? { slots: {}, perTenant: {} } : this.#options.slots.capacity;
  }

  /**
   * These attempts lost their lease. One that nobody runs here may be in an answer that is on its way: it is then
   * passed over.
   */
  fenced(tokens: readonly number[]): void {
    if (this.#begun > this.#ended) for (const token of tokens) this.#fencedEarly.add(token);
  }

  /** Whether everything that ended so far is written down. */
  get flushed(): boolean {
    return this.#begun === this.#ended && this.#options.completer.finishes === 0;
  }

  get exchanges(): { readonly begun: number; readonly ended: number } {
    return { begun: this.#begun, ended: this.#ended };
  }

  /** Goes on, unless it is to close down. */
  startClaiming(): void {
    this.#claiming = !this.#closing;
    this.wakeAll();
  }

  async tick(): Promise<number> {
    this.#lookNowAndThen();
    await this.#lookForAloneNowAndThen();
    const { completer, slots, memory } = this.#options;
    const completed = completer.take(this.#finishesMax);
    if (completed.finishes.some((finish) => this.#options.spansLanes(finish))) slots.wakeAll();
    const bounds = { claimsMax: memory.claimsMax, overShare: memory.tenantsOverShare };
    const claims = this.#isOpen() ? slots.claims(completed.finishes, this.clock.monotonic(), bounds) : [];
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
    const { storage, node, slots } = this.#options;
    const waits = await storage.tasks.isAloneWaiting({ node: node(), lanes: slots.lanes });
    this.#turns.looked(now, { waits });
  }

  /** Others had to wait. */
  #reopen(): void {
    this.#turns.reopen(this.clock.monotonic());
    this.#options.slots.wakeAll();
  }

  /** Nothing runs here, and nothing that ran is still to be written. */
  #isEmpty(): boolean {
    const { runner, completer } = this.#options;
    return runner.size === 0 && completer.finishes === 0;
  }

  async #claimAlone(): Promise<void> {
    const { storage, node, slots } = this.#options;
    const answer = await this.#ask(() => storage.tasks.claimAlone({ node: node(), lanes: slots.lanes }));
    this.#wroteDown([], answer);
    if (answer.claimed.length > 0) this.#turns.began();
    else this.#reopen();
    this.#begin(answer.claimed, [], { claimsMax: 1, overShare: this.#options.memory.tenantsOverShare });
  }

  #isOpen(): boolean {
    return this.#mayClaim() && this.#turns.phase === "open";
  }

  #mayClaim(): boolean {
    // While an end is sought that cannot be stored, claims would only blur what fails.
    return this.#claiming && this.#finishesMax === FINISHES_MAX;
  }

  #lookNowAndThen(): void {
    if (this.clock.monotonic() - this.#lookedAt < POLL_MS) return;
    this.#lookedAt = this.clock.monotonic();
    this.#options.slots.wakeAll();
  }

  async #exchange(completed: Completed, claims: readonly LaneClaim[], bounds: ClaimBounds): Promise<void> {
    const { storage, node } = this.#options;
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
    this.#wroteDown(completed.finishes, answer);
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

  #wroteDown(finishes: readonly Finish[], answer: FinishedAndClaimed): void {
    const { slots, metrics, memory, onRetryAt, onEnded } = this.#options;
    const states = new Map(answer.finished.map(({ token, state }) => [token, state]));
    let toTell = answer.expired.length > 0;
    for (const { token, tenant, lane, agent, settlement, callsBack, heldBytes } of finishes) {
      slots.freed({ lane, tenant });
      memory.release(tenant, heldBytes);
      const state = states.get(token);
      if (state === undefined) continue;
      metrics.of(tenant).ended({ agent, lane }, state);
      toTell ||= callsBack && isTerminal(state);
      if (settlement.to === "delayed") onRetryAt(settlement.runAt);
      if (settlement.to === "queued") this.wakeAll();
    }
    metrics.expired(answer.expired);
    if (toTell) onEnded();
    this.#askForMore();
  }

  /** After a success larger exchanges are dared again; with nothing left to blame, the largest. */
  #askForMore(): void {
    if (this.#finishesMax === FINISHES_MAX) return;
    const left = this.#options.completer.finishes;
    this.#finishesMax = left === 0 ? FINISHES_MAX : Math.min(this.#finishesMax * 2, FINISHES_MAX);
    this.wake();
  }

  #begin(claimed: readonly ClaimedTask[], claims: readonly LaneClaim[], bounds: ClaimBounds): void {
    const { slots, runner, completer, metrics, memory } = this.#options;
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
        // Those that were claimed with it hold more than was to be expected.
        completer.putBack(task, "not started: the tasks that run in its process hold too much memory");
      } else if (memory.isOverShare(task.task.tenant) && !overShare.has(task.task.tenant)) {
        // The same. One that was over its share before is given tasks where the storage knows no second enabled tenant.
        completer.putBack(
          task,
          "not started: the tasks of its tenant hold their share of its process's memory",
        );
      } else if (this.#claiming) {
        metrics.of(task.task.tenant).dispatched(task.task);
        runner.run(task);
      } else {
        // Claimed just before this node was told to stop: it goes back as if nothing had happened.
        completer.putBack(task, "not started: its node was stopping");
      }
    }
  }

  /**
   * Nothing that ended is lost to a call that failed. When the connection is not to blame, one of the ends may be:
   * it is looked for by halves, so that it does not hold up the others, and in the end failed rather than kept.
   */
  #keep(completed: Completed, error: unknown): void {
    const { completer } = this.#options;
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

/** An end that failed alone: once more, or not at all. */
function blamed(finish: Finish, error: unknown): Finish {
  const failures = finish.failures + 1;
  if (failures < ALONE_TRIES_MAX) return { ...finish, failures };
  const settlement = { to: "failed", error: `its end could not be stored: ${errorText(error)}` } as const;
  // Whatever it was that could not be stored, this end says nothing but that.
  const { usage: _, summary: __, ...bare } = finish;
  return { ...bare, failures, settlement };
}
