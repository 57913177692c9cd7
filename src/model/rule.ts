import type { ScheduleKind } from "./schedule.ts";

/** The days of a week as they are written in rules and canonical forms, in the order of a week. */
export const WEEKDAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"] as const;
export type Weekday = (typeof WEEKDAYS)[number];

/**
 * When a schedule is due, as plain JSON: what a phrase or an object of the caller's came down to. Everything that
 * follows from it is a function of the rule alone and, for steps that are counted from somewhere, of the anchor: the
 * moment at which the schedule was made or last edited.
 */
export type Rule = OnceRule | EveryRule | DaysRule | WeeksRule | CronRule;

/** One moment. */
export interface OnceRule {
  readonly kind: "once";
  readonly atMs: number;
  /** The canonical form: a moment alone no longer says that it was meant as `in 1 hour`. */
  readonly phrase: string;
  /** The time that was asked for, where the clock skips it that day and `atMs` is the end of the gap. */
  readonly movedFrom?: string;
  readonly tz: string;
}

/** By elapsed time from the anchor, whatever clocks on walls do. */
export interface EveryRule {
  readonly kind: "every";
  readonly everyMs: number;
  readonly tz: string;
}

/** At a time of day, every so many days; the first one is the first after the anchor. */
export interface DaysRule {
  readonly kind: "days";
  readonly every: number;
  /** `HH:MM`, `HH:MM:SS` or `HH:MM:SS.mmm`. */
  readonly at: string;
  readonly tz: string;
}

/** At a time of some weekdays, every so many weeks; the first week is that of the first one after the anchor. */
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
