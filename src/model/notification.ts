import type { RunStatus } from "./run.ts";

/** What happens to schedules and their runs. */
export const SCHEDULE_NOTIFICATION_KINDS = [
  "run.started",
  "run.completed",
  "run.failed",
  "run.skipped",
  "run.missed",
  "schedule.paused",
  "schedule.canceled",
] as const;
export type ScheduleNotificationKind = (typeof SCHEDULE_NOTIFICATION_KINDS)[number];

/** What happens to workers. */
export const WORKER_NOTIFICATION_KINDS = ["worker.registered", "worker.lost"] as const;
export type WorkerNotificationKind = (typeof WORKER_NOTIFICATION_KINDS)[number];

export const NOTIFICATION_KINDS = [...SCHEDULE_NOTIFICATION_KINDS, ...WORKER_NOTIFICATION_KINDS] as const;
export type NotificationKind = (typeof NOTIFICATION_KINDS)[number];

export function isOfWorker(kind: NotificationKind): kind is WorkerNotificationKind {
  return WORKER_NOTIFICATION_KINDS.some((each) => each === kind);
}

/** Times are seconds since 1970, and 0 means never. */
interface AnyNotification {
  /** Grows with every notification. Pass it as `after` to continue after this one. */
  readonly id: number;
  /** When it happened. */
  readonly timestamp: number;
}

interface ScheduleFields {
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
  readonly due_at?: number;
  /** How many due times the run covers. */
  readonly moments?: number;
}

interface WorkerFields {
  readonly worker_id: string;
  readonly name: string;
  /** The agents that it is registered for; `["*"]`: all that workers may run. */
  readonly agents: readonly string[];
  readonly slots: number;
  /** With `worker.lost`: how many attempts it held. */
  readonly attempts?: number;
}

/** Fields that the other kinds have: they can be read without a check of `kind` first. */
type Without<Fields> = { readonly [Name in keyof Fields]?: never };

/** A change of a schedule or a run. */
export interface ScheduleNotification extends AnyNotification, ScheduleFields, Without<WorkerFields> {
  readonly kind: ScheduleNotificationKind;
  /** Why it was skipped, missed, ended or paused. */
  readonly reason?: string;
}

/** A worker registered, or was lost. */
export interface WorkerNotification extends AnyNotification, WorkerFields, Without<ScheduleFields> {
  readonly kind: WorkerNotificationKind;
  /** Why it was lost, or that it was lost before it registered again. */
  readonly reason?: string;
}

/** A change of a schedule, a run or a worker. `kind` says which fields there are. */
export type Notification = ScheduleNotification | WorkerNotification;
