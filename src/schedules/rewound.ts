import type { Rule } from "../model/rule.ts";
import { countMoments, lastMoment } from "./moments.ts";
import { MOMENTS_MAX, type PlannedMoments } from "./plan-fire.ts";

/** What a row stands for: all due times from the first to the last. */
export interface RowSpan extends PlannedMoments {
  /** Whether the last of them started a run. */
  readonly started: boolean;
}

export interface Rewound {
  /** What the row stands for from now on; null: nothing. */
  readonly row: PlannedMoments | null;
  /** What came before the clock was set back to, and needs a row of its own, since the run's due time lies ahead; null: nothing. */
  readonly rest: PlannedMoments | null;
}

/**
 * What becomes of a row whose last due time lies ahead of `now`, when those others that lie ahead are due again. Where a run
 * was started, its own due time stays, and the row stands for nothing else.
 */
export function rewound(
  row: RowSpan,
  schedule: { readonly rule: Rule; readonly anchorAt: number },
  now: number,
): Rewound {
  const { firstDueAt, dueAt, started } = row;
  const past = firstDueAt > now ? null : pastOf(row, schedule, now);
  if (!started) return { row: past, rest: null };
  return { row: { firstDueAt: dueAt, dueAt, moments: 1 }, rest: past };
}

/** Those that have come by now; of a row from before the rule was changed only the first is known. */
function pastOf(
  { firstDueAt, moments }: RowSpan,
  { rule, anchorAt: anchor }: { readonly rule: Rule; readonly anchorAt: number },
  now: number,
): PlannedMoments {
  const last = anchor > firstDueAt ? null : lastMoment(rule, { after: firstDueAt, anchor, until: now });
  if (last === null) return { firstDueAt, dueAt: firstDueAt, moments: 1 };
  const more = countMoments(rule, { after: firstDueAt, anchor, until: last, max: MOMENTS_MAX - 1 });
  return { firstDueAt, dueAt: last, moments: Math.min(1 + more, moments) };
}
