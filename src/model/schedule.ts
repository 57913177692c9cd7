import type { TaskWork } from "./task.ts";

/** The shortest step of a schedule: timers of an operating system are not accurate enough for less. */
export const EVERY_MS_MIN = 1_000;
/** The longest step, in days: 100 years. */
export const STEP_DAYS_MAX = 36_525;

export type ScheduleKind = "once" | "recurring";

/** What a schedule means, and its next due times. */
export interface SchedulePreview {
  /** The schedule as Rota understood it, in its canonical form. */
  readonly normalized: string;
  readonly kind: ScheduleKind;
  /** The next due times, as ISO 8601 with the zone's offset. */
  readonly next: readonly string[];
  /** A sentence for each clock change that affects one of them. */
  readonly notes: readonly string[];
}

/** How many due times a preview lists. A thousand are plenty, and take a noticeable time to compute. */
export const PREVIEW_COUNT = { min: 1, max: 1_000, default: 5 } as const;

/** The most schedules on a page, and so the most that a cursor names. */
export const SCHEDULE_PAGE_MAX = 200;

/** The work of the task that a schedule creates when it is due. */
export type ScheduleWork = Exclude<TaskWork, { kind: "action" }>;

/**
 * A schedule that is due once ends as `completed` or `failed`. A recurring one is `completed` after its `max_runs`, or when it
 * has no more due times before its `until`.
 */
export const SCHEDULE_STATUSES = ["active", "paused", "completed", "failed"] as const;
export type ScheduleStatus = (typeof SCHEDULE_STATUSES)[number];

/** What happens at a due time while the run before it has not ended. */
export const OVERLAPS = ["skip", "queue", "replace", "allow"] as const;
export type Overlap = (typeof OVERLAPS)[number];

/** What happens with due times that no node could fire: one run covers all of them, none fires, or all do. */
export const CATCH_UPS = ["one", "none", "all"] as const;
export type CatchUp = (typeof CATCH_UPS)[number];

/** Why a schedule was paused after too many failed runs in a row; their number follows. */
export const FAILED_IN_A_ROW = "failed runs in a row: ";
/** The error of the task of a run whose schedule was deleted. */
export const SCHEDULE_DELETED = "schedule deleted";
