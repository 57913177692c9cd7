/*
 * Wall-clock time as a number: the local time of a zone in milliseconds since 1970, as if the zone were UTC. Days and times of
 * day are then plain arithmetic, and only zone.ts converts between local times and moments.
 */

export const SECOND_MS = 1_000;
export const MINUTE_MS = 60 * SECOND_MS;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;

/** The number of the day since 1970-01-01, which is 0. */
export function dayOf(wall: number): number {
  return Math.floor(wall / DAY_MS);
}

/** Milliseconds since midnight. */
export function timeOf(wall: number): number {
  return wall - dayOf(wall) * DAY_MS;
}

/** The number of the week, which begins on Monday. */
export function weekOf(day: number): number {
  return Math.floor((day + DAYS_BEFORE_THURSDAY) / 7);
}

/** 0 for Monday to 6 for Sunday. */
export function weekdayOf(day: number): number {
  return day + DAYS_BEFORE_THURSDAY - weekOf(day) * 7;
}

export function mondayOf(week: number): number {
  return week * 7 - DAYS_BEFORE_THURSDAY;
}

/** 1970-01-01 was a Thursday. */
const DAYS_BEFORE_THURSDAY = 3;

/** The day number of a date; null: there is no such day. */
export function dayOfDate(year: number, month: number, dayOfMonth: number): number | null {
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, dayOfMonth);
  return date.getUTCMonth() === month - 1 && date.getUTCDate() === dayOfMonth ? dayOf(date.getTime()) : null;
}

/** `2026-05-08`. */
export function dateText(wall: number): string {
  return new Date(wall).toISOString().slice(0, -"T00:00:00.000Z".length);
}

/** `09:00`; with seconds and milliseconds only if they are not zero. */
export function timeText(wall: number): string {
  const [time = ""] = new Date(wall).toISOString().slice(0, -1).split("T").slice(-1);
  return time.replace(/(?::00)?\.000$/, "");
}

/** Milliseconds since midnight of a text as `timeText` writes it. */
export function timeOfText(text: string): number {
  const [hours = 0, minutes = 0, seconds = 0] = text.split(":").map(Number);
  return hours * HOUR_MS + minutes * MINUTE_MS + Math.round(seconds * SECOND_MS);
}
