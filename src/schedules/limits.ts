import type { Rule } from "../model/rule.ts";
import { nextMoment } from "./moments.ts";

/** How many runs a schedule may make. */
export interface Limits {
  /** How often it may fire; null: any number of times. */
  readonly maxRuns: number | null;
  /** How often it has fired. */
  readonly runCount: number;
}

/** When a schedule can be due. */
export interface Timed {
  readonly rule: Rule;
  /** Where steps are counted from. */
  readonly anchorAt: number;
  /** The last time at which it may be due; null: there is none. */
  readonly untilAt: number | null;
}

/** How often it may still fire. */
export function runsLeft({ maxRuns, runCount }: Limits): number {
  return maxRuns === null ? Number.POSITIVE_INFINITY : Math.max(maxRuns - runCount, 0);
}

/** The first moment after another at which a schedule is due; null: it never is again. */
export function nextDue({ rule, anchorAt: anchor, untilAt }: Timed, after: number): number | null {
  const next = nextMoment(rule, { after, anchor });
  return next !== null && next <= (untilAt ?? next) ? next : null;
}

/** The earlier of a moment and the last one at which the schedule may be due. */
export function withinUntil({ untilAt }: Pick<Timed, "untilAt">, moment: number): number {
  return Math.min(moment, untilAt ?? moment);
}
