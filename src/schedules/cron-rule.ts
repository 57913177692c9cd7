import type { CronRule } from "../model/rule.ts";
import { nearestName } from "../model/text/nearest-name.ts";
import { readCron } from "./cron.ts";
import { cronFault } from "./cron-fault.ts";
import { farthest } from "./horizon.ts";
import { nextMoment } from "./moments.ts";
import { impossibleSchedule, notUnderstood } from "./not-understood.ts";

/** Whether a text is meant as a cron expression: no phrase begins with two cron fields, or with an `@`. */
export function looksLikeCron(phrase: string): boolean {
  return /^\s*(?:@|[\d*?]\S*\s+[\d*?])/.test(phrase);
}

/** The rule for a cron expression. Throws if it is invalid, or not due in the next hundred years. */
export function cronRule(expr: string, { now, tz }: { now: number; tz: string }, field: string): CronRule {
  if (expr.length > EXPRESSION_LENGTH_MAX) {
    throw notUnderstood(expr, `it is longer than ${EXPRESSION_LENGTH_MAX} characters`, field);
  }
  const rule: CronRule = { kind: "cron", expr: expr.trim().replaceAll(/\s+/g, " "), tz };
  const nickname = rule.expr.startsWith("@") ? rule.expr.toLowerCase() : undefined;
  if (nickname !== undefined && !NICKNAMES.includes(nickname)) {
    const nearest = nearestName(nickname, NICKNAMES);
    const hint = nearest === undefined ? "" : `: did you mean ${nearest}?`;
    throw notUnderstood(expr, `the names are ${NICKNAMES.join(", ")}${hint}`, field);
  }
  // croner also accepts a date as an expression.
  if (!/^(?:@\w+|\S+(?: \S+){4,5})$/.test(rule.expr)) {
    throw notUnderstood(
      expr,
      "a cron expression has 5 fields, minute hour day month weekday, or 6 with the seconds first",
      field,
    );
  }
  try {
    readCron(rule.expr);
  } catch {
    throw notUnderstood(expr, cronFault(rule.expr), field);
  }
  const next = nextMoment(rule, { after: now, anchor: now });
  if (next === null || next > farthest(now)) {
    throw impossibleSchedule(expr, "no such day comes in the next 100 years", field);
  }
  return rule;
}

/** A list of every minute of an hour takes 160 characters. */
const EXPRESSION_LENGTH_MAX = 1_000;

const NICKNAMES = ["@hourly", "@daily", "@midnight", "@weekly", "@monthly", "@yearly", "@annually"];
