import type { ScheduleKind } from "./schedule.ts";

/** The days of a week as rules and canonical forms write them, in the order of a week. */
export const WEEKDAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"] as const;
export type Weekday = (typeof WEEKDAYS)[number];

/**
 * When a schedule is due, as plain JSON, parsed from the phrase or the object of a caller. Due times depend only on the rule
 * and, for intervals, on the anchor: the time at which the schedule was created or last edited.
 */
export type Rule = OnceRule | EveryRule | DaysRule | WeeksRule | CronRule;

/** A single due time. */
export interface OnceRule {
  readonly kind: "once";
  readonly atMs: number;
  /** The canonical form: `atMs` alone no longer shows that the caller wrote `in 1 hour`. */
  readonly phrase: string;
  /** The requested time, if a clock change skips it on that day and `atMs` is the end of the gap. */
  readonly movedFrom?: string;
  readonly tz: string;
}

/** By elapsed time from the anchor; clock changes have no effect. */
export interface EveryRule {
  readonly kind: "every";
  readonly everyMs: number;
  readonly tz: string;
}

/** At a time of day, every `every` days; the first is the next such time after the anchor. */
export interface DaysRule {
  readonly kind: "days";
  readonly every: number;
  /** `HH:MM`, `HH:MM:SS` or `HH:MM:SS.mmm`. */
  readonly at: string;
  readonly tz: string;
}

/** At a time on some weekdays, every `every` weeks; the first week is that of the first such time after the anchor. */
export interface WeeksRule {
  readonly kind: "weeks";
  readonly every: number;
  /** Each once, in the order of a week. */
  readonly on: readonly Weekday[];
  readonly at: string;
  readonly tz: string;
}

/** A cron expression of five or six fields, or a nickname like `@daily`. */
export interface CronRule {
  readonly kind: "cron";
  readonly expr: string;
  readonly tz: string;
}

export function scheduleKind(rule: Rule): ScheduleKind {
  return rule.kind === "once" ? "once" : "recurring";
}
