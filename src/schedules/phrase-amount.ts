import { STEP_DAYS_MAX } from "./horizon.ts";
import type { PhraseReader } from "./phrase-reader.ts";
import { UNITS, UNITS_REFUSED, type Unit, WEEKDAY_NAMES } from "./phrase-words.ts";
import { DAY_MS } from "./wall-clock.ts";

export interface Amount {
  readonly count: number;
  readonly unit: Unit;
}

/** Reads `30 minutes`, `an hour` or `2d`. */
export function readAmount(reader: PhraseReader): Amount {
  const count = reader.takeOneOf("a", "an") === undefined ? readCount(reader) : 1;
  return withUnit(reader, count);
}

/** Reads the unit of a count that has been read. */
export function withUnit(reader: PhraseReader, count: number): Amount {
  const unit = readUnit(reader);
  const days = unit.kind === "elapsed" ? (count * unit.ms) / DAY_MS : count * unit.days;
  if (days > STEP_DAYS_MAX) throw reader.impossible("that is more than 100 years");
  return { count, unit };
}

export function readCount(reader: PhraseReader): number {
  const digits = reader.take("number");
  if (digits === undefined) throw reader.expected("a number");
  if (reader.takeOneOf(".") !== undefined) {
    throw reader.unclear("it takes whole numbers only: write 90 minutes rather than 1.5 hours");
  }
  const count = Number(digits);
  if (count < 1) throw reader.impossible("the number must be at least 1");
  return count;
}

function readUnit(reader: PhraseReader): Unit {
  const unit = reader.takeFrom(UNITS);
  if (unit !== undefined) return unit;
  refuseMonths(reader);
  const weekday = WEEKDAY_NAMES.get(reader.peek()?.text.replace(/s$/, "") ?? "");
  if (weekday !== undefined) {
    throw reader.unclear(`days of the week are not counted: write "every 2 weeks on ${weekday}"`);
  }
  throw reader.expected("a unit like minutes", UNITS.keys());
}

export function refuseMonths(reader: PhraseReader): void {
  const { text = "" } = reader.peek() ?? {};
  if (!UNITS_REFUSED.has(text)) return;
  throw reader.unclear(
    `"${text}" does not say which day: write a date, or a cron expression like 0 9 1 * * for the first of every month`,
  );
}
