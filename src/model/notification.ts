import type { NotificationKind, RunStatus } from "./schedule.ts";

/** What schedules and runs do. Times are seconds since 1970, and 0 stands for never. */
export interface Notification {
  /** Grows with every notification: what to give as `after` to go on behind it. */
  readonly id: number;
  readonly kind: NotificationKind;
  /** The schedule. */
  readonly task_id: number;
  readonly run_id?: number;
  readonly agent_id: string;
  /** Of a run its status, of a schedule what became of it. */
  readonly status: RunStatus | "paused" | "canceled";
  readonly started_at?: number;
  readonly completed_at?: number;
  /** With `run.completed`. */
  readonly result_summary?: string;
  /** With `run.failed`. */
  readonly error_message?: string;
  /** Why it was skipped, missed, ended or paused. */
  readonly reason?: string;
  readonly due_at?: number;
  /** How many moments the run stands for. */
  readonly moments?: number;
  /** When it happened. */
  readonly timestamp: number;
}
