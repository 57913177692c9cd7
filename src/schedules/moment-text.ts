import { dateText, MINUTE_MS, SECOND_MS, timeText } from "./wall-clock.ts";
import { spanAt, wallAt } from "./zone.ts";

/** A moment in ISO 8601, in a zone: `2026-05-11T09:00:00+02:00`. */
export function isoText(tz: string, moment: number): string {
  const { offsetMs } = spanAt(tz, moment);
  const local = new Date(moment + offsetMs).toISOString().replace(/(?:\.000)?Z$/, "");
  return `${local}${offsetMs < 0 ? "-" : "+"}${offsetText(Math.abs(offsetMs))}`;
}

/** Until the seventies some offsets had seconds. `timeText` writes seconds only if they are not zero. */
function offsetText(offsetMs: number): string {
  return timeText(Math.round(offsetMs / SECOND_MS) * SECOND_MS);
}

/** The minute of a moment, in a zone: `2026-05-11 09:00`. */
export function minuteText(tz: string, moment: number): string {
  return wallText(Math.floor(wallAt(tz, moment) / MINUTE_MS) * MINUTE_MS);
}

/** `2026-05-11 09:00`, with seconds only if they are not zero. */
export function wallText(wall: number): string {
  return `${dateText(wall)} ${timeText(wall)}`;
}
