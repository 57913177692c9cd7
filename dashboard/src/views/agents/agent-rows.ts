import type { AgentInfo, StatsSeries, WorkerInfo } from "../../../../src/client/index.ts";
import { formatCount } from "../../parts/format.ts";

/** One agent with its work. */
export interface AgentRow {
  readonly id: string;
  /** Undefined: it is not listed, but tasks name it. */
  readonly info: AgentInfo | undefined;
  /** Undefined: not known yet. */
  readonly running: number | undefined;
  readonly waiting: number | undefined;
  /** How many workers run its tasks. */
  readonly workers: number;
  /** Of the time range of the statistics. Undefined: it is not among the busiest, and its numbers are not known. */
  readonly recent: Recent | undefined;
}

export interface Recent {
  readonly done: number;
  readonly failed: number;
  readonly tokens: number;
  /** Of the latest step in which one of its tasks ended. Null: none did. */
  readonly runP95: number | null;
}

interface AgentParts {
  readonly agents: readonly AgentInfo[];
  readonly workers: readonly Pick<WorkerInfo, "agents" | "state">[];
  /** Undefined: not read yet, like the running tasks. */
  readonly waiting?: Readonly<Record<string, number>>;
  /** The agents of the running tasks, once for each task. */
  readonly running?: readonly string[];
  readonly stats: StatsSeries | undefined;
}

/** All agents that are listed or have work, the busiest first. */
export function agentRows({ agents, workers, waiting, running, stats }: AgentParts): readonly AgentRow[] {
  const infos = new Map(agents.map((info) => [info.id, info]));
  const counts = new Map<string, number>();
  for (const id of running ?? []) counts.set(id, (counts.get(id) ?? 0) + 1);
  const served = new Map<string, number>();
  for (const { agents, state } of workers) {
    if (state === "lost") continue;
    for (const id of agents) served.set(id, (served.get(id) ?? 0) + 1);
  }
  const recent = recentOf(stats);
  const ids = new Set([
    ...infos.keys(),
    ...Object.keys(waiting ?? {}),
    ...counts.keys(),
    ...served.keys(),
    ...recent.keys(),
  ]);
  // Stands for all agents that workers may run: no agent has this name.
  ids.delete("*");
  const isAllKnown = stats !== undefined && !stats.series.some(({ key }) => key === OTHER);
  return [...ids]
    .map((id) => ({
      id,
      info: infos.get(id),
      running: running && (counts.get(id) ?? 0),
      waiting: waiting && (waiting[id] ?? 0),
      workers: served.get(id) ?? 0,
      recent: recent.get(id) ?? (isAllKnown ? NOTHING : undefined),
    }))
    .sort((one, other) => weight(other) - weight(one) || (one.id < other.id ? -1 : 1));
}

/** The server sums up agents beyond the busiest under this name. */
const OTHER = "other";
const NOTHING: Recent = { done: 0, failed: 0, tokens: 0, runP95: null };

/** Mostly of the last day: what runs changes all the time, and rows that change places cannot be read. */
function weight({ running = 0, waiting = 0, recent }: AgentRow): number {
  return running + waiting + (recent === undefined ? 0 : recent.done + recent.failed);
}

function recentOf(stats: StatsSeries | undefined): ReadonlyMap<string, Recent> {
  const found = new Map<string, Recent>();
  for (const { key, metric, points } of stats?.series ?? []) {
    if (key === OTHER) continue;
    const before = found.get(key) ?? NOTHING;
    if (metric === "runMs") {
      found.set(key, { ...before, runP95: points.findLast((point) => point !== null)?.p95 ?? null });
    } else if (metric === "done" || metric === "failed" || metric === "tokens") {
      found.set(key, { ...before, [metric]: points.reduce((sum, point) => sum + (point as number), 0) });
    }
  }
  return found;
}

/** `98.4 % of 1 204`. Undefined: nothing ended. */
export function successRate({ done, failed }: Recent): string | undefined {
  const ended = done + failed;
  if (ended === 0) return undefined;
  const share = (done / ended) * 100;
  return `${share === 100 || share === 0 ? share : share.toFixed(1)}\u00a0% of ${formatCount(ended)}`;
}
