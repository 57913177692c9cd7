/** How much of everything one run does. */
export interface PeerSizes {
  /** Tasks submitted one after the other, by one caller, and by fifty; and with calls of a thousand. */
  readonly addOne: number;
  readonly addConcurrent: number;
  readonly addMany: number;
  readonly drain: number;
  /** Tasks that wait behind those that are measured. */
  readonly backlogs: readonly number[];
  readonly window: number;
  readonly samples: number;
  readonly idleSec: number;
  readonly fairness: FairnessSizes;
}

export interface FairnessSizes {
  /** Tasks of the one busy agent. */
  readonly big: number;
  readonly smallAgents: number;
  readonly each: number;
  /** How long a task takes. */
  readonly taskMs: number;
}

export const FULL_PEERS: PeerSizes = {
  addOne: 2_000,
  addConcurrent: 20_000,
  addMany: 50_000,
  drain: 30_000,
  backlogs: [1_000, 100_000, 1_000_000],
  window: 20_000,
  samples: 300,
  idleSec: 10,
  fairness: { big: 10_000, smallAgents: 50, each: 10, taskMs: 10 },
};

export const QUICK_PEERS: PeerSizes = {
  addOne: 300,
  addConcurrent: 3_000,
  addMany: 10_000,
  drain: 6_000,
  backlogs: [1_000, 10_000, 50_000],
  window: 3_000,
  samples: 100,
  idleSec: 3,
  fairness: { big: 2_000, smallAgents: 50, each: 2, taskMs: 10 },
};
