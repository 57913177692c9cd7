import type { BoundName } from "../model/bounds.ts";
import type { RUN_FILTER, SCHEDULE_FILTER, UPCOMING_FILTER } from "../model/input/schedule-filters.ts";
import type { PREVIEW, RETRY_FIELDS, SCHEDULE, SCHEDULE_CHANGES } from "../model/input/schedule-schema.ts";
import type { ChangesOf, InputOf, OrNull } from "../model/input/schema.ts";
import type { Via } from "../model/provenance.ts";
import type { RunStatus } from "../model/run.ts";
import type { CatchUp, Overlap, ScheduleKind, SchedulePreview, ScheduleStatus } from "../model/schedule.ts";
import type { SizedReading } from "./tasks.ts";

/**
 * Schedules create tasks at due times, once or repeatedly. Each due time leaves a run. Objects are the same here and over HTTP,
 * names with underscores included. Their times are seconds since 1970, and 0 means never.
 */
export interface Schedules {
  /**
   * Throws `not_found` for an agent that is not listed, and `invalid_field`. If the schedule was not understood,
   * `details.accepted` lists the forms that are.
   *
   * @example
   * await rota.schedules.create({ schedule: "every Mon at 09:00", message: "Sum up last week.", agent: "research" });
   */
  create(input: NewScheduleInput): Promise<CreatedSchedule>;
  /**
   * Checks a schedule as `create` does, and returns what would be stored and its next five due times. Stores nothing. Whether
   * there is room for another schedule is not checked.
   *
   * @example
   * const { next } = await rota.schedules.dryRun({ schedule: "every Mon at 09:00", message: "Sum up last week." });
   */
  dryRun(input: NewScheduleInput): Promise<ScheduleDryRun>;
  /**
   * Returns what a schedule means and its next due times, without creating one. Throws as `create` does.
   *
   * @example
   * const { next } = await rota.schedules.preview({ schedule: "every Mon at 09:00", tz: "Europe/Berlin" });
   */
  preview(input: SchedulePreviewInput): Promise<SchedulePreview>;
  /**
   * A page at a time. The first page has the schedules that were changed last; the pages after `next_cursor` have all others, by
   * id, newest first. With the cursor `start` all pages are by id. Edits meanwhile make no schedule appear twice or get lost.
   */
  list(filter?: ScheduleFilter): Promise<ScheduleList>;
  /** Throws `not_found`, as do all that take an id. */
  get(id: number): Promise<ScheduledTask>;
  /**
   * A field that is left out stays. A new `schedule` counts from now. `status` and `enabled` both set whether it is paused.
   * Throws `conflict` if it has only one due time, which has passed, and is made active without a new `schedule`.
   */
  update(id: number, changes: ScheduleChanges): Promise<ScheduledTask>;
  /** Deletes its runs as well, and cancels their tasks that have not ended. */
  delete(id: number): Promise<{ readonly deleted: true }>;
  /** Runs it now (`force`), or only if a due time has come (`due`). */
  run(id: number, options?: { readonly mode?: RunMode }): Promise<RunAnswer>;
  /** Newest first. */
  runs(id: number, filter?: RunFilter): Promise<RunPage>;
  status(): Promise<SchedulesStatus>;
  /**
   * The due times of all active schedules within a range, earliest first; computed, nothing is stored.
   *
   * @example
   * const { moments } = await rota.schedules.upcoming({ limit: 10 });
   */
  upcoming(filter?: UpcomingFilter): Promise<UpcomingMoments>;
}

/** Methods of a scheduler in this process, whose server charges callers for large schedules. */
export interface LocalSchedules extends Schedules {
  get(id: number, reading?: SizedReading): Promise<ScheduledTask>;
  update(id: number, changes: ScheduleChanges, reading?: SizedReading): Promise<ScheduledTask>;
  run(id: number, options?: { readonly mode?: RunMode }, reading?: SizedReading): Promise<RunAnswer>;
}

/** The runs of all schedules: every due time and its outcome. */
export interface Runs {
  /** Newest first, a page at a time. */
  list(filter?: RunFilter): Promise<RunPage>;
  /** Throws `not_found`. */
  get(id: number): Promise<Run>;
}

export type NewScheduleInput = OrNull<InputOf<typeof SCHEDULE.fields>>;

export type ScheduleRetry = InputOf<typeof RETRY_FIELDS>;

export type ScheduleChanges = ChangesOf<typeof SCHEDULE_CHANGES.fields>;

export type RunMode = "force" | "due";

export interface CreatedSchedule {
  readonly scheduled_task: ScheduledTask;
  /** The schedule as Rota understood it, in its canonical form. */
  readonly normalized: string;
}

/** The schedule that a create would store. */
export interface ScheduleDryRun extends Omit<SchedulePreview, "kind"> {
  readonly dryRun: true;
  readonly scheduled_task: Omit<ScheduledTask, "id">;
  /** How many more schedules the caller may have, this one included. Left out: no bound counts them. */
  readonly left?: Readonly<Partial<Record<BoundName, number>>>;
}

/** A schedule. */
export interface ScheduledTask {
  readonly id: number;
  readonly name: string | null;
  readonly agent_id: string;
  readonly conversation_id: string | null;
  readonly session_key: string | null;
  /** Only the answers of its runs are added to that session. Left out: its runs are part of the session. */
  readonly post_to_session?: true;
  /** Null: it has an `instruction` or a `payload`. */
  readonly message: string | null;
  readonly instruction?: string;
  readonly payload?: unknown;
  /** As it was written, or its canonical form. */
  readonly schedule_phrase: string;
  readonly schedule_kind: ScheduleKind;
  /** The due time of a schedule that is due once. */
  readonly fire_at: number;
  /** The rule of a recurring schedule, as JSON. */
  readonly recur_json: string | null;
  readonly tz: string;
  readonly next_fire_at: number;
  readonly status: ScheduleStatus;
  readonly enabled: boolean;
  readonly delete_after_run: boolean;
  readonly retry: Required<ScheduleRetry>;
  readonly overlap: Overlap;
  readonly catch_up: CatchUp;
  readonly useful_for: number | null;
  readonly timeout: number | null;
  readonly lane?: string;
  readonly priority?: number;
  readonly metadata?: Readonly<Record<string, unknown>>;
  readonly callback_url?: string;
  readonly max_runs?: number;
  readonly until?: number;
  readonly pause_after_failures?: number;
  /** Who made it. Left out: an older version of Rota stored it. */
  readonly created_by?: ScheduleMaker;
  /** The task in whose attempt it was made. */
  readonly parent_task_id?: string;
  /** The first task of the tree of that task. */
  readonly root_task_id?: string;
  /** How many tasks are above it in that tree. */
  readonly depth?: number;
  readonly created_at: number;
  readonly updated_at: number;
  readonly last_run_at: number;
  readonly last_run_id: number;
  /** How often it has fired. */
  readonly run_count: number;
  /** The status of the run that ended last. */
  readonly last_status: RunStatus | null;
  readonly last_error: string | null;
  /** How many of its runs have failed since one succeeded, or since it was resumed. */
  readonly consecutive_failures: number;
  /** Why it is paused, unless a caller paused it. */
  readonly paused_reason: string | null;
}

/** Who made a schedule: `CreatedBy` in the spelling of these routes. */
export interface ScheduleMaker {
  readonly key_id: string | null;
  readonly agent_id: string | null;
  readonly via: Via;
  readonly client?: string;
}

export type ScheduleFilter = InputOf<typeof SCHEDULE_FILTER.fields>;

export interface ScheduleList {
  readonly schedules: readonly ScheduledTask[];
  /** Of this page. */
  readonly count: number;
  /** Null on the last page. */
  readonly next_cursor: string | null;
}

/** One due time of a schedule, or several together, and its outcome. */
export interface Run {
  readonly id: number;
  /** The schedule. */
  readonly task_id: number;
  readonly agent_id: string;
  /** The task of the run. */
  readonly queue_task_id: string | null;
  readonly due_at: number;
  /** How many due times it covers. */
  readonly moments: number;
  readonly status: RunStatus;
  readonly reason: string | null;
  /** When it fired. */
  readonly started_at: number;
  readonly completed_at: number;
  readonly request_id: string | null;
  /** 4 KiB at most; what was cut ends in `[truncated]`. */
  readonly result_summary: string | null;
  readonly error_message: string | null;
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly attempt: number;
}

export type RunFilter = InputOf<typeof RUN_FILTER.fields>;

export interface RunPage {
  readonly runs: readonly Run[];
  /** Of this page. */
  readonly count: number;
  /** Null on the last page. */
  readonly next_cursor: string | null;
}

/** `ran` false: `reason` says why not. */
export interface RunAnswer {
  readonly ok: true;
  readonly ran: boolean;
  readonly reason?: "not-due" | "already-running" | "too_many_waiting";
  readonly run_id?: number;
}

export interface SchedulesStatus {
  readonly active: number;
  readonly paused: number;
  /** Runs that have not ended. */
  readonly running: number;
  readonly next_fire_at: number;
}

export type UpcomingFilter = InputOf<typeof UPCOMING_FILTER.fields>;

export interface UpcomingMoments {
  /** Earliest first. */
  readonly moments: readonly UpcomingMoment[];
  /** Whether there are more in the range than `limit`. */
  readonly truncated: boolean;
}

export interface UpcomingMoment {
  readonly schedule_id: number;
  readonly name: string | null;
  readonly agent: string;
  /** Seconds since 1970. */
  readonly at: number;
  /** The time zone of the schedule. */
  readonly zone: string;
}

export type SchedulePreviewInput = InputOf<typeof PREVIEW.fields>;
