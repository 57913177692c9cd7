import { parseRfc3339 } from "../model/rfc3339.ts";
import type { OnceRule, Rule } from "../model/rule.ts";
import { cronRule, looksLikeCron } from "./cron-rule.ts";
import { aheadFault } from "./horizon.ts";
import { notUnderstood } from "./not-understood.ts";
import { onceAt, onceOnWall } from "./once.ts";
import { readAmount } from "./phrase-amount.ts";
import { readEvery, readWeek } from "./phrase-every.ts";
import { PhraseReader } from "./phrase-reader.ts";
import { readOptionalTime, readTime } from "./phrase-time.ts";
import { amount, WEEKDAY_NAMES } from "./phrase-words.ts";
import { DAY_MS, dayOf, dayOfDate, HOUR_MS, timeOfText } from "./wall-clock.ts";
import { wallAt } from "./zone.ts";

/** From when and where a phrase is said. */
export interface When {
  readonly now: number;
  readonly tz: string;
}

/**
 * Reads a phrase like `every Mon at 09:00`. The grammar is small and knows every word of a phrase or refuses it: a
 * schedule that was half understood would be noticed at the wrong time.
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

/** All seven weekdays in full take a hundred. */
const PHRASE_LENGTH_MAX = 500;

function readPhrase(reader: PhraseReader, when: When): Rule {
  const { tz } = when;
  switch (reader.takeOneOf(...FIRST_WORDS)) {
    case "in":
      return readIn(reader, when);
    case "at":
      return readAt(reader, when);
    case "tomorrow":
      return readTomorrow(reader, when);
    case "on":
      return readOn(reader, when);
    case "every":
      return readEvery(reader, tz);
    case "hourly":
      return { kind: "every", everyMs: HOUR_MS, tz };
    case "daily":
      return { kind: "days", every: 1, at: readOptionalTime(reader), tz };
    case "weekly":
      return readWeek(reader, 1, tz);
    default:
      throw reader.expected(`one of ${FIRST_WORDS.join(", ")}`, FIRST_WORDS);
  }
}

const FIRST_WORDS = ["in", "at", "tomorrow", "on", "every", "hourly", "daily", "weekly"] as const;

function readIn(reader: PhraseReader, { now, tz }: When): OnceRule {
  const { count, unit } = readAmount(reader);
  const phrase = `in ${amount(count, unit.name)}`;
  return unit.kind === "elapsed"
    ? { kind: "once", atMs: now + count * unit.ms, phrase, tz }
    : onceOnWall(wallAt(tz, now) + count * unit.days * DAY_MS, { phrase, tz });
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

function readTomorrow(reader: PhraseReader, { now, tz }: When): OnceRule {
  const time = readOptionalTime(reader);
  const day = dayOf(wallAt(tz, now)) + 1;
  return onceOnWall(day * DAY_MS + timeOfText(time), { phrase: `tomorrow at ${time}`, tz });
}

function readOn(reader: PhraseReader, { tz }: When): OnceRule {
  const date = reader.take("date");
  if (date === undefined) {
    const weekday = reader.takeFrom(WEEKDAY_NAMES);
    if (weekday === undefined) throw reader.expected("a date like 2030-06-01");
    throw reader.unclear(`"on" takes a date like 2030-06-01; for every week, write "every ${weekday}"`);
  }
  const [year = 0, month = 0, dayOfMonth = 0] = date.split("-").map(Number);
  const day = dayOfDate(year, month, dayOfMonth);
  if (day === null) throw reader.impossible(`there is no ${date}`);
  const time = readOptionalTime(reader);
  return onceOnWall(day * DAY_MS + timeOfText(time), { phrase: `on ${date} at ${time}`, tz });
}
