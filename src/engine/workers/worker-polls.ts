import type { Clock, Timer } from "../../model/clock.ts";
import { RotaError } from "../../model/errors.ts";
import {
  ALL_AGENTS,
  type AssignedTask,
  type AttemptSecret,
  CLAIMED_PER_POLL_MAX,
  type WorkerPoll,
} from "../../storage/storage.ts";
import { hashOfClaim, newSecrets } from "./attempt-token.ts";

/** How many polls of one worker may wait. A further one ends the oldest. */
const PER_WORKER_MAX = 2;
/** How many polls may wait on this node. */
export const POLLS_MAX = 10_000;
/** From this share of the polls that may wait on, workers that got nothing are asked to pause. */
const NEARLY_FULL = 0.9;
/**
 * Waits of at least this long end at multiples of a step: the polls that end together are answered in one turn of the event loop,
 * and their workers ask again in another. Between them an idle server sleeps. The steps are short where many polls wait, so that
 * those of one step take some milliseconds.
 */
const STEPS = { fromMs: 9_000, ms: 1_000, manyPolls: 400, ofManyMs: 100 } as const;
/** How many polls with the same agents one exchange asks for: a ready task needs one of them. */
const PER_GROUP_MAX = 16;
/** A poll brings tokens for this many tasks, even if its worker seems to have fewer free slots: this node may not know what ended. */
const TOKENS_MIN = 10;

/** A worker that asks for tasks, as it registered. */
export interface PollingWorker {
  readonly id: string;
  readonly tenant: string;
  readonly agents: readonly string[];
  readonly slots: number;
}

export interface PollRequest {
  readonly worker: PollingWorker;
  readonly claimId: string;
  readonly max: number;
  /** Only tasks of these of its agents; null: of all. */
  readonly agents: readonly string[] | null;
  /** Returns the agents of which it gets no tasks: they may change while it waits. */
  readonly except: () => readonly string[];
  readonly waitMs: number;
  /** Fires when the connection of the caller is gone. */
  readonly gone: AbortSignal;
}

/** Why a poll ended without tasks. `draining`: this node stops. `drained`: its worker should end. `gone`: its worker is unknown. */
export type EmptyReason = "waited" | "replaced" | "draining" | "drained" | "gone" | "closed";

export type PollAnswer =
  | { readonly assigned: readonly AssignedTask[]; readonly empty?: never }
  | { readonly assigned: readonly []; readonly empty: EmptyReason };

/** A poll that waits. */
export class Poll {
  readonly request: PollRequest;
  readonly claim: string;
  /** Polls of a group can run the same agents. */
  group: string;
  readonly answer: Promise<PollAnswer>;
  #resolve: (answer: PollAnswer) => void;
  #timer: Timer | null = null;
  #except: readonly string[];
  #tokens: readonly AttemptSecret[] = [];
  readonly #tokenTime: number | null;
  isOver = false;
  /** Whether it is part of an exchange that has not asked yet, or is under way: its wait does not end it meanwhile. */
  isAsking = true;
  /** Whether it has waited long enough. */
  isLate = false;

  /** `tokenTime`: what its tokens begin with; null: nothing. */
  constructor(request: PollRequest, tokenTime: number | null) {
    this.request = request;
    this.#tokenTime = tokenTime;
    this.claim = hashOfClaim(request.claimId);
    this.#except = request.except();
    this.group = this.#groupName();
    const { promise, resolve } = Promise.withResolvers<PollAnswer>();
    this.answer = promise;
    this.#resolve = resolve;
  }

  /** Reads again which agents it may not run. */
  refresh(): void {
    this.#except = this.request.except();
    this.group = this.#groupName();
  }

  /** How many tasks it may get at most. */
  wants(held: number): number {
    const { worker, max } = this.request;
    const free = Math.max(worker.slots - held, Math.min(TOKENS_MIN, worker.slots));
    return Math.min(max, free, CLAIMED_PER_POLL_MAX);
  }

  /**
   * What the storage needs. The tokens are made once it reads them: SQLite does not while nothing is ready. `held`: how many attempts
   * its worker holds, as far as this node knows. `share`: how many tasks it may get of those that one transaction assigns.
   */
  ask(held: number, share = CLAIMED_PER_POLL_MAX): WorkerPoll {
    const { worker, agents } = this.request;
    const make = () => this.#makeTokens(Math.min(this.wants(held), share));
    let tokens: WorkerPoll["tokens"] | null = null;
    const except = this.#except;
    return {
      worker: worker.id,
      claim: this.claim,
      max: Math.min(this.request.max, share),
      agents,
      ...(except.length === 0 ? {} : { except }),
      get tokens() {
        tokens ??= make();
        return tokens;
      },
    };
  }

  /** Those that the storage had last. */
  get tokens(): readonly AttemptSecret[] {
    return this.#tokens;
  }

  #makeTokens(count: number): readonly AttemptSecret[] {
    if (this.#tokens.length < count) this.#tokens = newSecrets(this.request.claimId, count, this.#tokenTime);
    return this.#tokens.slice(0, count);
  }

  #groupName(): string {
    const { worker, agents } = this.request;
    return JSON.stringify([worker.tenant, namesOf(agents ?? worker.agents), this.#except.toSorted()]);
  }

  /** Calls `onLate` after a time, at once for a poll that does not wait. */
  endAfter(clock: Clock, ms: number, onLate: () => void): void {
    const late = () => {
      this.isLate = true;
      if (!this.isAsking) onLate();
    };
    if (ms > 0) this.#timer = clock.setTimer(ms, late);
    else late();
  }

  end(answer: PollAnswer): void {
    this.isOver = true;
    this.#timer?.cancel();
    this.#resolve(answer);
  }
}

export interface WorkerPollsOptions {
  readonly clock: Clock;
  readonly random: () => number;
  /** How many of the waiting polls one tenant may have. */
  readonly tenantMax: () => number;
  /** Whether tokens begin with the time. */
  readonly timedTokens: boolean;
  /** How many attempts a worker holds, as far as this node knows. */
  readonly heldBy: (worker: string) => number;
  /** Another number whenever agents have changed, and with them what `except` of a request returns. */
  readonly agentsVersion: () => number;
}

/** The polls that wait on this node, in memory, the longest waiting first. */
export class WorkerPolls {
  readonly #options: WorkerPollsOptions;
  readonly #groups = new Map<string, Set<Poll>>();
  readonly #ofWorker = new Map<string, Poll[]>();
  readonly #ofTenant = new Map<string, number>();
  #size = 0;
  #version: number | null = null;

  constructor(options: WorkerPollsOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#size;
  }

  /** How many wait of one tenant. */
  sizeOf(tenant: string): number {
    return this.#ofTenant.get(tenant) ?? 0;
  }

  /** The workers that wait for tasks here. */
  workers(): string[] {
    return [...this.#ofWorker.keys()];
  }

  /** The polls of a worker that wait here. */
  of(worker: string): readonly Poll[] {
    return this.#ofWorker.get(worker) ?? [];
  }

  /** Whether another poll with the same agents, of a worker with a free slot, has asked and found nothing. */
  hasIdle(poll: Poll): boolean {
    const { heldBy } = this.#options;
    for (const other of this.#groups.get(poll.group) ?? []) {
      const { id, slots } = other.request.worker;
      if (other !== poll && !other.isAsking && heldBy(id) < slots) return true;
    }
    return false;
  }

  /** Adds a poll. A poll of the same claim, and the oldest of too many, ends empty. Throws `too_many_polls`. */
  add(request: PollRequest): Poll {
    const { id, tenant } = request.worker;
    const own = this.#ofWorker.get(id) ?? [];
    const same = own.find(({ request: { claimId } }) => claimId === request.claimId);
    const replaced = same ?? (own.length >= PER_WORKER_MAX ? own[0] : undefined);
    if (replaced !== undefined) this.end(replaced, "replaced");
    const max = this.#tenantMax;
    if (this.#size >= POLLS_MAX || (this.#ofTenant.get(tenant) ?? 0) >= max) {
      throw new RotaError(
        "too_many_polls",
        `${this.#size >= POLLS_MAX ? this.#size : max} claims wait on this node, and there can be no more: wait before the next claim, or ask for more slots with fewer workers`,
        // Not all at the same time.
        { retryAfterSec: 1 + Math.floor(3 * this.#options.random()) },
      );
    }
    const { timedTokens, clock } = this.#options;
    const poll = new Poll(request, timedTokens ? clock.now() : null);
    this.#size += 1;
    this.#ofTenant.set(tenant, (this.#ofTenant.get(tenant) ?? 0) + 1);
    this.#ofWorker.set(id, [...(this.#ofWorker.get(id) ?? []), poll]);
    this.#group(poll);
    poll.endAfter(clock, this.#inSteps(request.waitMs), () => this.end(poll, "waited"));
    request.gone.addEventListener("abort", () => this.end(poll, "closed"), { once: true });
    if (request.gone.aborted) this.end(poll, "closed");
    return poll;
  }

  /** Whether nearly all polls wait that may wait here, of all tenants or of this one. */
  isNearlyFull(tenant: string): boolean {
    const own = this.#ofTenant.get(tenant) ?? 0;
    return this.#size >= NEARLY_FULL * POLLS_MAX || own >= NEARLY_FULL * this.#tenantMax;
  }

  get #tenantMax(): number {
    return Math.min(this.#options.tenantMax(), POLLS_MAX);
  }

  end(poll: Poll, empty: EmptyReason): void {
    if (poll.isOver) return;
    this.#remove(poll);
    poll.end({ assigned: [], empty });
  }

  /** An exchange had nothing for a poll. */
  asked(poll: Poll): void {
    poll.isAsking = false;
    if (poll.isLate) this.end(poll, "waited");
  }

  /** A poll got tasks. */
  give(poll: Poll, assigned: readonly AssignedTask[]): void {
    this.#remove(poll);
    poll.end({ assigned });
  }

  /** Ends the polls of one worker. */
  endOf(worker: string, empty: EmptyReason): void {
    for (const poll of [...(this.#ofWorker.get(worker) ?? [])]) this.end(poll, empty);
  }

  endAll(empty: EmptyReason): void {
    for (const group of [...this.#groups.values()]) for (const poll of [...group]) this.end(poll, empty);
  }

  /**
   * The polls that ask next, of each group with an agent of `wanted` (null: of all groups): those whose workers hold the fewest
   * attempts, then the longest waiting.
   */
  next(wanted: ReadonlySet<string> | null): Poll[] {
    const { heldBy, agentsVersion } = this.#options;
    const version = agentsVersion();
    if (version !== this.#version) this.#regroup();
    this.#version = version;
    const chosen: Poll[] = [];
    for (const group of this.#groups.values()) {
      const [first] = group;
      if (first === undefined || !isWanted(first, wanted)) continue;
      if (group.size <= PER_GROUP_MAX) chosen.push(...group);
      else {
        const byLoad = [...group].map((poll) => ({ poll, held: heldBy(poll.request.worker.id) }));
        byLoad.sort((a, b) => a.held - b.held);
        chosen.push(...byLoad.slice(0, PER_GROUP_MAX).map(({ poll }) => poll));
      }
    }
    return chosen;
  }

  /** A wait that begins now, shortened so that it ends with a step. */
  #inSteps(waitMs: number): number {
    if (waitMs < STEPS.fromMs) return waitMs;
    const stepMs = this.#size > STEPS.manyPolls ? STEPS.ofManyMs : STEPS.ms;
    return waitMs - ((this.#options.clock.monotonic() + waitMs) % stepMs);
  }

  #group(poll: Poll): void {
    const group = this.#groups.get(poll.group) ?? new Set();
    this.#groups.set(poll.group, group.add(poll));
  }

  /** Polls may have got other agents. */
  #regroup(): void {
    const all = [...this.#groups.values()].flatMap((group) => [...group]);
    this.#groups.clear();
    for (const poll of all) {
      poll.refresh();
      this.#group(poll);
    }
  }

  #remove(poll: Poll): void {
    const { id, tenant } = poll.request.worker;
    const group = this.#groups.get(poll.group);
    if (!group?.delete(poll)) return;
    if (group.size === 0) this.#groups.delete(poll.group);
    this.#size -= 1;
    const left = (this.#ofTenant.get(tenant) ?? 1) - 1;
    if (left === 0) this.#ofTenant.delete(tenant);
    else this.#ofTenant.set(tenant, left);
    const own = (this.#ofWorker.get(id) ?? []).filter((other) => other !== poll);
    if (own.length === 0) this.#ofWorker.delete(id);
    else this.#ofWorker.set(id, own);
  }
}

function isWanted({ request: { worker, agents } }: Poll, wanted: ReadonlySet<string> | null): boolean {
  if (wanted === null) return true;
  const named = agents ?? worker.agents;
  return named.includes(ALL_AGENTS) || named.some((agent) => wanted.has(agent));
}

/** By list: a worker asks many times with the same one. */
const NAMES = new WeakMap<readonly string[], string>();

/** The same text for lists with the same names. */
function namesOf(list: readonly string[]): string {
  const known = NAMES.get(list);
  if (known !== undefined) return known;
  const names = JSON.stringify([...new Set(list)].sort());
  NAMES.set(list, names);
  return names;
}
