import type { CatchUp, Overlap } from "../model/schedule.ts";
import { type Limits, runsLeft, type Timed } from "./limits.ts";
import { countMoments, lastMoment, momentsBetween } from "./moments.ts";
import { type OpenSpan, openSpans, type TakenTimes } from "./open-spans.ts";

/** A due time that is noticed later than this is late: `catchUp` decides whether it still fires. */
export const LATE_MS = 60_000;
/** How many late due times `catch_up: all` runs at most: the newest ones. */
export const CATCH_UP_MAX = 100;
/** Due times that one row covers are counted up to this number. A row with this number may cover more. */
export const MOMENTS_MAX = 100_000;
/** The most due times that are on time: nothing is due more often than once a second. */
const ON_TIME_MAX = LATE_MS / 1_000 + 1;

/** The fields of a schedule that decide what its due times lead to. */
export interface DueSchedule extends Limits, Timed {
  /** The first due time without a row. It is due even if the rule no longer contains it: the rules of a zone may change. */
  readonly nextFireAt: number;
  readonly overlap: Overlap;
  readonly catchUp: CatchUp;
  /** How late a due time may still fire; null: any time. */
  readonly usefulForMs: number | null;
  /** How many of its runs have not ended. */
  readonly openRuns: number;
  /** Due times from `nextFireAt` on that have started a run already; left out: none. */
  readonly taken?: TakenTimes;
}

export interface FirePlan {
  /**
   * In order of their due times. Each due time up to now belongs to one of them, except for those that are taken and those after
   * the last run that `maxRuns` allows.
   */
  readonly runs: readonly PlannedRun[];
  /** The first due time after now; null: there is none. */
  readonly nextFireAt: number | null;
}

export type PlannedRun = PlannedMoments &
  (
    | {
        readonly status: "running";
        /** Whether it cancels earlier runs that have not ended. */
        readonly replaces: boolean;
        /** Whether it waits for earlier runs even if the overlap policy is `allow`. */
        readonly inTurn: boolean;
      }
    | { readonly status: "skipped" | "missed"; readonly reason: string }
  );

export interface PlannedMoments {
  readonly firstDueAt: number;
  /** The last due time that it covers. */
  readonly dueAt: number;
  readonly moments: number;
}

/**
 * Plans the runs for all due times of a schedule up to now. Takes some milliseconds at most, however many there are.
 *
 * @example
 * const { runs, nextFireAt } = planFire(schedule, now);
 */
export function planFire(schedule: DueSchedule, now: number): FirePlan {
  const { spans, nextFireAt } = openSpans(schedule, now);
  const fates: Fate[][] = [];
  // Catches up with the newest due times of all spans.
  let left = spans.at(-1)?.isFollowed === false ? CATCH_UP_MAX : 0;
  const isLate = (spans[0]?.first ?? now) <= lastLate(now);
  for (const span of spans.toReversed()) {
    const due = { ...schedule, ...span, nextFireAt: span.first };
    const own = isLate ? fatesOfLate(due, now, left) : fatesOfOnTime(due, now);
    left -= own.filter(({ inTurn }) => inTurn).length;
    fates.unshift(own);
  }
  return { runs: upToLast(withOverlap(fates, schedule), runsLeft(schedule)), nextFireAt };
}

/** After the last run that `maxRuns` allows, nothing is due any more. */
function upToLast(runs: readonly PlannedRun[], left: number): readonly PlannedRun[] {
  if (left === 0) return [];
  let started = 0;
  const last = runs.findIndex(({ status }) => {
    if (status === "running") started += 1;
    return started >= left;
  });
  return last === -1 ? runs : runs.slice(0, last + 1);
}

/** One span of the due times of a schedule: `nextFireAt` is its first. */
type DueSpan = DueSchedule & OpenSpan;

/** The plan for due times before the overlap policy is applied. */
interface Fate extends PlannedMoments {
  /** Why they do not fire; null: they fire. */
  readonly missed: string | null;
  readonly inTurn: boolean;
}

function fires(moments: PlannedMoments): Fate {
  return { ...moments, missed: null, inTurn: false };
}

function misses(moments: PlannedMoments, reason: string): Fate {
  return { ...moments, missed: reason, inTurn: false };
}

/** If any due time is late, `catchUp` applies to all due times up to now, including those on time. */
function fatesOfLate(schedule: DueSpan, now: number, caughtUpMax: number): Fate[] {
  switch (schedule.catchUp) {
    case "none":
      return fatesOfNone(schedule, now);
    case "one":
      return fatesOfOne(schedule, now);
    case "all":
      return fatesOfAll(schedule, now, caughtUpMax);
  }
}

/** Late due times are missed. Those on time fire. */
function fatesOfNone(schedule: DueSpan, now: number): Fate[] {
  const onTime = fatesOfOnTime(schedule, now);
  if (schedule.nextFireAt > lastLate(now)) return onTime;
  return [misses(upTo(schedule, Math.min(lastLate(now), schedule.until)), TOO_LATE), ...onTime];
}

/** One run at the last due time covers all of them, unless a later one has run already. */
function fatesOfOne(schedule: DueSpan, now: number): Fate[] {
  const all = upTo(schedule, schedule.until);
  if (schedule.isFollowed) return [misses(all, RAN_LATER)];
  return [isUseless(all.dueAt, schedule, now) ? misses(all, uselessReason(schedule)) : fires(all)];
}

/** One run for each of the newest due times that are still useful, and one row for all before them. */
function fatesOfAll(schedule: DueSpan, now: number, max: number): Fate[] {
  const newest = newestUseful(schedule, now, max);
  const [first] = newest;
  const fired = newest.map((moment): Fate => ({ ...fires(only(moment)), inTurn: true }));
  if (first === schedule.nextFireAt) return fired;
  const before = upTo(schedule, first === undefined ? schedule.until : first - 1);
  const useless = isUseless(before.dueAt, schedule, now);
  return [misses(before, useless ? uselessReason(schedule) : TOO_MANY), ...fired];
}

/** Searches from the last due time backwards, since there may be any number before. */
function newestUseful(schedule: DueSpan, now: number, max: number): number[] {
  const found: number[] = [];
  let moment = lastUpTo(schedule, schedule.until);
  while (moment !== null && found.length < max && !isUseless(moment, schedule, now)) {
    found.unshift(moment);
    moment = lastUpTo(schedule, moment - 1);
  }
  return found;
}

function fatesOfOnTime(schedule: DueSpan, now: number): Fate[] {
  const { rule, anchorAt: anchor, nextFireAt, until } = schedule;
  const late = lastLate(now);
  const isFirst = nextFireAt > late;
  const after = Math.max(nextFireAt, late);
  const later = momentsBetween(rule, { after, anchor, until, limit: ON_TIME_MAX });
  return [...(isFirst ? [nextFireAt] : []), ...later].map((moment) =>
    isUseless(moment, schedule, now) ? misses(only(moment), uselessReason(schedule)) : fires(only(moment)),
  );
}

/** Applies the overlap policy in order: to runs that have not ended, and to runs that this plan starts. */
function withOverlap(spans: readonly (readonly Fate[])[], { overlap, openRuns }: DueSchedule): PlannedRun[] {
  const runs: PlannedRun[] = [];
  let isGoing = openRuns > 0;
  const fates = spans.flatMap((span) => span.map((fate, index) => ({ ...fate, isFirst: index === 0 })));
  for (const { missed, inTurn, isFirst, ...moments } of fates) {
    const before = runs.at(-1);
    if (missed !== null) {
      // Between two spans is a due time with a row of its own, so rows are not joined across spans.
      if (before?.status === "missed" && !isFirst) runs[runs.length - 1] = joined(before, moments);
      else runs.push({ ...moments, status: "missed", reason: missed });
    } else if (isGoing && overlap === "skip" && !inTurn) {
      // A schedule that fires late has several: a row for each would make its transaction many times longer.
      if (before?.status === "skipped" && !isFirst) runs[runs.length - 1] = joined(before, moments);
      else runs.push({ ...moments, status: "skipped", reason: STILL_GOING });
    } else {
      runs.push({ ...moments, status: "running", replaces: overlap === "replace" && !inTurn, inTurn });
      isGoing = true;
    }
  }
  return runs;
}

/** Consecutive due times that are missed, or skipped, share a row. */
function joined<Row extends PlannedMoments>(row: Row, { dueAt, moments }: PlannedMoments): Row {
  return { ...row, dueAt, moments: Math.min(row.moments + moments, MOMENTS_MAX) };
}

/** The last due time that counts as late. */
function lastLate(now: number): number {
  return now - LATE_MS - 1;
}

function isUseless(moment: number, { usefulForMs }: DueSchedule, now: number): boolean {
  return usefulForMs !== null && now - moment > usefulForMs;
}

function only(moment: number): PlannedMoments {
  return { firstDueAt: moment, dueAt: moment, moments: 1 };
}

/** All due times without a row, up to `until`. */
export function upTo(
  schedule: Pick<DueSchedule, "rule" | "anchorAt" | "nextFireAt">,
  until: number,
): PlannedMoments {
  const { rule, anchorAt: anchor, nextFireAt } = schedule;
  return {
    firstDueAt: nextFireAt,
    dueAt: lastUpTo(schedule, until) ?? nextFireAt,
    moments: 1 + countMoments(rule, { after: nextFireAt, anchor, until, max: MOMENTS_MAX - 1 }),
  };
}

function lastUpTo(
  { rule, anchorAt: anchor, nextFireAt }: Pick<DueSchedule, "rule" | "anchorAt" | "nextFireAt">,
  until: number,
): number | null {
  if (until < nextFireAt) return null;
  return lastMoment(rule, { after: nextFireAt, anchor, until }) ?? nextFireAt;
}

const STILL_GOING = "the previous run has not ended";
const TOO_LATE = `the due time was more than ${LATE_MS / 1_000} s late, and catch_up is none`;
const RAN_LATER = "a later due time has run already: the clock was set back";
const TOO_MANY = `more than ${CATCH_UP_MAX} due times had passed: only the newest ${CATCH_UP_MAX} are caught up`;

function uselessReason({ usefulForMs }: DueSchedule): string {
  return `the due time was more than ${(usefulForMs ?? 0) / 1_000} s late, the limit of useful_for`;
}
