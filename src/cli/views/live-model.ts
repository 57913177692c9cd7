import type { WaitingReason } from "../../interface/waiting.ts";
import type { RotaEvent } from "../../model/event.ts";
import type { SchedulerStats } from "../../model/scheduler-stats.ts";
import type { Task } from "../../model/task.ts";

/** Rates cover the last 10 seconds. */
const RATE_MS = 10_000;
/** More than any screen has lines. */
const RECENT_MAX = 200;
/** How many tasks keep their progress. Ended tasks are forgotten anyway. */
const PROGRESS_MAX = 1_000;

/** What the server reports, read every second. */
export interface Snapshot {
  readonly stats: SchedulerStats;
  /** The running tasks, or the first of them. */
  readonly running: readonly Task[];
  /** Why tasks wait. Left out: the view shows a part of the tasks, or the key may not read it. */
  readonly waiting?: readonly WaitingReason[];
}

export interface AgentLine {
  readonly agent: string;
  readonly running: number;
  readonly queued: number;
  readonly done: number;
  readonly failed: number;
}

/** The state of a live view: the last snapshot, and the events since the view was opened. */
export class LiveModel {
  snapshot: Snapshot | undefined;
  /** Why there is no newer snapshot. Undefined: the last one is current. */
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
    // After any other event of a task, the progress of its last attempt no longer counts.
    if (event.type === "task.progress") this.#remember(event);
    else this.#progress.delete(event.taskId);
    if (event.type === "task.started") this.#times.started.push(now);
    if (event.type === "task.completed") this.#times.done.push(now);
    if (event.type === "task.failed") this.#times.failed.push(now);
  }

  /** Newest first. */
  recent(count: number): RotaEvent[] {
    return this.#recent.slice(-count).reverse();
  }

  progressOf(taskId: string): unknown {
    return this.#progress.get(taskId);
  }

  /** How many per second, while the view was open. */
  rate(what: "started" | "done" | "failed", now: number): number {
    const times = this.#times[what].filter((time) => time > now - RATE_MS);
    this.#times[what] = times;
    const lookedMs = Math.min(Math.max(now - this.#since, 1_000), RATE_MS);
    return times.length / (lookedMs / 1_000);
  }

  /** Busiest first. */
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

  /** The number of running tasks in each lane, by name. */
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
