/** What a caller may make. Left out: the next level decides; null: no bound. */
export interface Bounds {
  /** Its schedules that are active or paused. */
  readonly maxActiveSchedules?: number | null;
  /** The shortest interval of its recurring schedules, in seconds. */
  readonly minIntervalS?: number | null;
  /** How far ahead the `runAt` of a task, or the due time of a one-time schedule, may be. */
  readonly horizonDays?: number | null;
  /** When its schedules expire at the latest. */
  readonly scheduleTtlDays?: number | null;
  /** Its submitted tasks and messages, over the last 60 minutes. */
  readonly maxSubmitsPerHour?: number | null;
  /** Its tasks that have not ended. */
  readonly maxOpenTasks?: number | null;
  /** How many tasks may be above a task in its tree. */
  readonly maxDepth?: number | null;
  /** All tasks below one root task. */
  readonly maxDescendants?: number | null;
}

export type BoundName = keyof Bounds;

/** Bounds as they apply to a caller; null: none. */
export type EffectiveBounds = { readonly [Name in BoundName]-?: number | null };

/** For calls over MCP and with task tokens, where nothing else is set. */
export const DEFAULT_BOUNDS = {
  maxActiveSchedules: 20,
  minIntervalS: 300,
  horizonDays: 90,
  scheduleTtlDays: 30,
  maxSubmitsPerHour: 200,
  maxOpenTasks: 100,
  maxDepth: 5,
  maxDescendants: 200,
} as const satisfies EffectiveBounds;

const BOUND_NAMES = Object.keys(DEFAULT_BOUNDS) as readonly BoundName[];

/** The first of several levels that sets a bound decides it. */
export function effectiveBounds(levels: readonly (Bounds | undefined)[]): EffectiveBounds {
  const entries = BOUND_NAMES.map((name) => {
    const level = levels.find((each) => each?.[name] !== undefined);
    return [name, level?.[name] ?? null];
  });
  return Object.fromEntries(entries) as EffectiveBounds;
}

/** The stricter of both for each bound, for a caller that must keep both. */
export function stricterBounds(one: EffectiveBounds, other: EffectiveBounds): EffectiveBounds {
  const entries = BOUND_NAMES.map((name) => [name, stricter(name, one[name], other[name])]);
  return Object.fromEntries(entries) as EffectiveBounds;
}

function stricter(name: BoundName, one: number | null, other: number | null): number | null {
  if (one === null || other === null) return one ?? other;
  // The longest of two shortest intervals is stricter.
  return name === "minIntervalS" ? Math.max(one, other) : Math.min(one, other);
}
