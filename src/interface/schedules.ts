import type { PriorityName } from "../model/priority.ts";
import type { RunStatus } from "../model/run.ts";
import type {
  CatchUp,
  Overlap,
  ScheduleInput,
  ScheduleKind,
  SchedulePreview,
  ScheduleStatus,
} from "../model/schedule.ts";

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

/** The runs of all schedules: every due time and its outcome. */
export interface Runs {
  /** Newest first, a page at a time. */
  list(filter?: RunFilter): Promise<RunPage>;
  /** Throws `not_found`. */
  get(id: number): Promise<Run>;
}

export interface NewScheduleInput {
  /** A phrase like `every Mon at 09:00`, a cron expression, or an object. */
  readonly schedule: ScheduleInput;
  /** The message to the agent. Exactly one of `message`, `instruction` and `payload` is given. */
  readonly message?: string | null;
  /** The instruction to the agent, as in a task. */
  readonly instruction?: string | null;
  /** Any JSON, as in a task. */
  readonly payload?: unknown;
  /** Left out: `index`. */
  readonly agent?: string;
  readonly name?: string | null;
  /** An IANA zone like `Europe/Berlin`; left out: that of the server. */
  readonly tz?: string;
  /** The conversation on the agent's side. An integer is stored as text. */
  readonly conversation_id?: string | number | null;
  /** The session of its runs; left out: one of its own. */
  readonly session_key?: string | null;
  /** False: it starts paused. */
  readonly enabled?: boolean;
  /** Whether a schedule that is due once is deleted after its run has succeeded. */
  readonly delete_after_run?: boolean;
  readonly retry?: ScheduleRetry;
  /** What happens at a due time while the run before it has not ended; left out: `skip`. */
  readonly overlap?: Overlap;
  /** What happens with due times that no node could fire; left out: `one`. */
  readonly catch_up?: CatchUp;
  /** How many seconds late a due time may still fire; left out or null: any. */
  readonly useful_for?: number | null;
  /** Milliseconds for each attempt; left out or null: as configured. */
  readonly timeout?: number | null;
  /** The lane of its runs; left out or null: `cron`. */
  readonly lane?: string | null;
  /** The priority of the tasks of its runs; left out or null: `normal`. */
  readonly priority?: number | PriorityName | null;
  /** The metadata of its tasks. */
  readonly metadata?: Readonly<Record<string, unknown>> | null;
  /** Called when a run ends, as the callback of a task. */
  readonly callback_url?: string | null;
  /** How often it may fire; then it is `completed`. Left out or null: any number of times. */
  readonly max_runs?: number | null;
  /** The last time at which it may be due, as seconds since 1970 or RFC 3339; then it is `completed`. */
  readonly until?: number | string | Date | null;
  /** After how many failed runs in a row it is paused; left out, null or 0: never. */
  readonly pause_after_failures?: number | null;
}

export interface ScheduleRetry {
  readonly max_retries?: number;
  readonly base_delay_ms?: number;
  readonly max_delay_ms?: number;
}

export type ScheduleChanges = Partial<NewScheduleInput> & { readonly status?: "active" | "paused" };

export type RunMode = "force" | "due";

export interface CreatedSchedule {
  readonly scheduled_task: ScheduledTask;
  /** The schedule as Rota understood it, in its canonical form. */
  readonly normalized: string;
}

/** A schedule. */
export interface ScheduledTask {
  readonly id: number;
  readonly name: string | null;
  readonly agent_id: string;
  readonly conversation_id: string | null;
  readonly session_key: string | null;
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

export interface ScheduleFilter {
  readonly status?: ScheduleStatus;
  readonly agent?: string;
  /** 200 by default, which is also the most. */
  readonly limit?: number;
  /** `next_cursor` of the page before, or `start`. */
  readonly cursor?: string;
}

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

export interface RunFilter {
  /** Only runs that started or ended at this time or later, in seconds since 1970. */
  readonly since?: number;
  readonly status?: RunStatus;
  /** 100 by default, which is also the most. */
  readonly limit?: number;
  /** `next_cursor` of the page before. */
  readonly cursor?: string;
}

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

export interface UpcomingFilter {
  /** Seconds since 1970, or RFC 3339 as a text; left out or in the past: now. */
  readonly from?: number | string | Date;
  /** Left out: 7 days after `from`. */
  readonly to?: number | string | Date;
  /** 100 by default, 2000 at most. */
  readonly limit?: number;
  /** The most of one schedule, 1 to 2000, so that a frequent one leaves room for the others. Left out: no limit. */
  readonly per_schedule?: number;
}

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

export interface SchedulePreviewInput {
  readonly schedule: ScheduleInput;
  /** An IANA zone like `Europe/Berlin`; left out: that of the server. */
  readonly tz?: string;
  /** Previews the schedule as if it was created at this time, in the years 1970 to 2999; left out: now. RFC 3339 as a text. */
  readonly from?: string | Date;
  /** How many due times to list, 1 to 1000; left out: 5. */
  readonly count?: number;
}
