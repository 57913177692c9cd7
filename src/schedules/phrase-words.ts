import { WEEKDAYS, type Weekday } from "../model/rule.ts";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "./wall-clock.ts";

/** A unit with a fixed number of milliseconds. */
export interface ElapsedUnit {
  readonly kind: "elapsed";
  /** The singular form. */
  readonly name: "ms" | "second" | "minute" | "hour";
  readonly ms: number;
}

/** A calendar unit: a clock change makes it longer or shorter. */
export interface CalendarUnit {
  readonly kind: "calendar";
  readonly name: "day" | "week";
  readonly days: number;
}

export type Unit = ElapsedUnit | CalendarUnit;

/** From the largest to the smallest, in the order in which canonical forms try them. */
export const ELAPSED_UNITS: readonly ElapsedUnit[] = [
  { kind: "elapsed", name: "hour", ms: HOUR_MS },
  { kind: "elapsed", name: "minute", ms: MINUTE_MS },
  { kind: "elapsed", name: "second", ms: SECOND_MS },
  { kind: "elapsed", name: "ms", ms: 1 },
];

const CALENDAR_UNITS: readonly CalendarUnit[] = [
  { kind: "calendar", name: "day", days: 1 },
  { kind: "calendar", name: "week", days: 7 },
];

/** For a typing error, the first similar spelling is the hint. */
const UNIT_SPELLINGS: Readonly<Record<Unit["name"], readonly string[]>> = {
  ms: ["milliseconds", "millisecond", "ms"],
  second: ["seconds", "second", "secs", "sec", "s"],
  minute: ["minutes", "minute", "mins", "min", "m"],
  hour: ["hours", "hour", "hrs", "hr", "h"],
  day: ["days", "day", "d"],
  week: ["weeks", "week", "wks", "wk", "w"],
};

export const UNITS: ReadonlyMap<string, Unit> = new Map(
  [...ELAPSED_UNITS, ...CALENDAR_UNITS].flatMap((unit) =>
    UNIT_SPELLINGS[unit.name].map((spelling) => [spelling, unit] as const),
  ),
);

/** Their length in days varies, and "every month" does not name a day. A cron expression does. */
export const UNITS_REFUSED: ReadonlySet<string> = new Set([
  "month",
  "months",
  "monthly",
  "quarter",
  "quarters",
  "year",
  "years",
  "yearly",
]);

const WEEKDAY_SPELLINGS: Readonly<Record<Weekday, readonly string[]>> = {
  Mon: ["monday", "mon"],
  Tue: ["tuesday", "tue", "tues"],
  Wed: ["wednesday", "wed", "weds"],
  Thu: ["thursday", "thu", "thur", "thurs"],
  Fri: ["friday", "fri"],
  Sat: ["saturday", "sat"],
  Sun: ["sunday", "sun"],
};

export const WEEKDAY_NAMES: ReadonlyMap<string, Weekday> = new Map(
  WEEKDAYS.flatMap((weekday) => WEEKDAY_SPELLINGS[weekday].map((spelling) => [spelling, weekday] as const)),
);

/** Numbers as people and models write them. `zero` is included so that the error says that it is too small. */
export const NUMBER_WORDS: ReadonlyMap<string, number> = new Map(
  [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
  ].map((word, number) => [word, number] as const),
);

/** What `every weekday` stands for. */
export const WORKING_DAYS: readonly Weekday[] = WEEKDAYS.slice(0, 5);

/** `1 hour`, `2 hours`, `1500 ms`. */
export function amount(count: number, unit: Unit["name"]): string {
  return `${count} ${unit}${count === 1 || unit === "ms" ? "" : "s"}`;
}
