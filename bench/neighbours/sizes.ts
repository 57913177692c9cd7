/** How long and how much. */
export interface NeighbourSizes {
  /** How long the victim is measured, quiet and under each attack. */
  readonly windowSec: number;
  /** How long the node is watched after it was killed and started again with what the memory attack left. */
  readonly afterRestartSec: number;
  /** Tasks that are stored before the attack by reads, unless `--tasks` names another number. */
  readonly storedTasks: number;
  /** Callbacks to the receiver that responds with 500. */
  readonly failingCallbacks: number;
  /** Schedules of every second. */
  readonly schedules: number;
}

/** Leases last 15 seconds: only after that does a node start again what a killed one had. */
export const FULL_NEIGHBOURS: NeighbourSizes = {
  windowSec: 15,
  afterRestartSec: 25,
  storedTasks: 100_000,
  failingCallbacks: 10_000,
  schedules: 3_000,
};

export const QUICK_NEIGHBOURS: NeighbourSizes = {
  windowSec: 4,
  afterRestartSec: 18,
  storedTasks: 20_000,
  failingCallbacks: 2_000,
  schedules: 600,
};
