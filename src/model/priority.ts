/** Lower goes first. Names stand for the numbers they are shown as. */
export const PRIORITY_NAMES = { critical: 0, high: 1, normal: 2, low: 3 } as const;

export type PriorityName = keyof typeof PRIORITY_NAMES;

export const DEFAULT_PRIORITY = PRIORITY_NAMES.normal;

/** Wide enough for anybody's scale; bounded so that arithmetic on it stays exact in every database. */
export const PRIORITY_MIN = -1_000_000;
export const PRIORITY_MAX = 1_000_000;

/** Zero and below is critical, however it was written. */
export function isCritical(priority: number): boolean {
  return priority <= PRIORITY_NAMES.critical;
}

/**
 * How many starts in a row critical tasks may take ahead of fairness; the one after them is fair again, so that
 * a stream of urgent work cannot starve everybody else.
 */
export const AHEAD_STREAK_MAX = 7;
