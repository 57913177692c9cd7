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
  readonly strategy: Strategy;
  /** How long a task waits to be lifted by one step of priority; 0: it never is. */
  readonly agingMs: number;
}

/** Work that names a lane nobody configured goes here. */
export const FALLBACK_LANE = "main";
/** The lane of actions, instructions and custom payloads. */
export const TASKS_LANE = "tasks";

/**
 * An agent that was never served in a lane goes ahead of those that were, but as if it had been served so many events
 * ago rather than never: a stream of agents that nobody has seen before must not starve the others.
 */
export const NEWCOMER_LEAD = 1000;
