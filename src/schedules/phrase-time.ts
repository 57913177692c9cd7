import type { PhraseReader } from "./phrase-reader.ts";
import { HOUR_MS, MINUTE_MS, SECOND_MS, timeText } from "./wall-clock.ts";

/** The time of day if a phrase names a day and no time. */
const DEFAULT_TIME = "09:00";

/**
 * Reads the optional `[at] TIME` of a named day; 09:00 if there is none. Midnight is refused: it may be the beginning or the
 * end of that day.
 */
export function readOptionalTime(reader: PhraseReader): string {
  const hasAt = reader.takeOneOf("at") !== undefined;
  if (reader.peek()?.text === MIDNIGHT) {
    throw reader.unclear("midnight may be the beginning of that day or its end: write 00:00 or 23:59");
  }
  return hasAt || isTime(reader) ? readTime(reader) : DEFAULT_TIME;
}

/** The same for a rule of every day, or every few days. Midnight is accepted: it is between one day and the next. */
export function readDailyTime(reader: PhraseReader): string {
  const hasAt = reader.takeOneOf("at") !== undefined;
  return hasAt || isTime(reader) ? readTime(reader) : DEFAULT_TIME;
}

function isTime(reader: PhraseReader): boolean {
  const { kind, text = "" } = reader.peek() ?? {};
  return kind === "time" || kind === "number" || TIME_NAMES.has(text);
}

const MIDNIGHT = "midnight";

const TIME_NAMES: ReadonlyMap<string, string> = new Map([
  ["noon", "12:00"],
  [MIDNIGHT, "00:00"],
]);

/** Reads `17:00`, `5:30 pm`, `9am`, `noon` or `midnight`, and returns it as `HH:MM`. */
export function readTime(reader: PhraseReader): string {
  const named = reader.takeFrom(TIME_NAMES);
  if (named !== undefined) return named;
  const clock = reader.take("time");
  const hour = clock === undefined ? reader.take("number") : undefined;
  const text = clock ?? hour;
  if (text === undefined) throw reader.expected("a time like 17:00", TIME_NAMES.keys());
  const half = reader.takeOneOf("am", "pm");
  if (clock === undefined && half === undefined) {
    throw reader.unclear(`"${text}" may be a morning or an evening: write a time like 09:00 or 9am`);
  }
  const time = TIME.exec(text);
  const [hours = Number.NaN, minutes = 0, seconds = 0] = (time ?? [])
    .slice(1)
    .map((part) => Number(part ?? 0));
  const isHour = half === undefined ? hours <= 23 : hours >= 1 && hours <= 12;
  if (time === null || !isHour || minutes > 59 || seconds >= 60) {
    throw reader.unclear(`${text}${half ?? ""} is no time of day: write one like 09:30, 17:00 or 9:30pm`);
  }
  const hourOfDay = half === undefined ? hours : (hours % 12) + (half === "pm" ? 12 : 0);
  return timeText(hourOfDay * HOUR_MS + minutes * MINUTE_MS + Math.round(seconds * SECOND_MS));
}

const TIME = /^(\d{1,2})(?::(\d\d)(?::(\d\d(?:\.\d{1,3})?))?)?$/;
