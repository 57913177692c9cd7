import type { PhraseReader } from "./phrase-reader.ts";
import { HOUR_MS, MINUTE_MS, SECOND_MS, timeText } from "./wall-clock.ts";

/** When a day is named and no time. */
const DEFAULT_TIME = "09:00";

/** Reads `[at] TIME` where there is one; 09:00 where there is none. */
export function readOptionalTime(reader: PhraseReader): string {
  const isTold = reader.takeOneOf("at") !== undefined;
  const { kind } = reader.peek() ?? {};
  return isTold || kind === "time" || kind === "number" ? readTime(reader) : DEFAULT_TIME;
}

/** Reads `17:00`, `5:30 pm` or `9am`, and answers it as `HH:MM`. */
export function readTime(reader: PhraseReader): string {
  const clock = reader.take("time");
  const hour = clock === undefined ? reader.take("number") : undefined;
  const text = clock ?? hour;
  if (text === undefined) throw reader.expected("a time like 17:00");
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
