import { STEP_DAYS_MAX } from "../model/schedule.ts";
import type { PhraseReader } from "./phrase-reader.ts";
import { amount, NUMBER_WORDS, UNITS, UNITS_REFUSED, type Unit, WEEKDAY_NAMES } from "./phrase-words.ts";
import { DAY_MS } from "./wall-clock.ts";

export interface Amount {
  readonly count: number;
  readonly unit: Unit;
}

/** Reads `30 minutes`, `an hour`, `two hours`, `2d` or `half an hour`. */
function readAmount(reader: PhraseReader): Amount {
  if (reader.takeOneOf("half") !== undefined) return readHalfHour(reader);
  const count = reader.takeOneOf("a", "an") === undefined ? readCount(reader) : 1;
  return withUnit(reader, count);
}

/** Reads the rest of `half an hour`. Half a day or week is refused: it is not clear at what time of day it ends. */
export function readHalfHour(reader: PhraseReader): Amount {
  reader.takeOneOf("an");
  if (reader.takeOneOf("hour") === undefined) throw reader.expected('"an hour"');
  return { count: 30, unit: UNITS.get("minutes") as Unit };
}

/** Reads `1 hour 30 minutes`: one amount or several, each of a smaller unit than the one before it. */
export function readAmounts(reader: PhraseReader): [Amount, ...Amount[]] {
  return withFurther(reader, readAmount(reader));
}

/** Reads the amounts that follow a first one. */
export function withFurther(reader: PhraseReader, first: Amount): [Amount, ...Amount[]] {
  const amounts: [Amount, ...Amount[]] = [first];
  let last = first;
  while (isFurther(reader)) {
    const next = readAmount(reader);
    if (unitMs(next.unit) >= unitMs(last.unit)) {
      throw reader.unclear(`larger units come first, each of them once, as in "in 1 hour 30 minutes"`);
    }
    amounts.push(next);
    last = next;
  }
  checkSpan(reader, amounts);
  return amounts;
}

/** `1 hour 30 minutes`. */
export function amountsText(amounts: readonly Amount[]): string {
  return amounts.map(({ count, unit }) => amount(count, unit.name)).join(" ");
}

function isFurther(reader: PhraseReader): boolean {
  if (reader.takeOneOf("and") !== undefined) return true;
  const { kind, text = "" } = reader.peek() ?? {};
  return kind === "number" || NUMBER_WORDS.has(text);
}

function unitMs(unit: Unit): number {
  return unit.kind === "elapsed" ? unit.ms : unit.days * DAY_MS;
}

/** Reads the unit of a count that has been read. */
export function withUnit(reader: PhraseReader, count: number): Amount {
  const amount = { count, unit: readUnit(reader) };
  checkSpan(reader, [amount]);
  return amount;
}

function checkSpan(reader: PhraseReader, amounts: readonly Amount[]): void {
  const ms = amounts.reduce((sum, { count, unit }) => sum + count * unitMs(unit), 0);
  if (ms > STEP_DAYS_MAX * DAY_MS) throw reader.impossible("that is more than 100 years");
}

export function readCount(reader: PhraseReader): number {
  const count = reader.takeFrom(NUMBER_WORDS) ?? readDigits(reader);
  if (count < 1) throw reader.impossible("the number must be at least 1");
  return count;
}

function readDigits(reader: PhraseReader): number {
  const digits = reader.take("number");
  if (digits === undefined) throw reader.expected("a number", NUMBER_WORDS.keys());
  if (reader.takeOneOf(".") !== undefined) {
    throw reader.unclear("it takes whole numbers only: write 90 minutes rather than 1.5 hours");
  }
  return Number(digits);
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
