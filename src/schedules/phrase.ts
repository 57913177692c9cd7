import { type OnceRule, type Rule, WEEKDAYS, type Weekday } from "../model/rule.ts";
import { parseRfc3339 } from "../model/text/rfc3339.ts";
import { cronRule, looksLikeCron } from "./cron-rule.ts";
import { aheadFault } from "./horizon.ts";
import { notUnderstood } from "./not-understood.ts";
import { onceAt, onceOnWall } from "./once.ts";
import { amountsText, readAmounts } from "./phrase-amount.ts";
import { readEvery, readWeek } from "./phrase-every.ts";
import { PhraseReader } from "./phrase-reader.ts";
import { readDailyTime, readOptionalTime, readTime } from "./phrase-time.ts";
import { WEEKDAY_NAMES } from "./phrase-words.ts";
import { DAY_MS, dateText, dayOf, dayOfDate, HOUR_MS, timeOfText, weekdayOf } from "./wall-clock.ts";
import { momentOf, wallAt } from "./zone.ts";

/** The time and the zone in which a phrase is parsed. */
export interface When {
  readonly now: number;
  readonly tz: string;
}

/**
 * Parses a phrase like `every Mon at 09:00`. The grammar is small and refuses a phrase with any unknown word: a schedule that
 * was only partly understood would fire at the wrong time.
 */
export function parsePhrase(phrase: string, when: When, field: string): Rule {
  if (looksLikeCron(phrase)) return cronRule(phrase, when, field);
  if (phrase.length > PHRASE_LENGTH_MAX) {
    throw notUnderstood(phrase, `it is longer than ${PHRASE_LENGTH_MAX} characters`, field);
  }
  const reader = new PhraseReader(phrase, field);
  const rule = readPhrase(reader, when);
  reader.end();
  const fault = rule.kind === "once" ? aheadFault(rule.atMs, when.now) : null;
  if (fault !== null) throw reader.impossible(fault);
  return rule;
}

/** All seven weekdays in full take a hundred characters. */
const PHRASE_LENGTH_MAX = 500;

function readPhrase(reader: PhraseReader, when: When): Rule {
  const { tz } = when;
  switch (reader.takeOneOf(...FIRST_WORDS)) {
    case "in":
      return readIn(reader, when);
    case "at":
      return readAt(reader, when);
    case "today":
      return readToday(reader, when);
    case "tonight":
      return readTonight(reader, when);
    case "tomorrow":
      return readTomorrow(reader, when);
    case "on":
      return readOn(reader, when);
    case "next":
      return readNext(reader, when);
    case "every":
      return readEvery(reader, tz);
    case "hourly":
      return { kind: "every", everyMs: HOUR_MS, tz };
    case "daily":
      return { kind: "days", every: 1, at: readDailyTime(reader), tz };
    case "weekly":
      return readWeek(reader, 1, tz);
    default:
      throw reader.expected(`one of ${FIRST_WORDS.join(", ")}`, FIRST_WORDS);
  }
}

const FIRST_WORDS = [
  "in",
  "at",
  "today",
  "tonight",
  "tomorrow",
  "on",
  "next",
  "every",
  "hourly",
  "daily",
  "weekly",
] as const;

/** Days and weeks keep the time of day. Hours and smaller units are then added as elapsed time. */
function readIn(reader: PhraseReader, { now, tz }: When): OnceRule {
  const amounts = readAmounts(reader);
  const phrase = `in ${amountsText(amounts)}`;
  let days = 0;
  let elapsedMs = 0;
  for (const { count, unit } of amounts) {
    if (unit.kind === "elapsed") elapsedMs += count * unit.ms;
    else days += count * unit.days;
  }
  const wall = wallAt(tz, now) + days * DAY_MS;
  if (elapsedMs === 0) return onceOnWall(wall, { phrase, tz });
  const atMs = (days === 0 ? now : momentOf(tz, wall)) + elapsedMs;
  return { kind: "once", atMs, phrase, tz };
}

function readAt(reader: PhraseReader, { now, tz }: When): OnceRule {
  const moment = reader.take("moment");
  if (moment !== undefined) {
    const atMs = parseRfc3339(moment);
    if (atMs === null) throw reader.impossible(`${moment} is no moment of any calendar`);
    return onceAt(atMs, tz);
  }
  const time = readTime(reader);
  const today = dayOf(wallAt(tz, now));
  const on = (day: number) => onceOnWall(day * DAY_MS + timeOfText(time), { phrase: `at ${time}`, tz });
  const rule = on(today);
  return rule.atMs > now ? rule : on(today + 1);
}

/** The only day without a default time: 09:00 may be past. */
function readToday(reader: PhraseReader, { now, tz }: When): OnceRule {
  if (reader.peek() === undefined) throw reader.unclear('"today" takes a time, as in "today at 17:00"');
  const time = readOptionalTime(reader);
  const day = dayOf(wallAt(tz, now));
  return onceOnWall(day * DAY_MS + timeOfText(time), { phrase: `today at ${time}`, tz });
}

/** A time of this evening. A time like 01:00 is refused: it belongs to tomorrow, and not all users mean that. */
function readTonight(reader: PhraseReader, when: When): OnceRule {
  const hasTime = reader.peek() !== undefined;
  const time = readOptionalTime(reader);
  if (!hasTime || timeOfText(time) < EVENING_HOUR * HOUR_MS) {
    throw reader.unclear(
      `"tonight" takes a time from ${EVENING_HOUR}:00 to 23:59, as in "tonight at 21:00"; for later, write "tomorrow at 01:00"`,
    );
  }
  const day = dayOf(wallAt(when.tz, when.now));
  return onceOnWall(day * DAY_MS + timeOfText(time), { phrase: `today at ${time}`, tz: when.tz });
}

const EVENING_HOUR = 17;

function readTomorrow(reader: PhraseReader, { now, tz }: When): OnceRule {
  const time = readOptionalTime(reader);
  const day = dayOf(wallAt(tz, now)) + 1;
  return onceOnWall(day * DAY_MS + timeOfText(time), { phrase: `tomorrow at ${time}`, tz });
}

function readOn(reader: PhraseReader, when: When): OnceRule {
  const { tz } = when;
  const date = reader.take("date");
  if (date === undefined) {
    const weekday = reader.takeFrom(WEEKDAY_NAMES);
    if (weekday === undefined) {
      throw reader.expected("a date like 2030-06-01, or a weekday", WEEKDAY_NAMES.keys());
    }
    return onWeekday(weekday, readOptionalTime(reader), { ...when, fromDay: 0 });
  }
  const [year = 0, month = 0, dayOfMonth = 0] = date.split("-").map(Number);
  const day = dayOfDate(year, month, dayOfMonth);
  if (day === null) throw reader.impossible(`there is no ${date}`);
  const time = readOptionalTime(reader);
  return onceOnWall(day * DAY_MS + timeOfText(time), { phrase: `on ${date} at ${time}`, tz });
}

/** Never today, and never more than a week ahead. */
function readNext(reader: PhraseReader, when: When): OnceRule {
  const weekday = reader.takeFrom(WEEKDAY_NAMES);
  if (weekday === undefined) throw reader.expected("a weekday like monday", WEEKDAY_NAMES.keys());
  return onWeekday(weekday, readOptionalTime(reader), { ...when, fromDay: 1 });
}

/** The first such weekday whose time is in the future, from `fromDay` days after today on. Its phrase names the date. */
function onWeekday(
  weekday: Weekday,
  time: string,
  { now, tz, fromDay }: When & { readonly fromDay: 0 | 1 },
): OnceRule {
  const first = dayOf(wallAt(tz, now)) + fromDay;
  const day = first + ((WEEKDAYS.indexOf(weekday) - weekdayOf(first) + 7) % 7);
  const on = (each: number) => {
    const wall = each * DAY_MS + timeOfText(time);
    return onceOnWall(wall, { phrase: `on ${dateText(wall)} at ${time}`, tz });
  };
  const rule = on(day);
  return rule.atMs > now ? rule : on(day + 7);
}
