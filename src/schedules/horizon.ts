/** What is further ahead than this is a slip of the keyboard. */
export const YEARS_AHEAD_MAX = 100;

/** The longest step between two moments: 100 years of days. */
export const STEP_DAYS_MAX = 36_525;

/** Nothing is due from here on: somewhere a walk through clock changes must end. */
export const END_OF_TIME_MS = Date.UTC(3_000, 0);

/** What is wrong with a single moment; null when nothing is. */
export function aheadFault(moment: number, now: number): string | null {
  if (moment <= now) return "that is in the past";
  return moment > farthest(now) ? `that is more than ${YEARS_AHEAD_MAX} years ahead` : null;
}

/** The last moment that a schedule made now may wait for. */
export function farthest(now: number): number {
  const date = new Date(now);
  date.setUTCFullYear(date.getUTCFullYear() + YEARS_AHEAD_MAX);
  return date.getTime();
}
