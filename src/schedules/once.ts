import type { OnceRule } from "../model/rule.ts";
import { isoText } from "./moment-text.ts";
import { dateText, timeText } from "./wall-clock.ts";
import { momentOf, wallAt } from "./zone.ts";

/** The rule for a local time of a zone. */
export function onceOnWall(wall: number, { phrase, tz }: { phrase: string; tz: string }): OnceRule {
  const atMs = momentOf(tz, wall);
  const isSkipped = wallAt(tz, atMs) !== wall;
  return { kind: "once", atMs, phrase, ...(isSkipped ? { movedFrom: timeText(wall) } : {}), tz };
}

/** The rule for a moment. Its phrase is the local date and time, or ISO 8601 if that time comes twice and this is the second. */
export function onceAt(atMs: number, tz: string): OnceRule {
  const wall = wallAt(tz, atMs);
  const phrase =
    momentOf(tz, wall) === atMs ? `on ${dateText(wall)} at ${timeText(wall)}` : `at ${isoText(tz, atMs)}`;
  return { kind: "once", atMs, phrase, tz };
}
