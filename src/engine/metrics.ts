import type { AgentMetrics, SchedulerMetrics } from "../model/scheduler-stats.ts";
import type { TaskRecord } from "../model/task-record.ts";
import type { TaskState } from "../model/task-state.ts";

/** Agents that get a row of their own; ids are the callers' to choose, so that there may be any number of them. */
const AGENTS_MAX = 1_000;
/** Where all further agents are counted. */
const OTHER_AGENTS = "other";

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** What this process did since it started. */
export class Metrics {
  readonly #totals = { submitted: 0, completed: 0, failed: 0, cancelled: 0, rejected: 0, expired: 0 };
  readonly #agents = new Map<string, Mutable<AgentMetrics>>();
  #dispatched = 0;
  #latencies = 0;
  #latencySumMs = 0;

  submitted(agent: string, { rejected }: { rejected: boolean }): void {
    this.#count(agent, rejected ? "rejected" : "submitted");
  }

  /** An attempt ended and left the task in this state; only states that are final count. */
  ended(agent: string, state: TaskState): void {
    if (state === "done") this.#count(agent, "completed");
    else if (state === "failed") this.#count(agent, "failed");
  }

  cancelled(agent: string): void {
    this.#count(agent, "cancelled");
  }

  /** Failed before they started, whoever they belonged to. */
  expired(tasks: number): void {
    this.#totals.expired += tasks;
    this.#totals.failed += tasks;
  }

  /** Failed because their node was lost. */
  lost(tasks: number): void {
    this.#totals.failed += tasks;
  }

  dispatched(record: TaskRecord): void {
    this.#dispatched += 1;
    const waitedMs = waitBeforeLastAttempt(record);
    if (waitedMs === null) return;
    this.#latencies += 1;
    this.#latencySumMs += waitedMs;
  }

  snapshot(): SchedulerMetrics {
    const { submitted, completed, failed, cancelled, rejected, expired } = this.#totals;
    return {
      tasksSubmitted: submitted,
      tasksCompleted: completed,
      tasksFailed: failed,
      tasksCancelled: cancelled,
      tasksRejected: rejected,
      tasksExpired: expired,
      dispatchCount: this.#dispatched,
      avgDispatchLatencyMs: this.#latencies === 0 ? 0 : this.#latencySumMs / this.#latencies,
      agents: Object.fromEntries([...this.#agents].map(([agent, counts]) => [agent, { ...counts }])),
    };
  }

  #count(agent: string, what: keyof AgentMetrics): void {
    this.#totals[what] += 1;
    this.#agent(agent)[what] += 1;
  }

  #agent(agent: string): Mutable<AgentMetrics> {
    const known = this.#agents.get(agent);
    if (known !== undefined) return known;
    if (this.#agents.size >= AGENTS_MAX && agent !== OTHER_AGENTS) return this.#agent(OTHER_AGENTS);
    const counts = { submitted: 0, completed: 0, failed: 0, cancelled: 0, rejected: 0 };
    this.#agents.set(agent, counts);
    return counts;
  }
}

/** From the moment it could start to its start; null when nobody wrote down when that was, as for a task retried by hand. */
function waitBeforeLastAttempt({ attempts, createdAt, runAt }: TaskRecord): number | null {
  const startedAt = attempts.at(-1)?.startedAt;
  if (startedAt === undefined) return null;
  const before = attempts.at(-2);
  if (before === undefined) return Math.max(startedAt - Math.max(createdAt, runAt ?? 0), 0);
  if (runAt === null || runAt < (before.endedAt ?? 0)) return null;
  return Math.max(startedAt - runAt, 0);
}
