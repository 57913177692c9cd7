import type { TaskState } from "./task-state.ts";

export const EVENT_TYPES = [
  "task.created",
  "task.started",
  "task.progress",
  "task.retrying",
  "task.preempted",
  "task.completed",
  "task.failed",
  "task.cancelled",
  "task.rejected",
  "batch.completed",
] as const;

export type EventType = (typeof EVENT_TYPES)[number];

/** An entry of the event log. `seq` grows with every event; a reader that continues after the last one seen misses nothing. */
export interface RotaEvent {
  readonly seq: number;
  readonly type: EventType;
  readonly tenantId: string;
  /** With `batch.completed`: the task of the batch that was accepted last. `agentId`, `lane` and `state` are its own. */
  readonly taskId: string;
  readonly agentId: string;
  readonly lane: string;
  readonly batchId?: string;
  readonly sessionKey?: string;
  /** The schedule that created the task. */
  readonly scheduleId?: number;
  /** The state this event moved the task to. */
  readonly state: TaskState;
  /** RFC 3339. */
  readonly timestamp: string;
  /** With `task.completed`; empty with `task.cancelled` of a task with a session, for programs that show its results. */
  readonly result?: unknown;
  /** With `task.failed`, `task.cancelled`, `task.rejected`, `task.retrying` and `task.preempted`: why. */
  readonly error?: string;
  /** With `task.progress`: what the executor reported. */
  readonly progress?: unknown;
  /** With `task.started`: the attempt that starts; with `task.retrying` and `task.preempted`: the one that ended. */
  readonly attempt?: number;
  /** With `task.retrying`: RFC 3339, when the next attempt may start. */
  readonly retryAt?: string;
  /** With `batch.completed`: how many of its tasks ended in which state. */
  readonly counts?: Readonly<Partial<Record<TaskState, number>>>;
}

/** The state of a task after an event of this type; null: the event itself contains it. */
export const STATE_AFTER: Readonly<Record<EventType, TaskState | null>> = {
  "task.created": null,
  "task.started": "running",
  "task.progress": "running",
  "task.retrying": null,
  "task.preempted": "queued",
  "task.completed": "done",
  "task.failed": "failed",
  "task.cancelled": "cancelled",
  "task.rejected": "rejected",
  "batch.completed": null,
};
