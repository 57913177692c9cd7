import type { CronRule, DaysRule, Rule, WeeksRule } from "../model/rule.ts";
import { everyDays, everyWeeks } from "./calendar.ts";
import { countOnWall, nextOnWall, type WallPattern } from "./clock-changes.ts";
import { readCron } from "./cron.ts";
import { END_OF_TIME_MS, farthest } from "./horizon.ts";
import { wallAt } from "./zone.ts";

export interface After {
  /** Milliseconds since 1970. Only moments strictly after it count. */
  readonly after: number;
  /** When the schedule was created or last edited: steps are counted from there. */
  readonly anchor: number;
}

export interface Between extends After {
  /** The last moment that may be due. */
  readonly until: number;
}

/**
 * The first moment after `after` at which a rule is due; null: it is never due again.
 *
 * @example
 * nextMoment({ kind: "days", every: 1, at: "09:00", tz: "Europe/Berlin" }, { after: now, anchor: createdAt });
 */
export function nextMoment(rule: Rule, { after, anchor }: After): number | null {
  if (after >= END_OF_TIME_MS) return null;
  const moment = next(rule, after, anchor);
  return moment === null || moment >= END_OF_TIME_MS ? null : moment;
}

function next(rule: Rule, after: number, anchor: number): number | null {
  if (rule.kind === "once") return rule.atMs > after ? rule.atMs : null;
  if (rule.kind === "every") {
    const steps = Math.max(0, Math.floor((after - anchor) / rule.everyMs));
    return anchor + (steps + 1) * rule.everyMs;
  }
  return nextOnWall(patternOf(rule, anchor), rule.tz, after);
}

/** The pattern of local times of a rule; only for the kinds of rules that use local times. */
export function patternOf(rule: DaysRule | WeeksRule | CronRule, anchor: number): WallPattern {
  if (rule.kind === "cron") return readCron(rule.expr);
  const anchorWall = wallAt(rule.tz, anchor);
  return rule.kind === "days" ? everyDays(rule, anchorWall) : everyWeeks(rule, anchorWall);
}

/** The next moments within a hundred years, at most `limit`. */
export function nextMoments(rule: Rule, { after, anchor, limit }: After & { limit: number }): number[] {
  return momentsBetween(rule, { after, anchor, until: farthest(after), limit });
}

/** The first moments after `after` and not after `until`, at most `limit`. */
export function momentsBetween(
  rule: Rule,
  { after, anchor, until, limit }: Between & { limit: number },
): number[] {
  const moments: number[] = [];
  let last = after;
  while (moments.length < limit) {
    const moment = nextMoment(rule, { after: last, anchor });
    if (moment === null || moment > until) break;
    moments.push(moment);
    last = moment;
  }
  return moments;
}

/**
 * How many moments are after `after` and not after `until`, at most `max`. For a rule by elapsed time this is arithmetic. For
 * others it takes some microseconds per day, however many moments the day has.
 */
export function countMoments(rule: Rule, { after, anchor, until, max }: Between & { max: number }): number {
  if (rule.kind === "every") {
    const stepsTo = (moment: number) => Math.max(0, Math.floor((moment - anchor) / rule.everyMs));
    return Math.min(max, Math.max(0, stepsTo(until) - stepsTo(after)));
  }
  const last = Math.min(until, END_OF_TIME_MS - 1);
  if (rule.kind === "once") return Math.min(max, rule.atMs > after && rule.atMs <= last ? 1 : 0);
  return Math.min(max, countOnWall(patternOf(rule, anchor), rule.tz, { after, until: last, max }));
}

/**
 * The last moment after `after` and not after `until`; null: there is none. A binary search of some forty steps, however many
 * moments are between: it finds the first time from which `nextMoment` returns a moment past `until`.
 */
export function lastMoment(rule: Rule, { after, anchor, until }: Between): number | null {
  const isPast = (moment: number) => {
    const next = nextMoment(rule, { after: moment, anchor });
    return next === null || next > until;
  };
  if (isPast(after)) return null;
  let [before, past] = [after, until];
  while (past - before > 1) {
    const middle = before + Math.floor((past - before) / 2);
    if (isPast(middle)) past = middle;
    else before = middle;
  }
  return past;
}
