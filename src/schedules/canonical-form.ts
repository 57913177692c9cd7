import type { EveryRule, Rule, WeeksRule } from "../model/rule.ts";
import { amount, ELAPSED_UNITS, WORKING_DAYS } from "./phrase-words.ts";

/**
 * A rule as a phrase, always the same for the same rule: `every Mon at 09:00`. Parsed at the same time and in the same zone, it
 * results in the same rule.
 */
export function canonicalForm(rule: Rule): string {
  switch (rule.kind) {
    case "once":
      return rule.phrase;
    case "every":
      return everyForm(rule);
    case "days":
      return `every ${rule.every === 1 ? "day" : amount(rule.every, "day")} at ${rule.at}`;
    case "weeks":
      return weeksForm(rule);
    case "cron":
      return rule.expr;
  }
}

/** Never in days, which would be parsed as calendar days. */
function everyForm({ everyMs }: EveryRule): string {
  const unit = ELAPSED_UNITS.find(({ ms }) => everyMs % ms === 0);
  if (unit === undefined) throw new Error(`a step of ${everyMs} ms is no whole number`);
  const count = everyMs / unit.ms;
  return `every ${count === 1 ? unit.name : amount(count, unit.name)}`;
}

function weeksForm({ every, on, at }: WeeksRule): string {
  const days = on.join(", ").replace(/, (\w+)$/, " and $1");
  if (every > 1) return `every ${amount(every, "week")} on ${days} at ${at}`;
  return `every ${on.join() === WORKING_DAYS.join() ? "weekday" : days} at ${at}`;
}
