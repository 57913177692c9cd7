import { type Fields, invalidField } from "../model/input/field-checks.ts";
import type { Rule } from "../model/rule.ts";
import { canonicalForm } from "./canonical-form.ts";
import type { When } from "./phrase.ts";
import { parseSchedule } from "./schedule-input.ts";
import { checkZone } from "./zone.ts";

/**
 * The rule of a `schedule` and the `tz` beside it; where neither the one nor the other names a zone, that of `when`. Two
 * zones that are not the same are refused: nobody could tell which one was meant.
 */
export function parseZonedSchedule({ schedule, tz }: Fields, when: When): Rule {
  const beside = tz === undefined ? undefined : checkZone(tz);
  const rule = parseSchedule(schedule, { now: when.now, tz: beside ?? when.tz });
  if (beside === undefined || rule.tz === beside) return rule;
  throw invalidField(
    "tz",
    `\`tz\` is ${beside} and \`schedule.tz\` is ${rule.tz}: leave one of them out, or write the same twice`,
  );
}

/** A schedule as it was written, with single spaces; in its canonical form where it came as an object. */
export function phraseOf(schedule: unknown, rule: Rule): string {
  return typeof schedule === "string" ? schedule.trim().replaceAll(/\s+/g, " ") : canonicalForm(rule);
}
