import type { TaskState } from "./task-state.ts";

/** Why a task has not started or ended. */
export interface Explanation {
  readonly taskId: string;
  readonly state: TaskState;
  /** RFC 3339: since when it has been in this state. */
  readonly since: string;
  /**
   * Its position among the tasks of its agent that could start, or among those that wait for its concurrency key. 0: it is none
   * of them, for example because its batch or its session holds it.
   */
  readonly position: number;
  /** The tasks ahead of it, in order, ten at most. */
  readonly ahead: readonly string[];
  /** Everything that holds it; none when it has ended. */
  readonly reasons: readonly Reason[];
}

export const REASON_CODES = [
  "running",
  "assigned",
  "waiting_for_task",
  "unknown_task",
  "not_before",
  "retry_wait",
  "scheduler_disabled",
  "not_started",
  "draining",
  "tenant_disabled",
  "tenant_full",
  "tenant_at_lane_share",
  "no_executor",
  "preempted",
  "batch_full",
  "session_busy",
  "taken",
  "concurrency_key",
  "lane_not_served",
  "lane_full",
  "node_full",
  "workers_busy",
  "node_memory",
  "node_runs_alone",
  "runs_alone",
  "agent_full",
  "tasks_ahead",
  "others_first",
] as const;

export type ReasonCode = (typeof REASON_CODES)[number];

/**
 * The codes by which `waiting` counts tasks. Each task counts for the first code that holds it, in this order. `not_before`
 * includes retries, and `held_back` is for tasks that a batch, a session or a concurrency key holds: counters have no details.
 */
export const WAITING_CODES = [
  "scheduler_disabled",
  "not_started",
  "draining",
  "tenant_disabled",
  "waiting_for_task",
  "not_before",
  "held_back",
  "no_executor",
  "lane_not_served",
  "runs_alone",
  "node_runs_alone",
  "node_full",
  "node_memory",
  "lane_full",
  "tenant_at_lane_share",
  "tenant_full",
  "agent_full",
  "tasks_ahead",
  "others_first",
  "other",
] as const satisfies readonly (ReasonCode | "held_back" | "other")[];

export type WaitingCode = (typeof WAITING_CODES)[number];

export interface Reason {
  readonly code: ReasonCode;
  /** A sentence for people. */
  readonly message: string;
  /** RFC 3339. */
  readonly since: string;
  /** The task that it waits for. */
  readonly taskId?: string;
  readonly lane?: string;
  /** RFC 3339: when it no longer holds. */
  readonly until?: string;
}
