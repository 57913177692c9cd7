import { canonicalForm } from "./canonical-form.ts";
import { clockNotes } from "./clock-notes.ts";
import { isoText } from "./moment-text.ts";
import { nextMoments } from "./moments.ts";
import { type Rule, scheduleKind } from "./rule.ts";

/** The most moments that one preview lists. */
export const PREVIEW_COUNT_MAX = 1_000;

export interface Preview {
  /** The canonical form of the rule. */
  readonly normalized: string;
  readonly kind: "once" | "recurring";
  /** The next moments, as ISO 8601 with the zone's offset. */
  readonly next: readonly string[];
  /** A sentence for each clock change that one of them has to do with. */
  readonly notes: readonly string[];
}

/** What would come of a rule that was made at `from`. */
export function preview(rule: Rule, { from, count }: { from: number; count: number }): Preview {
  const moments = nextMoments(rule, { after: from, anchor: from, limit: Math.min(count, PREVIEW_COUNT_MAX) });
  return {
    normalized: canonicalForm(rule),
    kind: scheduleKind(rule),
    next: moments.map((moment) => isoText(rule.tz, moment)),
    notes: clockNotes(rule, moments, from),
  };
}
