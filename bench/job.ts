import type { Figure } from "./figure.ts";
import type { AttackName } from "./neighbours/attack-names.ts";
import { FULL_NEIGHBOURS, type NeighbourSizes, QUICK_NEIGHBOURS } from "./neighbours/sizes.ts";
import { FULL_PEERS, type PeerSizes, QUICK_PEERS } from "./peers/sizes.ts";

/** One storage's share of a part, run in a process of its own so that no measurement inherits another's memory. */
export type Job = (setting: Setting) => Promise<Figure[] | Findings>;

/** Figures that are reported in another way than as a table. */
export interface Findings {
  readonly figures: readonly Figure[];
  /** Markdown. */
  readonly text: string;
}

export interface Setting {
  /** On a disk, ours, and removed at the end. */
  readonly folder: string;
  /** A superuser's connection to a PostgreSQL that waits for the disk; null when no job needs one. */
  readonly postgresUrl: string | null;
  readonly turns: number;
  readonly sizes: Sizes;
  readonly neighbours: NeighbourOrders;
}

/** What of the part `neighbours` was asked for. */
export interface NeighbourOrders {
  readonly attacks: readonly AttackName[];
  /** In place of those that belong to the sizes. */
  readonly sizes: Partial<NeighbourSizes>;
}

export interface Sizes {
  /** Tasks of one run of a drain. */
  readonly drain: number;
  /** The same on several nodes. */
  readonly nodesDrain: number;
  /** Tasks of one run of submitting. */
  readonly submit: number;
  /** Tasks that wait in the large backlog, and tasks started from it in each run. */
  readonly backlog: number;
  readonly window: number;
  readonly samples: number;
  readonly idleSec: number;
  /** How long requests are made in each run. */
  readonly httpSec: number;
  /** How long realistic load is measured in each run. */
  readonly realisticSec: number;
  /** Tasks of sessions, and sessions, of one run of a drain. */
  readonly sessions: number;
  /** Schedules that are not due, and schedules that are due at the same moment. */
  readonly idleSchedules: number;
  readonly dueSchedules: number;
  /** Streams that are open at once. */
  readonly streams: number;
  readonly peers: PeerSizes;
  readonly neighbours: NeighbourSizes;
}

export const FULL: Sizes = {
  drain: 30_000,
  nodesDrain: 40_000,
  submit: 20_000,
  backlog: 1_000_000,
  window: 20_000,
  samples: 1_000,
  idleSec: 10,
  httpSec: 8,
  realisticSec: 10,
  sessions: 100_000,
  idleSchedules: 100_000,
  dueSchedules: 1_000,
  streams: 2_000,
  peers: FULL_PEERS,
  neighbours: FULL_NEIGHBOURS,
};

export const QUICK: Sizes = {
  drain: 5_000,
  nodesDrain: 10_000,
  submit: 4_000,
  backlog: 50_000,
  window: 4_000,
  samples: 200,
  idleSec: 5,
  httpSec: 3,
  realisticSec: 4,
  sessions: 5_000,
  idleSchedules: 10_000,
  dueSchedules: 1_000,
  streams: 500,
  peers: QUICK_PEERS,
  neighbours: QUICK_NEIGHBOURS,
};
