import type { TaskWork } from "./task.ts";

/** When something is to be done: a phrase like `every Mon at 09:00`, a cron expression, or one of these objects. */
export type ScheduleInput = string | AtSchedule | EverySchedule | CronSchedule;

/** Once. */
export interface AtSchedule {
  readonly kind: "at";
  /** Milliseconds since 1970. */
  readonly atMs: number;
  readonly tz?: string;
}

/** By elapsed time. */
export interface EverySchedule {
  readonly kind: "every";
  /** Milliseconds, 1000 at least. */
  readonly everyMs: number;
  readonly tz?: string;
}

export interface CronSchedule {
  readonly kind: "cron";
  /** Five or six fields, or a nickname like `@daily`. */
  readonly expr: string;
  readonly tz?: string;
}

export type ScheduleKind = "once" | "recurring";

/** What would come of a schedule. */
export interface SchedulePreview {
  /** What was understood, as a phrase that means the same. */
  readonly normalized: string;
  readonly kind: ScheduleKind;
  /** The next moments, as ISO 8601 with the zone's offset. */
  readonly next: readonly string[];
  /** A sentence for each clock change that one of them has to do with. */
  readonly notes: readonly string[];
}

/** How many moments a preview lists; a thousand are more than anybody reads, and take a moment to find. */
export const PREVIEW_COUNT = { min: 1, max: 1_000, default: 5 } as const;

/** What an agent is handed when a schedule is due. */
export type ScheduleWork = Exclude<TaskWork, { kind: "action" }>;

/**
 * `completed` and `failed` are where a schedule that is due once ends up; one that recurs is `completed` once it has had its
 * `max_runs`, or nothing more is due by its `until`.
 */
export const SCHEDULE_STATUSES = ["active", "paused", "completed", "failed"] as const;
export type ScheduleStatus = (typeof SCHEDULE_STATUSES)[number];

/** What becomes of a moment that comes while the run before it still goes. */
export const OVERLAPS = ["skip", "queue", "replace", "allow"] as const;
export type Overlap = (typeof OVERLAPS)[number];

/** What becomes of moments that nobody was there for: the last of them stands for all, none fires, or all do. */
export const CATCH_UPS = ["one", "none", "all"] as const;
export type CatchUp = (typeof CATCH_UPS)[number];

/** `skipped` and `missed` never ran. */
export const RUN_STATUSES = ["running", "succeeded", "failed", "skipped", "missed"] as const;
export type RunStatus = (typeof RUN_STATUSES)[number];

/** How many runs of one schedule may wait, their tasks neither running nor ended; a due time beyond that is skipped. */
export const WAITING_RUNS_MAX = 100;
/**
 * How many due times of one schedule that are skipped in a row for one reason have rows of their own; those that follow share the
 * last. One that is due every second and whose run takes a day would have 86 400.
 */
export const SKIPPED_ROWS_MAX = 10;
/** The reason of a due time that was skipped because so many wait. */
export const TOO_MANY_WAITING = "too_many_waiting";
/** What a run that was cancelled in favour of the next one gives as its reason. */
export const REPLACED = "replaced";
/** Why a schedule is paused whose runs failed too often in a row; how many did follows. */
export const FAILED_IN_A_ROW = "failed runs in a row: ";
/** What the task of a run gives whose schedule was deleted. */
export const SCHEDULE_DELETED = "schedule deleted";

export const NOTIFICATION_KINDS = [
  "run.started",
  "run.completed",
  "run.failed",
  "run.skipped",
  "run.missed",
  "schedule.paused",
  "schedule.canceled",
] as const;
export type NotificationKind = (typeof NOTIFICATION_KINDS)[number];
