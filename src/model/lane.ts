export const STRATEGIES = ["fair-fifo", "priority-fifo"] as const;
export type Strategy = (typeof STRATEGIES)[number];

/** A named pool of concurrency. */
export interface Lane {
  readonly name: string;
  /** How many of its tasks one process runs at once. */
  readonly concurrency: number;
  /** How many run at once over all nodes; null: no bound beyond the sum of the processes. */
  readonly total: number | null;
  /** How many of one agent's tasks run at once in this lane, over all nodes; null: no bound. */
  readonly perAgent: number | null;
  /** How many slots of `total` one tenant holds at most once a second enabled tenant exists; null: no bound. */
  readonly perTenant: number | null;
  readonly strategy: Strategy;
  /** A waiting task gains one step of priority each time it has waited this long; 0: never. */
  readonly agingMs: number;
}

/** Work that names a lane nobody configured goes here. */
export const FALLBACK_LANE = "main";
/** The lane of actions, instructions and custom payloads. */
export const TASKS_LANE = "tasks";
/** The lane of the runs of schedules. */
export const RUNS_LANE = "cron";
/** How many tasks one process runs at once in the lanes that are always there, unless somebody says otherwise. */
export const DEFAULT_LANES = { main: 30, subagent: 50, team: 100, cron: 30 } as const;

/** Counts that somebody might mean; more is a slip of the finger. A process may leave a lane to others. */
export const LANE_RANGES = {
  concurrency: { min: 0, max: 10_000_000 },
  total: { min: 1, max: 10_000_000 },
} as const;

/** To a URL one or two dots are a way up. */
const LANE_NAME = /^(?!\.{1,2}$)[A-Za-z0-9._:@/-]{1,128}$/;
export const LANE_NAME_FORM = "1 to 128 of the characters A–Z a–z 0–9 . _ : @ / -, but not . or .. alone";

export function isLaneName(name: unknown): name is string {
  return typeof name === "string" && LANE_NAME.test(name);
}

/** The part of a lane's slots that one tenant may hold, unless the configuration says otherwise. */
export const DEFAULT_MAX_LANE_SHARE = 0.8;

/** Shares are compared in millionths: `0.29 × 100` must be 29 slots, and in binary fractions it is less. */
const MILLION = 1_000_000;

/**
 * How many of `slots` one tenant may hold: its share rounded down, at least one, and never all of several. Null, no bound:
 * a single slot cannot be divided, and goes by fairness alone.
 */
export function slotsPerTenant(slots: number | null, maxLaneShare: number): number | null {
  if (slots === null || slots < 2) return null;
  const share = Math.floor((slots * Math.round(maxLaneShare * MILLION)) / MILLION);
  return Math.min(Math.max(share, 1), slots - 1);
}

/**
 * An agent that was never served in a lane goes ahead of those that were, but as if it had been served so many events
 * ago rather than never: a stream of agents that nobody has seen before must not starve the others.
 */
export const NEWCOMER_LEAD = 1000;
