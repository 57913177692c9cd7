/** Lower starts first. Each name stands for its number. */
export const PRIORITY_NAMES = { critical: 0, high: 1, normal: 2, low: 3 } as const;

export type PriorityName = keyof typeof PRIORITY_NAMES;

export const DEFAULT_PRIORITY = PRIORITY_NAMES.normal;

/** Wide enough for any scale; bounded so that arithmetic on it stays exact in every database. */
export const PRIORITY_MIN = -1_000_000;
export const PRIORITY_MAX = 1_000_000;

/** Zero and below is critical, however it was written. */
export function isCritical(priority: number): boolean {
  return priority <= PRIORITY_NAMES.critical;
}

/** How often a task may be pre-empted. */
export const PREEMPTIONS_MAX = 3;

/** The rank of a pre-empted task: ahead of everything that is not critical. */
export const FRONT_RANK = 1;

/**
 * The rank of a task in its agent queue: the lowest starts first, and of equal ranks the task accepted first. Critical tasks
 * have 0 and below. With ageing, `agingMs` of waiting is worth one step of priority: a task that could start that much earlier
 * goes ahead of one that is a step more urgent.
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
 * How many critical tasks in a row may start ahead of their turn. The next start is fair again, so that a stream of critical
 * tasks cannot starve all others.
 */
export const CONSECUTIVE_CRITICAL_MAX = 7;
