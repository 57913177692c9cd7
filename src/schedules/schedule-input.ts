import {
  checkKnown,
  type Fields,
  invalidField,
  isObject,
  optionalNumber,
} from "../model/input/field-checks.ts";
import { choiceFault } from "../model/input/value-faults.ts";
import type { Rule } from "../model/rule.ts";
import { cronRule } from "./cron-rule.ts";
import { aheadFault, STEP_DAYS_MAX } from "./horizon.ts";
import { MUST_BE, missingSchedule, notUnderstood } from "./not-understood.ts";
import { onceAt } from "./once.ts";
import { parsePhrase, type When } from "./phrase.ts";
import { EVERY_MS_MIN } from "./phrase-every.ts";
import { DAY_MS } from "./wall-clock.ts";
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

const FIELDS_OF_KIND: Readonly<Record<string, readonly string[]>> = {
  at: ["kind", "atMs", "tz"],
  every: ["kind", "everyMs", "tz"],
  cron: ["kind", "expr", "tz"],
};

function parseObject(fields: Fields, when: When, field: string): Rule {
  const { kind } = fields;
  const fault = choiceFault(kind, Object.keys(FIELDS_OF_KIND));
  if (fault !== null) throw invalidField(`${field}.kind`, `\`${field}.kind\` must ${fault}`);
  const prefix = `${field}.`;
  checkKnown(fields, FIELDS_OF_KIND[kind as string] as readonly string[], prefix);
  const tz =
    fields["tz"] === undefined || fields["tz"] === null ? when.tz : checkZone(fields["tz"], `${prefix}tz`);
  const { now } = when;
  if (kind === "at") {
    const atMs = requiredNumber(fields, "atMs", { min: 0, max: Number.MAX_SAFE_INTEGER }, prefix);
    const past = aheadFault(atMs, now);
    if (past !== null)
      throw invalidField(`${prefix}atMs`, `\`${prefix}atMs\` ${atMs} cannot be kept: ${past}`);
    return onceAt(atMs, tz);
  }
  if (kind === "every") {
    const range = { min: EVERY_MS_MIN, max: STEP_DAYS_MAX * DAY_MS };
    return { kind: "every", everyMs: requiredNumber(fields, "everyMs", range, prefix), tz };
  }
  const { expr } = fields;
  if (typeof expr !== "string") throw missing(`${prefix}expr`, "a cron expression like 0 9 * * 1-5");
  return cronRule(expr, { now, tz }, `${prefix}expr`);
}

function requiredNumber(
  fields: Fields,
  field: string,
  range: { min: number; max: number },
  prefix: string,
): number {
  const number = optionalNumber(fields, field, { ...range, unit: "milliseconds" }, prefix);
  if (number === undefined) throw missing(`${prefix}${field}`, "an integer of milliseconds");
  return number;
}

function missing(field: string, what: string): Error {
  return invalidField(field, `\`${field}\` must be ${what}`);
}
