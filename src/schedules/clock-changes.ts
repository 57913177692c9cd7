import { DAY_MS } from "./wall-clock.ts";
import { spanAt } from "./zone.ts";

/** Times on a wall, without a thought for zones. */
export interface WallPattern {
  /**
   * Whether it names times of a day, rather than something of every hour. The former happen once on a day whose clock
   * changes; the latter go on as time goes on.
   */
  readonly isFixed: boolean;
  /** The first time after this one; null when there is none. */
  next(wall: number): number | null;
  /** How many times come after `from` and not after `to`: counted at least up to `max`. Takes a step for each day at most. */
  count(from: number, to: number, max: number): number;
}

/** Counts times of which there is one a day at most. */
export function countEach(
  next: WallPattern["next"],
  ...[from, to, max]: Parameters<WallPattern["count"]>
): number {
  let count = 0;
  for (let wall = next(from); wall !== null && wall <= to && count < max; wall = next(wall)) count += 1;
  return count;
}

/** So long before a time as if its wall stood in UTC, no wall shows that time yet: nowhere is a clock a whole day from UTC. */
const SURELY_BEFORE_MS = 2 * DAY_MS;

/**
 * The first moment after `after` at which the pattern is due in a zone.
 *
 * The day is walked in spans between clock changes, in each of which the wall and the moment differ by a constant. What
 * remains is what happens at their borders. For fixed times: what the clock skips is due at the end of the gap, once
 * however many times lie in it; what it shows again is not due again. For patterns over every hour: whatever the clock
 * really shows, when it shows it.
 */
export function nextOnWall(pattern: WallPattern, tz: string, after: number): number | null {
  let span = spanAt(tz, after);
  let from = after + span.offsetMs;
  // The clock was set back at the start of the span: up to there it shows what it showed before.
  if (pattern.isFixed) from = Math.max(from, span.startMs + span.offsetBeforeMs - 1);
  let wall = pattern.next(from);
  while (wall !== null && wall >= span.endMs + span.offsetMs) {
    // Until the wall shows it nothing is due: the clock changes of the years before are passed over.
    span = spanAt(tz, Math.max(span.endMs, wall - SURELY_BEFORE_MS));
    const change = span.startMs;
    if (!pattern.isFixed) wall = pattern.next(change + span.offsetMs - 1);
    else if (wall < change + span.offsetMs) return change;
  }
  return wall === null ? null : wall - span.offsetMs;
}

/**
 * How many moments come after `after` and not after `until`: counted at least up to `max`. Between clock changes the times on
 * the wall are counted, a day at a time.
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
