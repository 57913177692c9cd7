import type { Strategy } from "./lane.ts";

/** The queue, the metrics of this process since its start, and its limits. */
export interface SchedulerStats {
  /** Numbers of the tenant over all nodes. */
  readonly queue: {
    /** Waiting tasks, as admission counts them, including `delayed` and `waiting_dependency`. */
    readonly totalQueued: number;
    readonly totalInflight: number;
    /** The same as `totalQueued`, by agent; agents without any are left out. */
    readonly agentCounts: Readonly<Record<string, number>>;
  };
  /** Numbers of this process since its start. */
  readonly metrics: SchedulerMetrics;
  readonly config: {
    readonly strategy: Strategy;
    readonly maxQueueSize: number;
    readonly maxPerAgent: number;
    /** Of the lane `tasks`, over all nodes; 0: no limit. */
    readonly maxInflight: number;
    readonly maxPerAgentFlight: number;
    /** Of the lane `tasks`, in this process. */
    readonly workerCount: number;
    /** Like `5m0s`. */
    readonly resultTTL: string;
  };
}

export interface SchedulerMetrics {
  readonly tasksSubmitted: number;
  readonly tasksCompleted: number;
  /** Tasks in the state `failed`, including expired ones. */
  readonly tasksFailed: number;
  readonly tasksCancelled: number;
  readonly tasksRejected: number;
  /** Passed their deadline before they started. */
  readonly tasksExpired: number;
  readonly dispatchCount: number;
  /** The average time from when a task could start to its start. */
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
