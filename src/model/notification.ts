import type { RunStatus } from "./run.ts";
import type { NotificationKind } from "./schedule.ts";

/** A change of a schedule or a run. Times are seconds since 1970, and 0 means never. */
export interface Notification {
  /** Grows with every notification. Pass it as `after` to continue after this one. */
  readonly id: number;
  readonly kind: NotificationKind;
  /** The schedule. */
  readonly task_id: number;
  readonly run_id?: number;
  readonly agent_id: string;
  /** The status of the run, or of the schedule if there is no run. */
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
  /** How many due times the run covers. */
  readonly moments?: number;
  /** When it happened. */
  readonly timestamp: number;
}
