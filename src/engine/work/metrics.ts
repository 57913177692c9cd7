import type { Usage } from "../../executors/executor.ts";
import { AgentLabels, OTHER_AGENTS } from "../../metrics/agent-labels.ts";
import { type LabelledSeries, TaskSeries } from "../../metrics/task-series.ts";
import type { Tokens } from "../../metrics/token-metrics.ts";
import type { AgentMetrics, SchedulerMetrics } from "../../model/scheduler-stats.ts";
import type { TaskRecord } from "../../model/task-record.ts";
import type { TaskState } from "../../model/task-state.ts";
import type { TaskLabels } from "../../storage/storage.ts";

/** Where a task of this tenant runs. */
type AgentAndLane = Pick<TaskLabels, "agent" | "lane">;

/** Agents that get a row of their own. Callers choose the ids of agents, so there may be any number of them. */
const AGENTS_MAX = 1_000;

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

interface AgentRow {
  readonly counts: Mutable<AgentMetrics>;
  /** Its series by lane: its own, or those it shares with all agents that have no label. */
  readonly lanes: Map<string, TaskSeries>;
}

/**
 * What this process did for a tenant since it started, for `/scheduler/stats` and for Prometheus. It is called three times
 * for every task, so it keeps plain numbers that take two look-ups to find.
 */
export class Metrics {
  readonly labels = new AgentLabels();
  readonly #totals = { submitted: 0, completed: 0, failed: 0, cancelled: 0, rejected: 0, expired: 0 };
  readonly #agents = new Map<string, AgentRow>();
  /** How many more rows there may be. The row that all further agents share does not count. */
  readonly #budget: { left: number };
  readonly #lanesByLabel = new Map<string, Map<string, TaskSeries>>();
  readonly #tokensByLabel = new Map<string, Tokens>();
  #dispatched = 0;
  #latencies = 0;
  #latencySumMs = 0;

  constructor(budget: { left: number } = { left: AGENTS_MAX }) {
    this.#budget = budget;
  }

  /** How many agents have a row of their own. */
  get rows(): number {
    return this.#agents.size - (this.#agents.has(OTHER_AGENTS) ? 1 : 0);
  }

  submitted(task: AgentAndLane, { rejected }: { rejected: boolean }): void {
    this.#count(task, rejected ? "rejected" : "submitted");
  }

  dispatched(record: TaskRecord): void {
    const series = this.#series(record);
    series.started += 1;
    this.#dispatched += 1;
    const waitedMs = waitBeforeLastAttempt(record);
    if (waitedMs === null) return;
    series.wait.observe(waitedMs);
    this.#latencies += 1;
    this.#latencySumMs += waitedMs;
  }

  /** An attempt is over, for any reason. */
  ran(task: AgentAndLane, ms: number): void {
    this.#series(task).run.observe(ms);
  }

  /** The end of an attempt was written and left the task in this state. */
  ended(task: AgentAndLane, state: TaskState): void {
    if (state === "done") this.#count(task, "completed");
    else if (state === "failed") this.#count(task, "failed");
    else if (state === "delayed") this.#series(task).retried += 1;
  }

  /** An attempt was stopped so that a critical task could start. */
  preempted(task: AgentAndLane): void {
    this.#series(task).preempted += 1;
  }

  /** An attempt reported what it cost. */
  used({ agent }: AgentAndLane, { inputTokens = 0, outputTokens = 0, costMicros = 0 }: Usage): void {
    const label = this.labels.of(agent);
    const before = this.#tokensByLabel.get(label) ?? { input: 0, output: 0, costMicros: 0 };
    this.#tokensByLabel.set(label, {
      input: before.input + inputTokens,
      output: before.output + outputTokens,
      costMicros: before.costMicros + costMicros,
    });
  }

  cancelled(task: AgentAndLane): void {
    this.#count(task, "cancelled");
  }

  /** The task failed before it started. */
  expired(task: AgentAndLane): void {
    this.#totals.expired += 1;
    this.#series(task).expired += 1;
    this.#count(task, "failed");
  }

  /** The node of the task was lost. The task failed, or is in the queue again. */
  lost(task: AgentAndLane, state: "failed" | "queued"): void {
    if (state === "failed") this.#count(task, "failed");
    else this.#series(task).retried += 1;
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
      agents: Object.fromEntries([...this.#agents].map(([agent, { counts }]) => [agent, { ...counts }])),
    };
  }

  /** Everything by agent and lane. */
  series(): LabelledSeries[] {
    return [...this.#lanesByLabel].flatMap(([agent, lanes]) =>
      [...lanes].map(([lane, series]) => ({ labels: { agent, lane }, series })),
    );
  }

  /** What the tasks of each agent cost, as far as their executors reported it. */
  tokens(): ReadonlyMap<string, Tokens> {
    return this.#tokensByLabel;
  }

  #count({ agent, lane }: AgentAndLane, what: keyof AgentMetrics): void {
    const row = this.#row(agent);
    this.#totals[what] += 1;
    row.counts[what] += 1;
    seriesOf(row, lane)[what] += 1;
  }

  #series({ agent, lane }: AgentAndLane): TaskSeries {
    return seriesOf(this.#row(agent), lane);
  }

  #row(agent: string): AgentRow {
    const known = this.#agents.get(agent);
    if (known !== undefined) return known;
    if (agent !== OTHER_AGENTS) {
      if (this.rows >= AGENTS_MAX || this.#budget.left === 0) return this.#row(OTHER_AGENTS);
      this.#budget.left -= 1;
    }
    const counts = { submitted: 0, completed: 0, failed: 0, cancelled: 0, rejected: 0 };
    const row = { counts, lanes: this.#lanes(this.labels.of(agent)) };
    this.#agents.set(agent, row);
    return row;
  }

  #lanes(label: string): Map<string, TaskSeries> {
    const lanes = this.#lanesByLabel.get(label) ?? new Map();
    this.#lanesByLabel.set(label, lanes);
    return lanes;
  }
}

function seriesOf({ lanes }: AgentRow, lane: string): TaskSeries {
  const known = lanes.get(lane);
  if (known !== undefined) return known;
  const series = new TaskSeries();
  lanes.set(lane, series);
  return series;
}

/** The time from when it could start to its start; null: not recorded, as for a task that a user retried. */
function waitBeforeLastAttempt({ attempts, createdAt, runAt }: TaskRecord): number | null {
  const startedAt = attempts.at(-1)?.startedAt;
  if (startedAt === undefined) return null;
  const before = attempts.at(-2);
  if (before === undefined) return Math.max(startedAt - Math.max(createdAt, runAt ?? 0), 0);
  if (before.outcome === "preempted") return Math.max(startedAt - (before.endedAt ?? startedAt), 0);
  if (runAt === null || runAt < (before.endedAt ?? 0)) return null;
  return Math.max(startedAt - runAt, 0);
}
