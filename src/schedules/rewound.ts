import type { Rule } from "../model/rule.ts";
import { countMoments, lastMoment } from "./moments.ts";
import { MOMENTS_MAX, type PlannedMoments } from "./plan-fire.ts";

/** The due times that a row covers, from the first to the last. */
export interface RowSpan extends PlannedMoments {
  /** Whether the last of them started a run. */
  readonly started: boolean;
}

export interface Rewound {
  /** The due times that the row covers from now on; null: none. */
  readonly row: PlannedMoments | null;
  /** Past due times that need a row of their own, since the due time of the row's run is in the future; null: none. */
  readonly rest: PlannedMoments | null;
}

/**
 * Changes a row whose last due time is in the future since the clock was set back, so that its future due times are due again.
 * If the row started a run, the due time of that run stays, and the row covers only that.
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

/** The due times of the row up to now. If the rule was changed after the row, only the first is known. */
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
