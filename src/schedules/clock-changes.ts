import { DAY_MS } from "./wall-clock.ts";
import { spanAt } from "./zone.ts";

/** A pattern of local times, independent of any zone. */
export interface WallPattern {
  /**
   * Whether it names times of day, rather than times of every hour. On a day with a clock change, a time of day is due once. A
   * pattern of every hour is due whenever the clock shows a matching time.
   */
  readonly isFixed: boolean;
  /** The first time after this one; null: there is none. */
  next(wall: number): number | null;
  /** How many times are after `from` and not after `to`, counted at least up to `max`. Takes at most one step per day. */
  count(from: number, to: number, max: number): number;
}

/** Counts the times of a pattern with at most one time per day. */
export function countEach(
  next: WallPattern["next"],
  ...[from, to, max]: Parameters<WallPattern["count"]>
): number {
  let count = 0;
  for (let wall = next(from); wall !== null && wall <= to && count < max; wall = next(wall)) count += 1;
  return count;
}

/** This long before a local time read as UTC, no zone shows that time yet: no offset from UTC is a whole day. */
const SURELY_BEFORE_MS = 2 * DAY_MS;

/**
 * The first moment after `after` at which the pattern is due in a zone.
 *
 * The search goes through spans between clock changes. In each span the local time and the moment differ by a constant, so
 * only the borders need rules. For fixed times: times that the clock skips are due at the end of the gap, once however many
 * they are; times that the clock shows twice are due the first time only. For patterns of every hour: a time is due whenever
 * the clock shows it.
 */
export function nextOnWall(pattern: WallPattern, tz: string, after: number): number | null {
  let span = spanAt(tz, after);
  let from = after + span.offsetMs;
  // If the clock went back at the start of the span, it first repeats times that it has shown before: those are skipped.
  if (pattern.isFixed) from = Math.max(from, span.startMs + span.offsetBeforeMs - 1);
  let wall = pattern.next(from);
  while (wall !== null && wall >= span.endMs + span.offsetMs) {
    // Nothing is due before the clock shows this time: clock changes of earlier years are skipped.
    span = spanAt(tz, Math.max(span.endMs, wall - SURELY_BEFORE_MS));
    const change = span.startMs;
    if (!pattern.isFixed) wall = pattern.next(change + span.offsetMs - 1);
    else if (wall < change + span.offsetMs) return change;
  }
  return wall === null ? null : wall - span.offsetMs;
}

/**
 * How many moments are after `after` and not after `until`, counted at least up to `max`. Between clock changes the local times
 * are counted, a day at a time.
 */
export function countOnWall(
  pattern: WallPattern,
  tz: string,
  { after, until, max }: { after: number; until: number; max: number },
): number {
  let count = 0;
  let last = after;
  while (count < max) {
    // The first due time after a clock change decides how the change is handled.
    const moment = nextOnWall(pattern, tz, last);
    if (moment === null || moment > until) break;
    const { endMs, offsetMs } = spanAt(tz, moment);
    last = Math.min(until, endMs - 1);
    count += 1 + pattern.count(moment + offsetMs, last + offsetMs, max - count - 1);
  }
  return count;
}
