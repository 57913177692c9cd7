import { type Rule, scheduleKind } from "../model/rule.ts";
import { PREVIEW_COUNT, type SchedulePreview } from "../model/schedule.ts";
import { canonicalForm } from "./canonical-form.ts";
import { ClockNotes } from "./clock-notes.ts";
import { farthest } from "./horizon.ts";
import { isoText } from "./moment-text.ts";
import { nextMoment } from "./moments.ts";

export interface PreviewRange {
  readonly from: number;
  readonly count: number;
  /** The last time at which it may be due; null, the default: there is none. */
  readonly untilAt?: number | null;
}

/**
 * Computes the preview of a rule as if it was created at `from`. Each step computes one due time, so that the caller can yield
 * to other work between steps.
 */
export function* previewSteps(
  rule: Rule,
  { from, count, untilAt = null }: PreviewRange,
): Generator<void, SchedulePreview, void> {
  const next: string[] = [];
  const notes = new ClockNotes(rule, from);
  const limit = Math.min(count, PREVIEW_COUNT.max);
  const until = Math.min(farthest(from), untilAt ?? Number.POSITIVE_INFINITY);
  let last = from;
  while (next.length < limit) {
    const moment = nextMoment(rule, { after: last, anchor: from });
    if (moment === null || moment > until) break;
    next.push(isoText(rule.tz, moment));
    notes.add(moment);
    last = moment;
    yield;
  }
  return { normalized: canonicalForm(rule), kind: scheduleKind(rule), next, notes: notes.sentences };
}
