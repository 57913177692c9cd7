import type { OnceRule } from "../model/rule.ts";
import { isoText } from "./moment-text.ts";
import { dateText, timeText } from "./wall-clock.ts";
import { momentOf, wallAt } from "./zone.ts";

/** The rule for a time that a clock on the wall will show. */
export function onceOnWall(wall: number, { phrase, tz }: { phrase: string; tz: string }): OnceRule {
  const atMs = momentOf(tz, wall);
  const isSkipped = wallAt(tz, atMs) !== wall;
  return { kind: "once", atMs, phrase, ...(isSkipped ? { movedFrom: timeText(wall) } : {}), tz };
}

/** The rule for a moment. Its phrase is that of its date and time, unless the clock shows them twice and it is the second. */
export function onceAt(atMs: number, tz: string): OnceRule {
  const wall = wallAt(tz, atMs);
  const phrase =
    momentOf(tz, wall) === atMs ? `on ${dateText(wall)} at ${timeText(wall)}` : `at ${isoText(tz, atMs)}`;
  return { kind: "once", atMs, phrase, tz };
}
