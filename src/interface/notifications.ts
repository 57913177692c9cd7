import type { NotificationKind, RunStatus } from "../model/schedule.ts";

/** What schedules and runs do. Names and times are as in `ScheduledTask` and `Run`. */
export interface Notification {
  /** Grows with every notification: what to give as `after` to go on behind it. */
  readonly id: number;
  readonly kind: NotificationKind;
  /** The schedule. */
  readonly task_id: number;
  readonly agent_id: string;
  /** Of a run its status, of a schedule what became of it. */
  readonly status: RunStatus | "paused" | "canceled";
  /** When it happened. */
  readonly timestamp: number;
  readonly run_id?: number;
  readonly due_at?: number;
  readonly moments?: number;
  readonly started_at?: number;
  readonly completed_at?: number;
  /** Why it was skipped, missed, ended or paused. */
  readonly reason?: string;
  /** With `run.completed`. */
  readonly result_summary?: string;
  /** With `run.failed`. */
  readonly error_message?: string;
}

/** One notification after the other. */
export interface Notifications extends AsyncIterableIterator<Notification, undefined> {
  /** Resolves once everything that happens from then on will be handed out; rejects when that cannot be. */
  readonly ready: Promise<void>;
}

export interface NotificationsOptions {
  /** The `id` of the last one seen; 0 for all there are; left out: from now on. */
  readonly after?: number;
  /** Ends the iteration. */
  readonly signal?: AbortSignal;
  /** Called before the first one if some after `after` have been deleted, or are of another storage. */
  readonly onGap?: (gap: { readonly after: number; readonly oldest: number }) => void;
}
