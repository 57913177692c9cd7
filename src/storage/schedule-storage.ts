/** Schedules and their runs: one part of the contract in storage.ts. */

import type { Provenance } from "../model/provenance.ts";
import type { RetryPolicy } from "../model/retry-policy.ts";
import type { Rule } from "../model/rule.ts";
import type { RunStatus } from "../model/run.ts";
import type { CatchUp, Overlap, ScheduleStatus, ScheduleWork } from "../model/schedule.ts";
import type { EndedTask } from "./session-storage.ts";
import type { SubmitBounds } from "./submit-bounds.ts";
import type { InsertedTask, NewTask } from "./task-storage.ts";

/**
 * Schedules. The caller computes due times from the rule; the storage makes sure that each due time takes effect exactly once.
 * Every change of a schedule, every fire and every end of a run raises its `revision`. A write with an older revision changes
 * nothing.
 */
export interface ScheduleStorage {
  /**
   * Idempotent by `source`: if it was used before and that schedule still exists, the call returns it and creates nothing.
   * Throws `conflict` when its tenant has `maxSchedules` already, and `quota_exceeded` when its maker has as many as it may.
   */
  create(params: NewSchedule): Promise<ScheduleRecord>;
  get(params: ScheduleName): Promise<ScheduleRecord | null>;
  /** The last changed first; with `below`: those with a smaller id, highest id first. */
  /** The bytes of its message or other work and of its `metadata`, as stored, without reading them. Null: there is none. */
  size(params: ScheduleName): Promise<number | null>;
  list(params: ListSchedulesParams): Promise<ScheduleRecord[]>;
  count(params: ScheduleSelection): Promise<number>;
  /** By id, those after `after`; fewer than `limit` if they are large, but at least one while there are more. */
  page(params: { tenant: string; after: number; limit: number }): Promise<ScheduleRecord[]>;
  /**
   * Changes the given fields. A schedule that is no longer active has no due time, and one whose status is given is no longer
   * `held`. A change to `paused` writes a notification with `pauseReason`. Null: nothing changed, because the schedule is
   * deleted, its `revision` is another, or it is due and `unlessDue` is set. Throws `conflict` if a completed or failed
   * schedule should become active or paused and its tenant has `maxSchedules` already.
   */
  update(params: UpdateScheduleParams): Promise<ScheduleRecord | null>;
  /**
   * Deletes a schedule with its runs, and cancels their tasks that have not ended; with `sparesRunning`, only those that have
   * not started. One call deletes up to `limit` runs that are over; `more`: call again. The schedule is paused until the last
   * call, which writes the notification. Null: there is none.
   */
  delete(params: DeleteScheduleParams): Promise<DeletedSchedule | null>;
  /** Pauses up to `limit` active schedules that a key made, with a notification each. `more`: call again. */
  pauseOfKey(params: {
    tenant: string;
    key: string;
    reason: string;
    limit: number;
  }): Promise<{ paused: number; more: boolean }>;
  /** The ids of the active and paused schedules that a limit counts: the oldest `max`. */
  ofMaker(params: { tenant: string; limit: MakerLimit }): Promise<number[]>;
  /** How many schedules there are, how many runs are running, and when the next schedule is due. */
  status(params: { tenant: string }): Promise<ScheduleCounts>;

  /**
   * Schedules that are due, at most `limit`, taken from their tenants in turn: the longest due of each tenant, then the second
   * of each, and so on. The first turn belongs to the first tenant after `after`, by id; the order wraps around. If more than
   * `limit` are due, each of the first `limit` tenants in that order gets an equal share of `limit`, rounded down. So a tenant
   * with many due schedules neither delays others nor makes the call slower. Of large schedules a tenant gets fewer: the first
   * ones that take up to `DUE_BYTES` together, and at least one.
   */
  due(params: DueParams): Promise<ScheduleRecord[]>;
  /** When the next schedule is due, of one tenant or of all; null: none is. */
  nextDueAt(params?: { tenant?: string }): Promise<number | null>;
  /**
   * Stores the outcomes of due times, inserts the tasks of those that fire, and sets the next due time of each schedule. Runs
   * that have fired continue, even if their schedule ends. The rules:
   *
   * - A schedule whose `revision` is another by now stays as it is: another node fired it first, or it was changed.
   * - A due time that has a row never gets another one: its new outcome is ignored.
   * - Missed due times join the row of those missed right before them, unless a due time in between has a row of its own.
   * - A run that fires while `waitingMax` runs of its schedule wait (their tasks have no running attempt) is skipped with the
   *   reason `TOO_MANY_WAITING`, unless it replaces them. Consecutive runs that are skipped so share a row, and only the first
   *   one notifies. A forced run is dropped instead.
   * - Of due times that are skipped in a row for another reason, the first `SKIPPED_ROWS_MAX` have rows of their own; all that
   *   follow share the last.
   * - A run that `replaces` cancels the open runs, with `REPLACED` as the error of their tasks.
   * - A recurring schedule is `completed` once it has fired `maxRuns` times or has no next due time; then it is not paused.
   * - With `bounds`, their tasks are counted. If that exceeds a bound, nothing is stored.
   */
  fire(params: FireParams): Promise<FiredSchedule[]>;

  /** The rows of a schedule's due times after `after`, in order. Forced runs are left out. */
  dueRows(params: ScheduleName & { after: number; limit: number }): Promise<DueRow[]>;
  /**
   * Reverts rows of due times that are in the future because the clock was set back: they become due again. False: nothing
   * changed, because its `revision` is another by now or a row is not in the future.
   */
  rewind(params: RewindParams): Promise<boolean>;

  getRun(params: { tenant: string; id: number }): Promise<RunRecord | null>;
  /** Newest first. */
  listRuns(params: ListRunsParams): Promise<{ runs: RunRecord[]; nextCursor: number | null }>;
  /**
   * Deletes a slice of the runs and notifications that were over before `now - retentionMs`. `more`: call again. Need not wait for
   * the disk: what is back after a power cut is deleted again.
   */
  prune(params: { retentionMs: number; limit: number }): Promise<{ more: boolean }>;
}

/** Some of a tenant's schedules. */
export interface ScheduleSelection {
  readonly tenant: string;
  readonly status?: ScheduleStatus;
  readonly agent?: string;
}

export interface ListSchedulesParams extends ScheduleSelection {
  readonly limit: number;
  readonly below?: number;
  /** The list ends with the first schedule with which the large fields take more than this. Left out: no limit. */
  readonly bytesMax?: number;
}

/** Bytes of the large fields of schedules that one page reads, and one call of `due` for each tenant. */
export const SCHEDULE_PAGE_BYTES = 1_048_576;
export const DUE_BYTES = 131_072;

export interface ScheduleName {
  readonly tenant: string;
  readonly id: number;
}

export interface DeleteScheduleParams extends ScheduleName {
  readonly sparesRunning?: boolean;
  /** Left out: any number. */
  readonly limit?: number;
}

export interface DeletedSchedule {
  readonly cancelled: readonly EndedTask[];
  readonly more: boolean;
}

export interface DueParams {
  readonly limit: number;
  /** The tenant whose turn was last; left out: the first tenant begins. */
  readonly after?: string;
}

/** The definition of a schedule, as its owner set it. */
export interface ScheduleDefinition {
  readonly name: string | null;
  readonly agent: string;
  /** The input of its tasks. */
  readonly work: ScheduleWork;
  /** The rule as the owner wrote it, or its canonical form if the owner gave it in another way. */
  readonly phrase: string;
  readonly rule: Rule;
  /** When it was created or its rule changed: intervals are counted from here. */
  readonly anchorAt: number;
  /** The id of the conversation on the side of its agent; null: that of the session. */
  readonly conversationId: string | null;
  /** The session of its runs; null: the schedule has one of its own. */
  readonly sessionKey: string | null;
  /** Whether the answers of its runs are added to that session, and the runs are in a session of the schedule. */
  readonly postToSession: boolean;
  /** Whether it is deleted after its run has succeeded: only for a schedule that is due once. */
  readonly deleteAfterRun: boolean;
  readonly retryPolicy: RetryPolicy;
  readonly overlap: Overlap;
  readonly catchUp: CatchUp;
  /** How late a due time may still fire; null: no limit. */
  readonly usefulForMs: number | null;
  /** The timeout for each attempt of its runs; null: that of the configuration. */
  readonly timeoutMs: number | null;
  /** The lane of its runs; null: the default lane for runs. */
  readonly lane: string | null;
  /** The priority of its runs; null: the default. */
  readonly priority: number | null;
  readonly metadata: Readonly<Record<string, unknown>> | null;
  /** Rota calls this URL at the end of each run; null: no callback. */
  readonly callbackUrl: string | null;
  /** How often it may fire; null: any number of times. */
  readonly maxRuns: number | null;
  /** The last time at which it may be due; null: no limit. */
  readonly untilAt: number | null;
  /** After how many failed runs in a row it is paused; null or 0: never. */
  readonly pauseAfterFailures: number | null;
}

export interface NewSchedule {
  readonly tenant: string;
  readonly definition: ScheduleDefinition;
  readonly status: "active" | "paused";
  /** The first due time; null: none. Must be null unless the schedule is active. */
  readonly nextFireAt: number | null;
  /** An idempotency key: only one schedule is created for it. Null: none. */
  readonly source: string | null;
  /** Left out: unknown. */
  readonly provenance?: Provenance;
  /** How many schedules of its tenant may be active or paused, including this one; left out or null: no limit. */
  readonly maxSchedules?: number | null;
  /** How many schedules of its maker may be active or paused, including this one. Left out: no limit. */
  readonly ofMaker?: MakerLimit;
}

/** A limit of active and paused schedules that a key or an agent made, or that the tenant has. */
export interface MakerLimit {
  readonly by: "key" | "agent" | "tenant";
  /** The id of the key or the agent; of `tenant`: its own. */
  readonly id: string;
  readonly max: number;
}

/** How many schedules an error about a `MakerLimit` names: the oldest, which could be deleted. */
export const OLDEST_NAMED = 5;

export interface ScheduleRecord extends ScheduleDefinition, ScheduleName {
  readonly status: ScheduleStatus;
  readonly revision: number;
  readonly createdAt: number;
  /** When its definition or its status was changed last; fires do not count. */
  readonly updatedAt: number;
  /** Null: nothing is due. */
  readonly nextFireAt: number | null;
  /** The last due time that has a row; null: none has. */
  readonly lastDueAt: number | null;
  /** When a run of it fired last, and which; null: none has. */
  readonly lastRunAt: number | null;
  readonly lastRunId: number | null;
  /** How often it has fired. */
  readonly runCount: number;
  /** The status of the run that ended last; null: none has. For a schedule that is due once also `missed`. */
  readonly lastStatus: Exclude<RunStatus, "running" | "skipped"> | null;
  readonly lastError: string | null;
  /** How many of its runs have failed since one succeeded, or since it became active. Cancelled runs do not count. */
  readonly consecutiveFailures: number;
  /** Why Rota paused it; null: it is not paused, or its owner paused it. */
  readonly pausedReason: string | null;
  /** How many of its runs are running. */
  readonly openRuns: number;
  /** Paused by Rota until its tenant is enabled again; see `whileDisabled`. */
  readonly held: boolean;
  /** Who made it; null: unknown, because an older version of Rota stored it. */
  readonly provenance: Provenance | null;
}

export interface UpdateScheduleParams extends ScheduleName {
  readonly revision: number;
  readonly changes: Partial<ScheduleDefinition> & {
    /** `active` sets the consecutive failures to 0. */
    readonly status?: "active" | "paused" | "completed";
    readonly nextFireAt?: number | null;
    /** With the same maker: an edit may only take rights away. */
    readonly provenance?: Provenance;
  };
  readonly pauseReason?: string;
  /** Changes nothing while a past due time has no row yet. */
  readonly unlessDue?: boolean;
  /** As in `NewSchedule`. */
  readonly maxSchedules?: number | null;
  /** As in `NewSchedule`: checked under the same condition. */
  readonly ofMaker?: MakerLimit;
}

export interface ScheduleCounts {
  readonly active: number;
  readonly paused: number;
  /** Runs. */
  readonly running: number;
  readonly nextFireAt: number | null;
}

export interface FireParams {
  readonly fires: readonly Fire[];
  /** Those of the caller that asks for a run; left out: nothing is counted. */
  readonly bounds?: SubmitBounds;
}

/** The outcome of due times of a schedule. */
export interface Fire extends ScheduleName {
  readonly revision: number;
  /** In the order of their due times. */
  readonly runs: readonly NewRun[];
  /** The next due time; null: none. For a forced run: unchanged. */
  readonly nextFireAt: number | null;
  /** Pauses the schedule for this reason; null: does not pause it. */
  readonly pauses: string | null;
  /**
   * The caller computed it because the tenant is disabled. If the tenant is enabled by now, nothing changes. A schedule that
   * this pauses is `held` until the tenant is enabled.
   */
  readonly whileDisabled?: boolean;
  /** How many of its runs may wait; left out: no limit. */
  readonly waitingMax?: number;
}

export type NewRun = NewRunMoments &
  (
    | {
        readonly status: "running";
        readonly requestId: string;
        /** Its origin is `run`, its schedule this one. */
        readonly task: NewTask;
        readonly replaces: boolean;
      }
    /** A run that could not start. */
    | { readonly status: "failed"; readonly requestId: string; readonly error: string }
    | { readonly status: "skipped" | "missed"; readonly reason: string }
  );

export interface NewRunMoments {
  /** The last due time that it covers. */
  readonly dueAt: number;
  readonly firstDueAt: number;
  readonly moments: number;
  /** A caller requested it outside the rule: `dueAt` is no due time of the schedule. */
  readonly forced: boolean;
}

export interface FiredSchedule extends ScheduleName {
  /** False: another node fired it first, or the schedule was changed, and nothing happened. */
  readonly fired: boolean;
  /** The runs that were written, in order. A run that should have fired and has no task was skipped. */
  readonly runs: readonly { readonly id: number; readonly task: InsertedTask | null }[];
  /** Tasks of the runs that a new run replaced. */
  readonly cancelled: readonly EndedTask[];
}

/** The row of one or several due times. */
export interface DueRow {
  readonly runId: number;
  readonly firstDueAt: number;
  /** The last due time that it covers. */
  readonly dueAt: number;
  readonly moments: number;
  /** Whether the due time started a run: it never starts another. */
  readonly started: boolean;
}

export interface MissedTimes {
  readonly firstDueAt: number;
  readonly dueAt: number;
  readonly moments: number;
  readonly reason: string;
}

export interface RewindParams extends ScheduleName {
  readonly revision: number;
  /** The due times that each row covers from now on; with 0 `moments` the row is deleted. */
  readonly rows: readonly Omit<DueRow, "started">[];
  /** Past due times that were covered by a run whose own due time is in the future: they get a row as missed. */
  readonly missed: readonly MissedTimes[];
  readonly nextFireAt: number | null;
  /** Whether a schedule that ended because its only due time did not run becomes active again. */
  readonly reopens: boolean;
}

export interface RunRecord {
  /** Grows with every run. */
  readonly id: number;
  readonly tenant: string;
  readonly scheduleId: number;
  readonly agent: string;
  /** Its task; null: none. */
  readonly taskId: string | null;
  readonly dueAt: number;
  readonly firstDueAt: number;
  readonly moments: number;
  readonly forced: boolean;
  readonly status: RunStatus;
  /** Why it was skipped or missed, or why its task was cancelled. */
  readonly reason: string | null;
  /** When it fired; null: it did not. */
  readonly startedAt: number | null;
  /** When it ended, or was stored as skipped or missed; null: it is running. */
  readonly completedAt: number | null;
  readonly requestId: string | null;
  readonly resultSummary: string | null;
  readonly error: string | null;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** How many attempts its task had, including the running one. */
  readonly attempt: number;
}

export interface ListRunsParams {
  readonly tenant: string;
  /** The agent that the schedule had at that time. */
  readonly agent?: string;
  readonly schedule?: number;
  readonly status?: RunStatus;
  /** Only runs that fired, ended or were stored at this time or later. */
  readonly since?: number;
  readonly limit: number;
  /** From `nextCursor` of the page before. */
  readonly cursor?: number;
}
