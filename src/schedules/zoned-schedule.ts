import { invalidField } from "../model/input/field-checks.ts";
import type { Rule } from "../model/rule.ts";
import { canonicalForm } from "./canonical-form.ts";
import type { When } from "./phrase.ts";
import { parseSchedule } from "./schedule-input.ts";
import { checkZone } from "./zone.ts";

/**
 * Parses a `schedule` and the `tz` beside it. If neither names a zone, the zone of `when` applies. Two different zones are
 * refused: it is not clear which one is meant.
 */
export function parseZonedSchedule(
  { schedule, tz }: { readonly schedule: unknown; readonly tz?: unknown },
  when: When,
): Rule {
  const beside = tz === undefined ? undefined : checkZone(tz);
  const rule = parseSchedule(schedule, { now: when.now, tz: beside ?? when.tz });
  if (beside === undefined || rule.tz === beside) return rule;
  throw invalidField(
    "tz",
    `\`tz\` is ${beside} and \`schedule.tz\` is ${rule.tz}: leave one of them out, or write the same twice`,
  );
}

/** A phrase as it was submitted, with single spaces. An object results in the canonical form of its rule. */
export function phraseOf(schedule: unknown, rule: Rule): string {
  return typeof schedule === "string" ? schedule.trim().replaceAll(/\s+/g, " ") : canonicalForm(rule);
}
