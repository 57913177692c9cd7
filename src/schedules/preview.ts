import { type Rule, scheduleKind } from "../model/rule.ts";
import { PREVIEW_COUNT, type SchedulePreview } from "../model/schedule.ts";
import { canonicalForm } from "./canonical-form.ts";
import { clockNotes } from "./clock-notes.ts";
import { isoText } from "./moment-text.ts";
import { nextMoments } from "./moments.ts";

/** What would come of a rule that was made at `from`. */
export function preview(rule: Rule, { from, count }: { from: number; count: number }): SchedulePreview {
  const moments = nextMoments(rule, { after: from, anchor: from, limit: Math.min(count, PREVIEW_COUNT.max) });
  return {
    normalized: canonicalForm(rule),
    kind: scheduleKind(rule),
    next: moments.map((moment) => isoText(rule.tz, moment)),
    notes: clockNotes(rule, moments, from),
  };
}
