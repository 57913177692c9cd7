import { type Rule, WEEKDAYS, type Weekday, type WeeksRule } from "../model/rule.ts";
import { EVERY_MS_MIN } from "../model/schedule.ts";
import {
  type Amount,
  amountsText,
  readCount,
  readHalfHour,
  refuseMonths,
  withFurther,
  withUnit,
} from "./phrase-amount.ts";
import type { PhraseReader } from "./phrase-reader.ts";
import { readDailyTime, readOptionalTime } from "./phrase-time.ts";
import { NUMBER_WORDS, UNITS, WEEKDAY_NAMES, WORKING_DAYS } from "./phrase-words.ts";

/** Reads what follows `every`. */
export function readEvery(reader: PhraseReader, tz: string): Rule {
  const { kind, text = "" } = reader.peek() ?? {};
  if (kind === "number" || NUMBER_WORDS.has(text)) {
    return everyAmount(reader, withUnit(reader, readCount(reader)), tz);
  }
  if (UNITS.has(text)) return everyAmount(reader, withUnit(reader, 1), tz);
  if (reader.takeOneOf("half") !== undefined) return everyAmount(reader, readHalfHour(reader), tz);
  if (reader.takeOneOf("other") !== undefined) return everyOther(reader, tz);
  if (reader.takeOneOf("weekday", "weekdays") !== undefined) {
    return { kind: "weeks", every: 1, on: WORKING_DAYS, at: readOptionalTime(reader), tz };
  }
  if (WEEKDAY_NAMES.has(text)) {
    return { kind: "weeks", every: 1, on: readWeekdays(reader), at: readOptionalTime(reader), tz };
  }
  refuseMonths(reader);
  throw reader.expected("a number, a unit or a weekday", [
    ...UNITS.keys(),
    ...WEEKDAY_NAMES.keys(),
    "weekday",
  ]);
}

/** Reads what follows `every other`: a unit or a weekday, of which every second one is due. */
function everyOther(reader: PhraseReader, tz: string): Rule {
  const { text = "" } = reader.peek() ?? {};
  if (WEEKDAY_NAMES.has(text)) {
    return { kind: "weeks", every: 2, on: readWeekdays(reader), at: readOptionalTime(reader), tz };
  }
  if (UNITS.has(text)) return everyAmount(reader, withUnit(reader, 2), tz);
  throw reader.expected("a unit or a weekday", [...UNITS.keys(), ...WEEKDAY_NAMES.keys()]);
}

function everyAmount(reader: PhraseReader, first: Amount, tz: string): Rule {
  const { count, unit } = first;
  if (unit.kind === "calendar") {
    if (unit.name === "week") return readWeek(reader, count, tz);
    return { kind: "days", every: count, at: readDailyTime(reader), tz };
  }
  const amounts = withFurther(reader, first);
  const everyMs = amounts.reduce((sum, each) => sum + each.count * (each.unit as typeof unit).ms, 0);
  if (everyMs < EVERY_MS_MIN) throw reader.impossible("the shortest step is 1 second");
  if (["at", "on"].includes(reader.peek()?.text ?? "")) {
    throw reader.unclear(
      `every ${amountsText(amounts)} counts elapsed time and takes no time of day: a cron expression can, like 0 * * * * for every full hour`,
    );
  }
  return { kind: "every", everyMs, tz };
}

/** Reads what follows `weekly` or `every 2 weeks`. */
export function readWeek(reader: PhraseReader, every: number, tz: string): WeeksRule {
  const on = reader.takeOneOf("on") === undefined ? (["Mon"] as const) : readWeekdays(reader);
  return { kind: "weeks", every, on, at: readOptionalTime(reader), tz };
}

/** Reads `Mon`, `mon and thu` or `Mon, Wed, and Fri`. */
function readWeekdays(reader: PhraseReader): Weekday[] {
  const named = new Set<Weekday>();
  do {
    const weekday = reader.takeFrom(WEEKDAY_NAMES);
    if (weekday === undefined) throw reader.expected("a day like Mon", WEEKDAY_NAMES.keys());
    named.add(weekday);
  } while (takeSeparator(reader));
  return WEEKDAYS.filter((weekday) => named.has(weekday));
}

function takeSeparator(reader: PhraseReader): boolean {
  const comma = reader.takeOneOf(",");
  const and = reader.takeOneOf("and", "&");
  return comma !== undefined || and !== undefined;
}
