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
