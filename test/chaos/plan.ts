import type { Chance } from "./chance.ts";

/** What is done to a run; nodes are numbers. */
export type Fault =
  /** `kill -9`, and a new start after a while. */
  | { readonly kind: "kill"; readonly node: number; readonly forMs: number }
  /** SIGSTOP, and SIGCONT after a while. */
  | { readonly kind: "pause"; readonly node: number; readonly forMs: number }
  /** Whatever a node and its database say to each other is swallowed; who loses something that way never hears more. */
  | { readonly kind: "cut"; readonly node: number; readonly forMs: number }
  /** PostgreSQL ends about half of its connections. */
  | { readonly kind: "terminate" }
  /** PostgreSQL stops and starts again. */
  | { readonly kind: "restart-database" }
  /** The database file may not grow. */
  | { readonly kind: "fill"; readonly node: number; readonly forMs: number }
  /** The clock of a node jumps ahead, then back further than it came from, and is right again after a while. */
  | { readonly kind: "clock"; readonly node: number; readonly forMs: number }
  /** The agents' program answers nothing, nothing but failures, or hangs up. */
  | { readonly kind: "upstream"; readonly how: Outage; readonly forMs: number };

export const FAULT_KINDS = [
  "kill",
  "pause",
  "cut",
  "terminate",
  "restart-database",
  "fill",
  "clock",
  "upstream",
] as const satisfies readonly Fault["kind"][];

const OUTAGES = ["hangs", "fails", "hangs up"] as const;
export type Outage = (typeof OUTAGES)[number];
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
  readonly lastsMs: number;
  /** Brief: each kind once or twice, so that a lease runs out only where nothing else can be. */
  readonly brief: boolean;
}

/** How often each kind comes in a long run, next to the others. */
const WEIGHTS: Readonly<Record<StorageName, Partial<Record<FaultKind, number>>>> = {
  sqlite: { kill: 5, pause: 2, fill: 3, upstream: 2 },
  // On SQLite, whose only node has the only clock, the moments that checks go by would jump with it.
  postgres: { kill: 4, pause: 3, cut: 3, terminate: 3, "restart-database": 1, clock: 2, upstream: 2 },
};

/** Those that take a lease to get over come first, so that the others come meanwhile. */
const BRIEF: Readonly<Record<StorageName, { first: readonly FaultKind[]; later: readonly FaultKind[] }>> = {
  sqlite: { first: [], later: ["kill", "fill", "kill", "pause", "upstream"] },
  postgres: {
    first: ["kill", "cut"],
    later: ["terminate", "pause", "restart-database", "clock", "upstream", "terminate"],
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
  "restart-database": { brief: [0, 0], long: [0, 0] },
};

const GAP_MS = [800, 4_000] as const;
/** A node that was struck has this long to come back before it is struck again. */
const REST_MS = 2_000;

/** The faults of a run, in order: the same for the same seed. */
export function makePlan(params: PlanParams): Step[] {
  const { chance, storage, lastsMs, brief } = params;
  const steps: Step[] = [];
  const freeAt = Array.from({ length: params.nodes }, () => 0);
  let upstreamFreeAt = 0;
  const kinds = brief ? briefKinds(BRIEF[storage], chance) : null;
  const gapMs = kinds === null ? null : Math.floor(lastsMs / (kinds.length + 1));
  for (let atMs = gapMs ?? GAP_MS[0]; atMs < lastsMs; atMs += gapMs ?? chance.between(...GAP_MS)) {
    const kind =
      kinds === null ? chance.weighted(WEIGHTS[storage] as Record<FaultKind, number>) : kinds.shift();
    if (kind === undefined) break;
    const [least, most] = LASTS_MS[kind][brief ? "brief" : "long"];
    const forMs = chance.between(least, most);
    const free = freeAt.flatMap((free, node) => (free <= atMs ? [node] : []));
    // In a brief run, one node is as good as another, and each kind is to come.
    const node = free.length > 0 ? chance.pick(free) : brief ? freeAt.indexOf(Math.min(...freeAt)) : null;
    const fault = makeFault(kind, { node, forMs, chance });
    if (fault === null || (kind === "upstream" && upstreamFreeAt > atMs)) continue;
    if ("node" in fault) freeAt[fault.node] = atMs + forMs + REST_MS;
    if (kind === "upstream") upstreamFreeAt = atMs + forMs;
    steps.push({ atMs, fault });
  }
  return steps;
}

function briefKinds({ first, later }: (typeof BRIEF)[StorageName], chance: Chance): FaultKind[] {
  return [...chance.shuffle(first), ...chance.shuffle(later)];
}

function makeFault(
  kind: FaultKind,
  { node, forMs, chance }: { node: number | null; forMs: number; chance: Chance },
): Fault | null {
  if (kind === "terminate" || kind === "restart-database") return { kind };
  if (kind === "upstream") return { kind, how: chance.pick(OUTAGES), forMs };
  return node === null ? null : { kind, node, forMs };
}

/** One line for people. */
export function describeStep({ atMs, fault }: Step): string {
  const { kind } = fault;
  const whom = "node" in fault ? ` node-${fault.node}` : "how" in fault ? ` ${fault.how}` : "";
  const lasting = "forMs" in fault ? ` for ${fault.forMs} ms` : "";
  return `${(atMs / 1_000).toFixed(1).padStart(6)} s  ${kind}${whom}${lasting}`;
}
