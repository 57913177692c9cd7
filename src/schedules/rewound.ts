import type { Rule } from "../model/rule.ts";
import { countMoments, lastMoment } from "./moments.ts";
import { MOMENTS_MAX } from "./plan-fire.ts";

/** What a row stands for: the first `moments` − 1 due times from `firstDueAt` on, and `dueAt`. */
export interface RowSpan {
  readonly firstDueAt: number;
  readonly dueAt: number;
  readonly moments: number;
  /** Whether `dueAt` started a run. */
  readonly started: boolean;
}

/**
 * What a row whose last due time lies ahead of `now` stands for once the others that lie ahead are due again; 0 `moments`:
 * nothing. Where a run was started, its own due time stays.
 */
export function rewound(
  row: RowSpan,
  { rule, anchorAt: anchor }: { readonly rule: Rule; readonly anchorAt: number },
  now: number,
): Pick<RowSpan, "firstDueAt" | "dueAt" | "moments"> {
  const { firstDueAt, dueAt, moments, started } = row;
  const past = firstDueAt > now ? 0 : pastMoments(row, { rule, anchor }, now);
  if (started)
    return past === 0 ? { firstDueAt: dueAt, dueAt, moments: 1 } : { firstDueAt, dueAt, moments: past + 1 };
  if (past === 0) return { firstDueAt, dueAt, moments: 0 };
  const last =
    past === 1 ? null : lastMoment(rule, { after: firstDueAt, anchor, until: Math.min(now, dueAt) });
  return { firstDueAt, dueAt: last ?? firstDueAt, moments: Math.min(past, moments) };
}

/** How many of its due times have come by now; of a row from before the rule was changed only the first is known. */
function pastMoments(
  { firstDueAt, moments }: RowSpan,
  { rule, anchor }: { rule: Rule; anchor: number },
  now: number,
): number {
  if (moments === 1 || anchor > firstDueAt) return 1;
  const most = Math.min(moments - 1, MOMENTS_MAX - 1);
  return Math.min(
    1 + countMoments(rule, { after: firstDueAt, anchor, until: now, max: MOMENTS_MAX - 1 }),
    most,
  );
}
