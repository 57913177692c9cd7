import { nextDue, type Timed, withinUntil } from "./limits.ts";

/** Spans in one plan: each leads to a row, and a clock that is set back and forth can cause thousands of them. */
const SPANS_MAX = 100;

/** Due times from `nextFireAt` on that have started a run before the clock was set back. They do not start another. */
export interface TakenTimes {
  /** In order. */
  readonly dueAts: readonly number[];
  /** Whether these are all. Otherwise the due times after the last one are unknown. */
  readonly isComplete: boolean;
}

export interface SpannedSchedule extends Timed {
  readonly nextFireAt: number;
  /** Left out: none. */
  readonly taken?: TakenTimes;
}

/** Consecutive due times, none of which is taken. */
export interface OpenSpan {
  readonly first: number;
  /** No due time of the span is later than this. */
  readonly until: number;
  /** Whether a later due time has already started its run. */
  readonly isFollowed: boolean;
}

/** The due times of a schedule that have come and are not taken, and the first one that has not come. */
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
