import type { Strategy } from "./lane.ts";

/** A look at the queue, at what this process did since it started, and at the numbers it works with. */
export interface SchedulerStats {
  /** Of the tenant, over all nodes. */
  readonly queue: {
    /** What admission counts: submitted tasks that wait, `delayed` and `waiting_dependency` included. */
    readonly totalQueued: number;
    readonly totalInflight: number;
    /** The same as `totalQueued`, by agent; agents without any are left out. */
    readonly agentCounts: Readonly<Record<string, number>>;
  };
  /** Of this process, since it started. */
  readonly metrics: SchedulerMetrics;
  readonly config: {
    readonly strategy: Strategy;
    readonly maxQueueSize: number;
    readonly maxPerAgent: number;
    readonly maxInflight: number;
    readonly maxPerAgentFlight: number;
    readonly workerCount: number;
    /** Like `5m0s`. */
    readonly resultTTL: string;
  };
}

export interface SchedulerMetrics {
  readonly tasksSubmitted: number;
  readonly tasksCompleted: number;
  /** Failed for good, expired ones included. */
  readonly tasksFailed: number;
  readonly tasksCancelled: number;
  readonly tasksRejected: number;
  /** Passed their deadline before they started. */
  readonly tasksExpired: number;
  readonly dispatchCount: number;
  /** From the moment a task could start to its start, on average. */
  readonly avgDispatchLatencyMs: number;
  readonly agents: Readonly<Record<string, AgentMetrics>>;
}

export interface AgentMetrics {
  readonly submitted: number;
  readonly completed: number;
  readonly failed: number;
  readonly cancelled: number;
  readonly rejected: number;
}
