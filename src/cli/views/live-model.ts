import type { RotaEvent } from "../../model/event.ts";
import type { SchedulerStats } from "../../model/scheduler-stats.ts";
import type { Task } from "../../model/task.ts";

/** Rates are those of the last so many milliseconds. */
const RATE_MS = 10_000;
/** More than any screen has lines. */
const RECENT_MAX = 200;
/** Tasks whose progress is remembered; those that ended are forgotten anyway. */
const PROGRESS_MAX = 1_000;

/** What the server says of itself, every second. */
export interface Snapshot {
  readonly stats: SchedulerStats;
  /** The tasks that run, or the first of them. */
  readonly running: readonly Task[];
}

export interface AgentLine {
  readonly agent: string;
  readonly running: number;
  readonly queued: number;
  readonly done: number;
  readonly failed: number;
}

/** What a live view knows: the last snapshot, and what has happened since it began to look. */
export class LiveModel {
  snapshot: Snapshot | undefined;
  /** Why there is no newer snapshot; undefined while there is. */
  trouble: string | undefined;
  readonly #since: number;
  readonly #recent: RotaEvent[] = [];
  readonly #progress = new Map<string, unknown>();
  readonly #times: Record<"started" | "done" | "failed", number[]> = { started: [], done: [], failed: [] };

  constructor(now: number) {
    this.#since = now;
  }

  take(event: RotaEvent, now: number): void {
    this.#recent.push(event);
    if (this.#recent.length > RECENT_MAX) this.#recent.shift();
    // Whatever else happens to a task, what its last attempt reported no longer counts.
    if (event.type === "task.progress") this.#remember(event);
    else this.#progress.delete(event.taskId);
    if (event.type === "task.started") this.#times.started.push(now);
    if (event.type === "task.completed") this.#times.done.push(now);
    if (event.type === "task.failed") this.#times.failed.push(now);
  }

  /** The newest first. */
  recent(count: number): RotaEvent[] {
    return this.#recent.slice(-count).reverse();
  }

  progressOf(taskId: string): unknown {
    return this.#progress.get(taskId);
  }

  /** How often something happened, a second, while it was looked at. */
  rate(what: "started" | "done" | "failed", now: number): number {
    const times = this.#times[what].filter((time) => time > now - RATE_MS);
    this.#times[what] = times;
    const lookedMs = Math.min(Math.max(now - this.#since, 1_000), RATE_MS);
    return times.length / (lookedMs / 1_000);
  }

  /** The busiest first. */
  agents(): AgentLine[] {
    if (this.snapshot === undefined) return [];
    const { stats, running } = this.snapshot;
    const runningBy = countBy(running, ({ agentId }) => agentId);
    const names = new Set([
      ...runningBy.keys(),
      ...Object.keys(stats.queue.agentCounts),
      ...Object.keys(stats.metrics.agents),
    ]);
    const lines = [...names].map((agent) => ({
      agent,
      running: runningBy.get(agent) ?? 0,
      queued: stats.queue.agentCounts[agent] ?? 0,
      done: stats.metrics.agents[agent]?.completed ?? 0,
      failed: stats.metrics.agents[agent]?.failed ?? 0,
    }));
    return lines.sort(
      (a, b) => b.running + b.queued - (a.running + a.queued) || (a.agent < b.agent ? -1 : 1),
    );
  }

  /** How many run in each lane, by its name. */
  lanes(): [name: string, running: number][] {
    return [...countBy(this.snapshot?.running ?? [], ({ lane }) => lane)].sort(([a], [b]) =>
      a < b ? -1 : 1,
    );
  }

  #remember({ taskId, progress }: RotaEvent): void {
    this.#progress.delete(taskId);
    this.#progress.set(taskId, progress);
    if (this.#progress.size > PROGRESS_MAX)
      this.#progress.delete(this.#progress.keys().next().value as string);
  }
}

function countBy<Item>(items: readonly Item[], keyOf: (item: Item) => string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const item of items) counts.set(keyOf(item), (counts.get(keyOf(item)) ?? 0) + 1);
  return counts;
}
