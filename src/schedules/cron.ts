import { Cron } from "croner";
import type { WallPattern } from "./clock-changes.ts";
import { YEARS_AHEAD_MAX } from "./horizon.ts";
import { DAY_MS, dayOf, HOUR_MS, MINUTE_MS, SECOND_MS, timeOf } from "./wall-clock.ts";

/**
 * Parses a cron expression. Throws croner's error for an invalid one.
 *
 * croner only interprets the expression, with local times as if in UTC. Its own handling of clock changes skips a day on which
 * all times of `0,30 2 * * *` fall into the gap, and with Intl a step takes it a tenth of a millisecond. The pattern is split
 * into days and times of day, which are the same on every matching day. So the time is arithmetic, and croner is needed only
 * to find the next day.
 */
export function readCron(expr: string): WallPattern {
  let pattern = patterns.get(expr);
  if (pattern === undefined) {
    pattern = takeApart(expr);
    const [oldest] = patterns.keys();
    if (patterns.size >= PATTERNS_MAX && oldest !== undefined) patterns.delete(oldest);
    patterns.set(expr, pattern);
  }
  return pattern;
}

/** A cache: splitting an expression costs as much as a thousand due times, and schedules often share a few expressions. */
const patterns = new Map<string, WallPattern>();
const PATTERNS_MAX = 500;

function takeApart(expr: string): WallPattern {
  const fields = (open(expr).getPattern() ?? "").trim().split(/\s+/);
  const [seconds, minutes, hours, ...days] = fields.length === 5 ? ["0", ...fields] : fields;
  const times = {
    hours: offsetsWithin(`0 0 ${hours} * * *`, DAY_MS),
    minutes: offsetsWithin(`0 ${minutes} * * * *`, HOUR_MS),
    seconds: offsetsWithin(`${seconds} * * * * *`, MINUTE_MS),
  };
  const nextDay = dayFinder(days);
  const perDay = timesUpTo(times, DAY_MS);
  return {
    isFixed: times.hours.length < 24,
    next(wall) {
      const from = Math.floor(wall / SECOND_MS) * SECOND_MS + SECOND_MS;
      const today = dayOf(from);
      const day = nextDay(today);
      if (day === null) return null;
      const time = day === today ? nextTime(times, timeOf(from)) : firstTime(times);
      if (time !== null) return day * DAY_MS + time;
      const later = nextDay(today + 1);
      return later === null ? null : later * DAY_MS + firstTime(times);
    },
    count(from, to, max) {
      let count = 0;
      let day = nextDay(dayOf(from));
      while (day !== null && day <= dayOf(to) && count < max) {
        const isLast = day === dayOf(to);
        count += isLast ? timesUpTo(times, timeOf(to)) : perDay;
        if (day === dayOf(from)) count -= timesUpTo(times, timeOf(from));
        day = isLast ? null : nextDay(day + 1);
      }
      return count;
    },
  };
}

/** Whether each field of an expression is valid. */
export function isCron(expr: string): boolean {
  try {
    open(expr);
    return true;
  } catch {
    return false;
  }
}

function open(expr: string): Cron {
  return new Cron(expr, { paused: true, utcOffset: 0, mode: "5-or-6-parts" });
}

/** The offsets at which an expression matches within the first `lengthMs` of a day. */
function offsetsWithin(expr: string, lengthMs: number): number[] {
  const cron = open(expr);
  const found: number[] = [];
  let match = cron.nextRun(new Date(SAMPLE - SECOND_MS));
  while (match !== null && match.getTime() < SAMPLE + lengthMs) {
    found.push(match.getTime() - SAMPLE);
    match = cron.nextRun(match);
  }
  return found;
}

/** Any midnight: in UTC all days are alike. */
const SAMPLE = Date.UTC(2000, 0, 1);

/** Finds the first matching day from a day on. The result is reused for all days up to the one found. */
function dayFinder([days, months, weekdays]: readonly string[]): (day: number) => number | null {
  const cron = open(`0 0 0 ${days} ${months} ${weekdays}`);
  const monthsOn = monthsOf(months as string);
  let asked = 0;
  let found: number | null = -1;
  return (day) => {
    if (day < asked || (found !== null && day > found)) [asked, found] = [day, findDay(cron, monthsOn, day)];
    return found;
  };
}

/**
 * Checks one day after the other. croner's own search is wrong for a list with days that February does not have: it continues
 * from the third of March and misses the first.
 */
function findDay(cron: Cron, monthsOn: ReadonlySet<number>, from: number): number | null {
  const date = new Date(from * DAY_MS);
  const yearMax = date.getUTCFullYear() + YEARS_AHEAD_MAX;
  while (date.getUTCFullYear() <= yearMax) {
    if (!monthsOn.has(date.getUTCMonth())) date.setUTCMonth(date.getUTCMonth() + 1, 1);
    else if (cron.match(date)) return dayOf(date.getTime());
    else date.setUTCDate(date.getUTCDate() + 1);
  }
  return null;
}

/** The months that match, from 0. */
function monthsOf(field: string): Set<number> {
  const cron = open(`0 0 0 1 ${field} *`);
  return new Set(
    Array.from({ length: 12 }, (_, month) => month).filter((month) =>
      cron.match(new Date(Date.UTC(2000, month, 1))),
    ),
  );
}

/** The times of a day: all combinations of these hours, minutes and seconds, each as an offset in milliseconds. */
interface Times {
  readonly hours: readonly number[];
  readonly minutes: readonly number[];
  readonly seconds: readonly number[];
}

function firstTime({ hours, minutes, seconds }: Times): number {
  return first(hours) + first(minutes) + first(seconds);
}

/** The first time of day from `time` on; null: the day has none left. */
function nextTime({ hours, minutes, seconds }: Times, time: number): number | null {
  const second = time % MINUTE_MS;
  const minute = (time % HOUR_MS) - second;
  const hour = time - minute - second;
  if (hours.includes(hour)) {
    if (minutes.includes(minute)) {
      const later = seconds.find((offset) => offset >= second);
      if (later !== undefined) return hour + minute + later;
    }
    const later = minutes.find((offset) => offset > minute);
    if (later !== undefined) return hour + later + first(seconds);
  }
  const later = hours.find((offset) => offset > hour);
  return later === undefined ? null : later + first(minutes) + first(seconds);
}

/** How many times of day are not after `time`. */
function timesUpTo({ hours, minutes, seconds }: Times, time: number): number {
  const hour = Math.floor(time / HOUR_MS) * HOUR_MS;
  const minute = Math.floor((time % HOUR_MS) / MINUTE_MS) * MINUTE_MS;
  const before = hours.filter((offset) => offset < hour).length * minutes.length * seconds.length;
  if (!hours.includes(hour)) return before;
  const beforeMinute = minutes.filter((offset) => offset < minute).length * seconds.length;
  const within = seconds.filter((offset) => offset <= time % MINUTE_MS).length;
  return before + beforeMinute + (minutes.includes(minute) ? within : 0);
}

/** Every field of an expression matches something. */
function first(offsets: readonly number[]): number {
  return offsets[0] as number;
}
