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

/** How often a task may be made to give way to a critical one. */
export const PREEMPTIONS_MAX = 3;

/** Ahead of everything that is not critical: where a task goes that had to give way. */
export const FRONT_RANK = 1;

/**
 * A task's place in line, the lowest first; ties go to the one accepted first. Critical tasks have 0 and below. With
 * ageing, waiting for `agingMs` is worth one step of priority: who could start so much earlier goes ahead of who is one
 * step more urgent.
 */
export function rankOf(task: RankedTask, agingMs: number): number {
  const { priority, createdAt, runAt } = task;
  if (isCritical(priority)) return priority;
  return agingMs === 0 ? FRONT_RANK + priority : Math.max(createdAt, runAt ?? createdAt) + priority * agingMs;
}

interface RankedTask {
  readonly priority: number;
  readonly createdAt: number;
  readonly runAt: number | null;
}

/**
 * How many starts in a row critical tasks may take ahead of fairness; the one after them is fair again, so that
 * a stream of urgent work cannot starve everybody else.
 */
export const AHEAD_STREAK_MAX = 7;
