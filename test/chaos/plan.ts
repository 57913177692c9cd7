import type { Chance } from "./chance.ts";

/** The mishaps of a run; nodes are numbers. */
export type Fault =
  /** `kill -9`, and a new start after a while. */
  | { readonly kind: "kill"; readonly node: number; readonly forMs: number }
  /** SIGSTOP, and SIGCONT after a while. */
  | { readonly kind: "pause"; readonly node: number; readonly forMs: number }
  /** Whatever a node and its database say to each other is swallowed; a side that loses something that way never gets it. */
  | { readonly kind: "cut"; readonly node: number; readonly forMs: number }
  /** PostgreSQL ends about half of its connections. */
  | { readonly kind: "terminate" }
  /** PostgreSQL cancels statements, as a statement timeout does: whatever runs at some moments of this time. */
  | { readonly kind: "cancel-statements"; readonly forMs: number }
  /** A transaction of another program keeps a lock that every change needs. */
  | { readonly kind: "lock"; readonly table: LockedTable; readonly forMs: number }
  /** PostgreSQL stops and starts again. */
  | { readonly kind: "restart-database" }
  /** PostgreSQL crashes, which loses what is not on the disk, and recovers. */
  | { readonly kind: "crash-database" }
  /** The database file may not grow. */
  | { readonly kind: "fill"; readonly node: number; readonly forMs: number }
  /** The clock of a node jumps ahead, then back further than it came from, and is right again after a while. */
  | { readonly kind: "clock"; readonly node: number; readonly forMs: number }
  /** The agents' program does not respond, responds with failures only, or hangs up. */
  | { readonly kind: "upstream"; readonly how: Outage; readonly forMs: number }
  /** `kill -9` of a worker, and a new start after a while. */
  | { readonly kind: "kill-worker"; readonly worker: number; readonly forMs: number }
  /** SIGSTOP of a worker, and SIGCONT after a while. */
  | { readonly kind: "pause-worker"; readonly worker: number; readonly forMs: number }
  /** Everything that a worker sends is lost, and so is every response to it: its connections are half open. */
  | { readonly kind: "cut-worker"; readonly worker: number; readonly forMs: number }
  /** The server carries out the calls of a worker, and about half of the responses are lost. */
  | { readonly kind: "lose-answers"; readonly worker: number; readonly forMs: number };

export const FAULT_KINDS = [
  "kill",
  "pause",
  "cut",
  "terminate",
  "cancel-statements",
  "lock",
  "restart-database",
  "crash-database",
  "fill",
  "clock",
  "upstream",
  "kill-worker",
  "pause-worker",
  "cut-worker",
  "lose-answers",
] as const satisfies readonly Fault["kind"][];

const OUTAGES = ["hangs", "fails", "hangs up"] as const;
export type Outage = (typeof OUTAGES)[number];
const LOCKED_TABLES = ["task", "event", "lease", "node"] as const;
export type LockedTable = (typeof LOCKED_TABLES)[number];
export type FaultKind = Fault["kind"];
export type StorageName = "sqlite" | "postgres";

/** Counted from the moment that clients begin. */
export interface Step {
  readonly atMs: number;
  readonly fault: Fault;
}

export interface PlanParams {
  readonly chance: Chance;
  readonly storage: StorageName;
  readonly nodes: number;
  readonly workers: number;
  readonly lastsMs: number;
  /** Brief: each kind once or twice, so that a lease runs out only where nothing else can be. */
  readonly brief: boolean;
}

const OF_WORKERS = { "kill-worker": 2, "pause-worker": 2, "cut-worker": 2, "lose-answers": 4 } as const;

/** How often each kind comes in a long run, next to the others, once each has come. */
const WEIGHTS: Readonly<Record<StorageName, Partial<Record<FaultKind, number>>>> = {
  sqlite: { kill: 5, pause: 2, fill: 3, upstream: 2, ...OF_WORKERS },
  // On SQLite, whose only node has the only clock, the moments that checks go by would jump with it.
  postgres: {
    kill: 4,
    pause: 3,
    cut: 3,
    terminate: 3,
    "cancel-statements": 3,
    lock: 1,
    "restart-database": 1,
    "crash-database": 2,
    clock: 2,
    upstream: 2,
    ...OF_WORKERS,
  },
};

/**
 * Those that take a lease to get over come first, so that the others come meanwhile. A callback that was under way then is
 * made again half a minute later.
 */
const BRIEF: Readonly<Record<StorageName, { first: readonly FaultKind[]; later: readonly FaultKind[] }>> = {
  sqlite: {
    first: ["kill", "kill", "kill-worker"],
    later: ["fill", "pause", "upstream", "lose-answers", "cut-worker", "pause-worker"],
  },
  postgres: {
    first: ["kill", "cut", "crash-database", "kill-worker"],
    later: [
      "terminate",
      "cancel-statements",
      "lock",
      "pause",
      "restart-database",
      "clock",
      "upstream",
      "terminate",
      "lose-answers",
      "cut-worker",
      "pause-worker",
    ],
  },
};

/** How long each lasts, in a brief run and in a long one; a lease is 15 seconds. */
const LASTS_MS: Readonly<
  Record<FaultKind, { brief: readonly [number, number]; long: readonly [number, number] }>
> = {
  kill: { brief: [0, 500], long: [0, 8_000] },
  pause: { brief: [300, 1_500], long: [500, 26_000] },
  cut: { brief: [500, 1_500], long: [500, 26_000] },
  clock: { brief: [500, 1_500], long: [500, 8_000] },
  fill: { brief: [800, 1_500], long: [500, 5_000] },
  upstream: { brief: [500, 1_000], long: [500, 5_000] },
  terminate: { brief: [0, 0], long: [0, 0] },
  "cancel-statements": { brief: [300, 600], long: [300, 3_000] },
  // A statement waits ten seconds for a lock.
  lock: { brief: [300, 600], long: [300, 12_000] },
  "restart-database": { brief: [0, 0], long: [0, 0] },
  "crash-database": { brief: [0, 0], long: [0, 0] },
  "kill-worker": { brief: [0, 500], long: [0, 8_000] },
  "pause-worker": { brief: [300, 1_500], long: [500, 26_000] },
  "cut-worker": { brief: [500, 1_500], long: [500, 26_000] },
  "lose-answers": { brief: [1_000, 2_000], long: [2_000, 10_000] },
};

/** The mishaps of all nodes. */
const NODELESS: readonly FaultKind[] = [
  "terminate",
  "cancel-statements",
  "lock",
  "restart-database",
  "crash-database",
  "upstream",
];
const WORKER_KINDS = Object.keys(OF_WORKERS) as FaultKind[];

const GAP_MS = [800, 4_000] as const;
/** A node that was struck has this long to come back before it is struck again. */
const REST_MS = 2_000;

/** The faults of a run, in order: the same for the same seed. Each kind that the storage knows is among them. */
export function makePlan(params: PlanParams): Step[] {
  const { chance, storage, lastsMs, brief } = params;
  const weights = WEIGHTS[storage] as Record<FaultKind, number>;
  const steps: Step[] = [];
  const freeAt = Array.from({ length: params.nodes }, () => 0);
  const workerFreeAt = Array.from({ length: params.workers }, () => 0);
  let upstreamFreeAt = 0;
  /** The kinds that are still to come in any case. */
  const owed = brief
    ? briefKinds(BRIEF[storage], chance)
    : chance.shuffle(Object.keys(weights) as FaultKind[]);
  const briefGapMs = Math.floor(lastsMs / (owed.length + 1));
  for (let atMs = 0; ; ) {
    const gapMs = brief ? briefGapMs : chance.between(...GAP_MS);
    // Each of them has to fit into the time that is left.
    const fitMs = Math.floor((lastsMs - atMs) / (owed.length + 1));
    atMs += Math.min(gapMs, fitMs);
    if (atMs >= lastsMs || (brief && owed.length === 0)) return steps;
    const freeOf = (times: readonly number[]) => times.flatMap((at, index) => (at <= atMs ? [index] : []));
    const [free, freeWorkers] = [freeOf(freeAt), freeOf(workerFreeAt)];
    const isPossible = (kind: FaultKind) => {
      if (NODELESS.includes(kind)) return kind !== "upstream" || upstreamFreeAt <= atMs;
      return WORKER_KINDS.includes(kind) ? freeWorkers.length > 0 : free.length > 0;
    };
    // Where there is no time to wait for a node, one is as good as another: what is done to it waits for it.
    const mustCome = brief || fitMs <= gapMs;
    const next = mustCome ? 0 : owed.findIndex(isPossible);
    const [kind = chance.weighted(weights)] = next < 0 ? [] : owed.splice(next, 1);
    if (!mustCome && !isPossible(kind)) continue;
    const [least, most] = LASTS_MS[kind][brief ? "brief" : "long"];
    const forMs = chance.between(least, most);
    const pickOf = (indexes: readonly number[], times: readonly number[]) =>
      indexes.length > 0 ? chance.pick(indexes) : times.indexOf(Math.min(...times));
    const fault = WORKER_KINDS.includes(kind)
      ? ({ kind, worker: pickOf(freeWorkers, workerFreeAt), forMs } as Fault)
      : makeFault(kind, { node: pickOf(free, freeAt), forMs, chance });
    if ("node" in fault) freeAt[fault.node] = atMs + forMs + REST_MS;
    if ("worker" in fault) workerFreeAt[fault.worker] = atMs + forMs + REST_MS;
    if (kind === "upstream") upstreamFreeAt = atMs + forMs;
    steps.push({ atMs, fault });
  }
}

function briefKinds({ first, later }: (typeof BRIEF)[StorageName], chance: Chance): FaultKind[] {
  return [...chance.shuffle(first), ...chance.shuffle(later)];
}

function makeFault(
  kind: FaultKind,
  { node, forMs, chance }: { node: number; forMs: number; chance: Chance },
): Fault {
  if (kind === "terminate" || kind === "restart-database" || kind === "crash-database") return { kind };
  if (kind === "upstream") return { kind, how: chance.pick(OUTAGES), forMs };
  if (kind === "cancel-statements") return { kind, forMs };
  if (kind === "lock") return { kind, table: chance.pick(LOCKED_TABLES), forMs };
  return { kind, node, forMs } as Fault;
}

/** One line for people. */
export function describeStep({ atMs, fault }: Step): string {
  const { kind } = fault;
  const whom =
    "node" in fault
      ? ` node-${fault.node}`
      : "worker" in fault
        ? ` worker-${fault.worker}`
        : "how" in fault
          ? ` ${fault.how}`
          : "table" in fault
            ? ` ${fault.table}`
            : "";
  const lasting = "forMs" in fault ? ` for ${fault.forMs} ms` : "";
  return `${(atMs / 1_000).toFixed(1).padStart(6)} s  ${kind}${whom}${lasting}`;
}
