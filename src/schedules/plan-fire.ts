import type { CatchUp, Overlap } from "../model/schedule.ts";
import { type Limits, runsLeft, type Timed } from "./limits.ts";
import { countMoments, lastMoment, momentsBetween } from "./moments.ts";
import { type OpenSpan, openSpans, type TakenTimes } from "./open-spans.ts";

/** A moment that is noticed later than this was slept through: what becomes of it, `catchUp` says. */
export const LATE_MS = 60_000;
/** The most moments that catching up with all of them runs; the newest count. */
export const CATCH_UP_MAX = 100;
/** How far moments are counted that one row stands for: it then stands for as many or more. */
export const MOMENTS_MAX = 100_000;
/** Nothing is due more often than once a second. */
const ON_TIME_MAX = LATE_MS / 1_000 + 1;

/** What decides over the moments of a schedule. */
export interface DueSchedule extends Limits, Timed {
  /** The first moment that has no row yet. It is due whatever the rule says of it today: zones change their minds. */
  readonly nextFireAt: number;
  readonly overlap: Overlap;
  readonly catchUp: CatchUp;
  /** How late a moment may still fire; null: however late. */
  readonly usefulForMs: number | null;
  /** How many of its runs go. */
  readonly openRuns: number;
  /** Due times from `nextFireAt` on that have started a run already; left out: none. */
  readonly taken?: TakenTimes;
}

export interface FirePlan {
  /** In the order of their moments: each moment up to now belongs to one of them, but for those that are taken and those after the last run that it may make. */
  readonly runs: readonly PlannedRun[];
  /** The first moment after now; null: there is none. */
  readonly nextFireAt: number | null;
}

export type PlannedRun = PlannedMoments &
  (
    | {
        readonly status: "running";
        /** It ends those that go. */
        readonly replaces: boolean;
        /** It waits for those before it, also where runs otherwise do not. */
        readonly inTurn: boolean;
      }
    | { readonly status: "skipped" | "missed"; readonly reason: string }
  );

export interface PlannedMoments {
  readonly firstDueAt: number;
  /** The last moment that it stands for. */
  readonly dueAt: number;
  readonly moments: number;
}

/**
 * What becomes of all moments of a schedule that have come by now. Costs some milliseconds at most, however many there are.
 *
 * @example
 * const { runs, nextFireAt } = planFire(schedule, now);
 */
export function planFire(schedule: DueSchedule, now: number): FirePlan {
  const { spans, nextFireAt } = openSpans(schedule, now);
  const fates: Fate[][] = [];
  // The newest are caught up with, over all spans.
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

/** Once it has made the last run that it may make, nothing of it is due any more. */
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

/** What becomes of moments before anybody has looked at which runs still go. */
interface Fate extends PlannedMoments {
  /** Why they do not fire; null: they do. */
  readonly missed: string | null;
  readonly inTurn: boolean;
}

function fires(moments: PlannedMoments): Fate {
  return { ...moments, missed: null, inTurn: false };
}

function misses(moments: PlannedMoments, reason: string): Fate {
  return { ...moments, missed: reason, inTurn: false };
}

/** Whoever slept through a moment catches up with all that have come by now: those on time are no others' affair. */
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

/** Those that are late are missed. */
function fatesOfNone(schedule: DueSpan, now: number): Fate[] {
  const onTime = fatesOfOnTime(schedule, now);
  if (schedule.nextFireAt > lastLate(now)) return onTime;
  return [misses(upTo(schedule, Math.min(lastLate(now), schedule.until)), TOO_LATE), ...onTime];
}

/** The last moment for all of them, unless one behind them has run already. */
function fatesOfOne(schedule: DueSpan, now: number): Fate[] {
  const all = upTo(schedule, schedule.until);
  if (schedule.isFollowed) return [misses(all, RAN_LATER)];
  return [isUseless(all.dueAt, schedule, now) ? misses(all, uselessReason(schedule)) : fires(all)];
}

/** Each moment for itself: the newest that are still of use, and one row for all before them. */
function fatesOfAll(schedule: DueSpan, now: number, max: number): Fate[] {
  const newest = newestUseful(schedule, now, max);
  const [first] = newest;
  const fired = newest.map((moment): Fate => ({ ...fires(only(moment)), inTurn: true }));
  if (first === schedule.nextFireAt) return fired;
  const before = upTo(schedule, first === undefined ? schedule.until : first - 1);
  const useless = isUseless(before.dueAt, schedule, now);
  return [misses(before, useless ? uselessReason(schedule) : TOO_MANY), ...fired];
}

/** Found from the last one backwards, since there may be any number before them. */
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

/** Looks at what still goes, and at what has just been started, one after the other. */
function withOverlap(spans: readonly (readonly Fate[])[], { overlap, openRuns }: DueSchedule): PlannedRun[] {
  const runs: PlannedRun[] = [];
  let isGoing = openRuns > 0;
  const fates = spans.flatMap((span) => span.map((fate, place) => ({ ...fate, isFirst: place === 0 })));
  for (const { missed, inTurn, isFirst, ...moments } of fates) {
    const before = runs.at(-1);
    if (missed !== null) {
      // Between two spans lies one that has a row of its own.
      if (before?.status === "missed" && !isFirst) runs[runs.length - 1] = joined(before, moments);
      else runs.push({ ...moments, status: "missed", reason: missed });
    } else if (isGoing && overlap === "skip" && !inTurn) {
      runs.push({ ...moments, status: "skipped", reason: STILL_GOING });
    } else {
      runs.push({ ...moments, status: "running", replaces: overlap === "replace" && !inTurn, inTurn });
      isGoing = true;
    }
  }
  return runs;
}

/** Those that are missed one after the other share a row. */
function joined<Row extends PlannedMoments>(row: Row, { dueAt, moments }: PlannedMoments): Row {
  return { ...row, dueAt, moments: Math.min(row.moments + moments, MOMENTS_MAX) };
}

/** The last moment that counts as late. */
function lastLate(now: number): number {
  return now - LATE_MS - 1;
}

function isUseless(moment: number, { usefulForMs }: DueSchedule, now: number): boolean {
  return usefulForMs !== null && now - moment > usefulForMs;
}

function only(moment: number): PlannedMoments {
  return { firstDueAt: moment, dueAt: moment, moments: 1 };
}

/** All moments that have no row yet, up to one. */
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

const STILL_GOING = "the run before it is still going";
const TOO_LATE = `it came more than ${LATE_MS / 1_000} s late, and catch_up is none`;
const RAN_LATER = "a later moment has run already: the clock was set back";
const TOO_MANY = `more than ${CATCH_UP_MAX} moments came meanwhile, and only the newest ${CATCH_UP_MAX} are caught up with`;

function uselessReason({ usefulForMs }: DueSchedule): string {
  return `it came more than ${(usefulForMs ?? 0) / 1_000} s late, which is how long it is useful for`;
}
