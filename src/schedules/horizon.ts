/** A time further ahead than this is most likely a typing error. */
export const YEARS_AHEAD_MAX = 100;

/** Nothing is due from here on, so that a search through clock changes ends. */
export const END_OF_TIME_MS = Date.UTC(3_000, 0);

/** What is wrong with the time of a one-time schedule; null: nothing. */
export function aheadFault(moment: number, now: number): string | null {
  if (moment <= now) return "that is in the past";
  return moment > farthest(now) ? `that is more than ${YEARS_AHEAD_MAX} years ahead` : null;
}

/** The latest due time of a one-time schedule that is created now. */
export function farthest(now: number): number {
  const date = new Date(now);
  date.setUTCFullYear(date.getUTCFullYear() + YEARS_AHEAD_MAX);
  return date.getTime();
}
