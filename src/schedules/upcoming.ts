import type { Rule } from "../model/rule.ts";
import { countMoments, nextMoment } from "./moments.ts";

/** Due times before the range that are subtracted from `runsLeft`, at most: each costs about a microsecond. */
const COUNTED_MAX = 1_000;

/** The fields of a schedule that determine its due times. */
export interface DueSchedule {
  readonly rule: Rule;
  readonly anchorAt: number;
  /** Null: nothing is due. */
  readonly nextFireAt: number | null;
  /** The last time at which it may be due; null: there is none. */
  readonly untilAt: number | null;
  /** How often it may still fire; null: any number of times. */
  readonly runsLeft: number | null;
}

export interface UpcomingRange {
  readonly from: number;
  readonly to: number;
  readonly limit: number;
  /** Due times of one schedule at most. Left out: any number. */
  readonly perSchedule?: number;
}

/**
 * Collects the first `limit` due times of many schedules, one schedule after the other. For each schedule only due times are
 * computed that are earlier than the last one kept so far. So ten thousand schedules that are due each second cost little more
 * than a few.
 */
export class Upcoming<Schedule extends DueSchedule> {
  readonly #range: UpcomingRange;
  /** In the order of their due times. */
  #kept: { readonly schedule: Schedule; readonly at: number }[] = [];
  #isTruncated = false;

  constructor(range: UpcomingRange) {
    this.#range = range;
  }

  /** Each step computes one due time, so that the caller can yield to other work between steps. */
  *add(schedule: Schedule): Generator<void, void, void> {
    const found: { readonly schedule: Schedule; readonly at: number }[] = [];
    for (const at of this.#dueTimes(schedule)) {
      found.push({ schedule, at });
      yield;
    }
    if (found.length === 0) return;
    const all = [...this.#kept, ...found].sort((a, b) => a.at - b.at);
    this.#isTruncated ||= all.length > this.#range.limit;
    this.#kept = all.slice(0, this.#range.limit);
  }

  get result(): {
    readonly dueTimes: readonly { schedule: Schedule; at: number }[];
    readonly truncated: boolean;
  } {
    return { dueTimes: this.#kept, truncated: this.#isTruncated };
  }

  *#dueTimes({ rule, anchorAt: anchor, nextFireAt, untilAt, runsLeft }: Schedule): Generator<number> {
    const { from, limit, perSchedule = Number.POSITIVE_INFINITY } = this.#range;
    if (nextFireAt === null) return;
    const to = Math.min(this.#range.to, untilAt ?? Number.POSITIVE_INFINITY);
    let [at, left]: [number | null, number] = [nextFireAt, runsLeft ?? Number.POSITIVE_INFINITY];
    if (at < from) {
      if (runsLeft !== null) {
        left -= countMoments(rule, { after: at - 1, anchor, until: from - 1, max: COUNTED_MAX });
      }
      at = nextMoment(rule, { after: from - 1, anchor });
    }
    // One more than is kept, to see whether something was left out.
    for (let most = Math.min(limit + 1, left, perSchedule); at !== null && at <= to && most > 0; most -= 1) {
      const last = this.#kept.length < limit ? undefined : this.#kept.at(-1);
      if (last !== undefined && at >= last.at) {
        this.#isTruncated = true;
        return;
      }
      yield at;
      at = nextMoment(rule, { after: at, anchor });
    }
  }
}
