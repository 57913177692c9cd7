import { PROGRESS_BYTES_MAX } from "../../executors/executor.ts";
import { type Outcome, type Settlement, settle } from "../../model/outcome.ts";
import { runSummary } from "../../model/run.ts";
import type { TaskRecord } from "../../model/task-record.ts";
import type { AttemptUsage, ClaimedTask, FinishAndClaimParams, Held } from "../../storage/storage.ts";
import type { Attempt } from "./attempt.ts";
import { checkJson } from "./result-json.ts";
import type { RunningBytes } from "./running-bytes.ts";

/** Results that are written together take at most this much, or are one: other writes wait until they are stored. */
const BYTES_PER_TAKE_MAX = 262_144;

export interface Finish extends Held {
  readonly settlement: Settlement;
  /** What the attempt cost. Left out: its executor did not report it. */
  readonly usage?: AttemptUsage;
  /** The summary of the result in the row of its run. Left out: the task is of no schedule, or is not done. */
  readonly summary?: string;
  readonly tenant: string;
  readonly lane: string;
  readonly agent: string;
  /** Whether the task has a callback URL. */
  readonly callsBack: boolean;
  /** How often writing this end alone failed. */
  readonly failures: number;
  /** False: its slot is free already, or it had none here. */
  readonly freesSlot: boolean;
  /** The bytes of its result, which count as held by this process until it is written. */
  readonly heldBytes: number;
}
export type Report = FinishAndClaimParams["progress"][number];

export interface Completed {
  readonly finishes: readonly Finish[];
  readonly progress: readonly Report[];
}

export interface CompleterOptions {
  readonly storageNow: () => number;
  readonly random: () => number;
  /** Counts the results that wait to be written. */
  readonly memory: RunningBytes;
}

/** Turns outcomes into ends of attempts, and keeps each end until it is stored. */
export class Completer {
  readonly #options: CompleterOptions;
  #finishes: Finish[] = [];
  /** The latest report of each attempt. */
  readonly #progress = new Map<number, Report>();

  constructor(options: CompleterOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#finishes.length + this.#progress.size;
  }

  get finishes(): number {
    return this.#finishes.length;
  }

  /** Returns what the outcome does to the task. */
  finish(attempt: Attempt, outcome: Outcome): Settlement {
    const { record, token } = attempt;
    const settlement = settle(outcome, {
      retryPolicy: record.spec.retryPolicy,
      retryCount: record.retryCount,
      deadline: record.deadline,
      now: this.#options.storageNow(),
      random: this.#options.random,
    });
    const heldBytes = settlement.to === "done" ? attempt.resultBytes : 0;
    this.#options.memory.hold(record.tenant, heldBytes);
    this.#finishes.push({
      ...finishOf(record, token, settlement),
      heldBytes,
      ...(attempt.used === null ? {} : { usage: attempt.used }),
      ...summaryOf(record, settlement),
    });
    return settlement;
  }

  /**
   * Returns a task to the queue that was claimed but never started. It keeps its old position. `freesSlot`: false if it was held
   * ahead and had no slot.
   */
  putBack({ token, task }: ClaimedTask, error: string, { freesSlot = true } = {}): void {
    this.#finishes.push({ ...finishOf(task, token, { to: "queued", error }), freesSlot });
  }

  /** The same for a task of which only the lease is known. */
  putBackOrphan({ seq, token }: Held, error: string): void {
    this.#finishes.push({
      seq,
      token,
      settlement: { to: "queued", error },
      tenant: "",
      lane: "",
      agent: "",
      callsBack: false,
      failures: 0,
      freesSlot: false,
      heldBytes: 0,
    });
  }

  /** Whether an end of this attempt waits to be written. */
  has(token: number): boolean {
    return this.#finishes.some((finish) => finish.token === token);
  }

  report(attempt: Attempt, data: unknown): void {
    const checked = checkJson("progress", data, PROGRESS_BYTES_MAX);
    // A progress report that cannot be stored must not fail its attempt.
    if (!checked.ok) attempt.log.warn({}, `${checked.error}; it is left out`);
    else
      this.#progress.set(attempt.token, {
        seq: attempt.record.seq,
        token: attempt.token,
        progress: attempt.asStored(checked.value),
      });
  }

  /** Drops the report of an attempt that lost its lease. */
  drop(attempt: Attempt): void {
    this.#progress.delete(attempt.token);
  }

  /** Removes and returns up to `max` ends, fewer if their results are large, oldest first, and as many reports. The caller gives back what it could not write. */
  take(max: number): Completed {
    const count = countWithin(this.#finishes, max);
    const finishes = this.#finishes.slice(0, count).sort(byTenant);
    this.#finishes = this.#finishes.slice(count);
    const progress: Report[] = [];
    for (const report of this.#progress.values()) {
      if (progress.length === max) break;
      progress.push(report);
    }
    for (const { token } of progress) this.#progress.delete(token);
    return { finishes, progress };
  }

  /** Gives an end back, behind all others. */
  giveBackLast(finish: Finish): void {
    this.#finishes.push(finish);
  }

  giveBack({ finishes, progress }: Completed): void {
    this.#finishes = [...finishes, ...this.#finishes];
    for (const report of progress) {
      if (!this.#progress.has(report.token)) this.#progress.set(report.token, report);
    }
  }
}

/**
 * What is reported together is in the order of tenants, and keeps its order within each: events of the log that differ only in the
 * task share a row.
 */
export function byTenant(a: { readonly tenant: string }, b: { readonly tenant: string }): number {
  if (a.tenant === b.tenant) return 0;
  return a.tenant < b.tenant ? -1 : 1;
}

/** How many of the first ends, at most `max`, are written together. */
function countWithin(finishes: readonly Finish[], max: number): number {
  let bytes = 0;
  for (const [index, { heldBytes }] of finishes.entries()) {
    bytes += heldBytes;
    if (index === max || (index > 0 && bytes > BYTES_PER_TAKE_MAX)) return index;
  }
  return finishes.length;
}

function summaryOf({ schedule }: TaskRecord, settlement: Settlement): { summary?: string } {
  if (schedule === null || settlement.to !== "done") return {};
  const summary = runSummary(settlement.result);
  return summary === undefined ? {} : { summary };
}

function finishOf(
  { seq, tenant, lane, agent, callbackUrl }: TaskRecord,
  token: number,
  settlement: Settlement,
): Finish {
  return {
    seq,
    token,
    settlement,
    tenant,
    lane,
    agent,
    callsBack: callbackUrl !== null,
    failures: 0,
    freesSlot: true,
    heldBytes: 0,
  };
}
