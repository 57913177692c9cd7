import { type Fields, invalidField, isObject } from "../model/input/field-checks.ts";
import { readFields } from "../model/input/read-fields.ts";
import { RULE_FIELDS } from "../model/input/schedule-schema.ts";
import type { FieldTable, Schema } from "../model/input/schema.ts";
import { choiceFault } from "../model/input/value-faults.ts";
import type { Rule } from "../model/rule.ts";
import { cronRule } from "./cron-rule.ts";
import { aheadFault } from "./horizon.ts";
import { MUST_BE, missingSchedule, notUnderstood } from "./not-understood.ts";
import { onceAt } from "./once.ts";
import { parsePhrase, type When } from "./phrase.ts";
import { checkZone } from "./zone.ts";

/**
 * Parses a phrase or an object into a rule. Throws if any word is not understood, or if the time is past or never comes. The
 * error says what to write instead.
 *
 * @example
 * parseSchedule("every monday at 9am", { now: clock.now(), tz: "Europe/Berlin" });
 * parseSchedule({ kind: "every", everyMs: 30_000 }, { now: clock.now(), tz: "UTC" });
 */
export function parseSchedule(input: unknown, { now, tz }: When, field = "schedule"): Rule {
  const when = { now, tz: checkZone(tz) };
  if (typeof input === "string") return parsePhrase(input, when, field);
  if (input === undefined) throw missingSchedule(field);
  if (!isObject(input)) throw notUnderstood(input, `it ${MUST_BE}`, field);
  return parseObject(input, when, field);
}

const KINDS = Object.keys(RULE_FIELDS);

function parseObject(given: Fields, when: When, field: string): Rule {
  const prefix = `${field}.`;
  const fault = choiceFault(given["kind"], KINDS);
  if (fault !== null) throw invalidField(`${prefix}kind`, `\`${prefix}kind\` must ${fault}`);
  const kind = given["kind"] as keyof typeof RULE_FIELDS;
  const { now } = when;
  if (kind === "at") {
    const { atMs, tz } = readFields(objectOf(RULE_FIELDS.at), given, {}, prefix);
    const past = aheadFault(atMs, now);
    if (past !== null)
      throw invalidField(`${prefix}atMs`, `\`${prefix}atMs\` ${atMs} is not possible: ${past}`);
    return onceAt(atMs, zoneOf(tz, when, prefix));
  }
  if (kind === "every") {
    const { everyMs, tz } = readFields(objectOf(RULE_FIELDS.every), given, {}, prefix);
    return { kind, everyMs, tz: zoneOf(tz, when, prefix) };
  }
  const { expr, tz } = readFields(objectOf(RULE_FIELDS.cron), given, {}, prefix);
  return cronRule(expr, { now, tz: zoneOf(tz, when, prefix) }, `${prefix}expr`);
}

function objectOf<Table extends FieldTable>(fields: Table): Schema<Table> {
  return { name: "Schedule", noun: "schedule", description: "", fields, examples: [] };
}

function zoneOf(tz: string | undefined, when: When, prefix: string): string {
  return tz === undefined ? when.tz : checkZone(tz, `${prefix}tz`);
}
