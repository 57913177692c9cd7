import { nextDue, type Timed, withinUntil } from "./limits.ts";

/** Spans of one plan: each leaves a row, and a clock that goes back and forth can leave thousands of them. */
const SPANS_MAX = 100;

/** Due times, from `nextFireAt` on, that have started a run already: the clock was set back, and they start no other. */
export interface TakenTimes {
  /** In order. */
  readonly dueAts: readonly number[];
  /** Whether these are all; otherwise nothing is known of what lies behind the last. */
  readonly isComplete: boolean;
}

export interface SpannedSchedule extends Timed {
  readonly nextFireAt: number;
  /** Left out: none. */
  readonly taken?: TakenTimes;
}

/** Due times that come one after the other without one that is taken in between. */
export interface OpenSpan {
  readonly first: number;
  /** None of them lies behind this. */
  readonly until: number;
  /** A due time behind it has come and started its run. */
  readonly isFollowed: boolean;
}

/** The due times of a schedule that have come, up to those that are taken, and the first of those that have not. */
export function openSpans(
  schedule: SpannedSchedule,
  now: number,
): { readonly spans: readonly OpenSpan[]; readonly nextFireAt: number | null } {
  const { nextFireAt, taken = NONE } = schedule;
  const spans: OpenSpan[] = [];
  const next = (after: number) => nextDue(schedule, after);
  const isTaken = new Set(taken.dueAts);
  const firstFree = (moment: number | null) => {
    let free = moment;
    while (free !== null && isTaken.has(free)) free = next(free);
    return free;
  };
  let first: number | null = nextFireAt;
  for (const dueAt of taken.dueAts) {
    if (first === null || dueAt > now) break;
    if (dueAt < first) continue;
    if (spans.length === SPANS_MAX) return { spans, nextFireAt: first };
    if (dueAt > first) spans.push({ first, until: dueAt - 1, isFollowed: true });
    first = next(dueAt);
  }
  const isKnown = taken.isComplete || (taken.dueAts.at(-1) ?? 0) > now;
  if (first === null || first > now || !isKnown) return { spans, nextFireAt: firstFree(first) };
  spans.push({ first, until: withinUntil(schedule, now), isFollowed: false });
  return { spans, nextFireAt: firstFree(next(now)) };
}

const NONE: TakenTimes = { dueAts: [], isComplete: true };
