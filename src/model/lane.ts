export const STRATEGIES = ["fair-fifo", "priority-fifo"] as const;
export type Strategy = (typeof STRATEGIES)[number];

/** A named pool of concurrency. */
export interface Lane {
  readonly name: string;
  /** How many of its tasks one process runs at once. */
  readonly concurrency: number;
  /** How many run at once over all nodes; null: no limit beyond the sum of the processes. */
  readonly total: number | null;
  /** How many of one agent's tasks run at once in this lane, over all nodes; null: no limit. */
  readonly perAgent: number | null;
  /** The most slots of `total` that one tenant may hold once a second enabled tenant exists; null: no limit. */
  readonly perTenant: number | null;
  readonly strategy: Strategy;
  /** A waiting task gains one step of priority each time it has waited this long; 0: never. */
  readonly agingMs: number;
}

/** The lane of tasks that name an unknown lane. */
export const FALLBACK_LANE = "main";
/** The lane of actions, instructions and custom payloads. */
export const TASKS_LANE = "tasks";
/** The lane of the runs of schedules. */
export const RUNS_LANE = "cron";
/** The default concurrency of the built-in lanes, per process. */
export const DEFAULT_LANES = { main: 30, subagent: 50, team: 100, cron: 30 } as const;

/** Plausible numbers; more is a typing mistake. With a concurrency of 0 a process leaves the lane to other nodes. */
export const LANE_RANGES = {
  concurrency: { min: 0, max: 10_000_000 },
  total: { min: 1, max: 10_000_000 },
} as const;

/** In a URL `.` and `..` are path segments with a meaning of their own. */
const LANE_NAME = /^(?!\.{1,2}$)[A-Za-z0-9._:@/-]{1,128}$/;
export const LANE_NAME_FORM = "1 to 128 of the characters A–Z a–z 0–9 . _ : @ / -, but not . or .. alone";

export function isLaneName(name: unknown): name is string {
  return typeof name === "string" && LANE_NAME.test(name);
}

/** The default share of a lane's slots that one tenant may hold. */
export const DEFAULT_MAX_LANE_SHARE = 0.8;

/** Shares are computed in millionths: `0.29 × 100` must be 29 slots, but is less in floating point. */
const MILLION = 1_000_000;

/**
 * How many of `slots` one tenant may hold: its share rounded down, at least one, and at most one less than all. Null: no limit.
 * A single slot cannot be shared; tenants take turns on it.
 */
export function slotsPerTenant(slots: number | null, maxLaneShare: number): number | null {
  if (slots === null || slots < 2) return null;
  const share = Math.floor((slots * Math.round(maxLaneShare * MILLION)) / MILLION);
  return Math.min(Math.max(share, 1), slots - 1);
}

/**
 * An agent without an earlier start in a lane goes ahead of the others, but counts as if it had started this many events ago.
 * Otherwise a stream of new agents would starve the others.
 */
export const NEWCOMER_LEAD = 1000;
