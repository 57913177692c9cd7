/** How a storage keeps schedules and their runs: one part of the contract in storage.ts. */
import type { RetryPolicy } from "../model/retry-policy.ts";
import type { Rule } from "../model/rule.ts";
import type { CatchUp, Overlap, RunStatus, ScheduleStatus, ScheduleWork } from "../model/schedule.ts";
import type { EndedTask } from "./session-storage.ts";
import type { InsertedTask, NewTask } from "./task-storage.ts";

/**
 * Schedules. When one is due is worked out by whoever calls, from its rule; the storage makes sure that what follows from
 * a moment happens once. Every change of a schedule, every fire and every end of a run raises its `revision`, and what was
 * worked out from an older one is not carried out.
 */
export interface ScheduleStorage {
  /**
   * With a `source` that was used before, nothing is made: the answer is the schedule that was made then, if it is still there.
   * Throws `conflict` when its tenant has `maxSchedules` already.
   */
  create(params: NewSchedule): Promise<ScheduleRecord>;
  get(params: ScheduleName): Promise<ScheduleRecord | null>;
  /** The one that was changed last first; with `below` those with a smaller id, by id, newest first. */
  list(params: ListSchedulesParams): Promise<ScheduleRecord[]>;
  count(params: ScheduleSelection): Promise<number>;
  /** By id, those after `after`. */
  page(params: { tenant: string; after: number; limit: number }): Promise<ScheduleRecord[]>;
  /**
   * Changes what is named. A schedule that is no longer active has nothing due, and one whose status is named is not held. Going to `paused` is told of, with
   * `pauseReason`. Null: it is gone, `revision` is no longer its own, or it is due and that matters; then nothing changed.
   * Throws `conflict` when it was over, is to be active or paused, and its tenant has `maxSchedules` already.
   */
  update(params: UpdateScheduleParams): Promise<ScheduleRecord | null>;
  /**
   * Deletes it with its runs, and cancels those of their tasks that have not ended; with `sparesRunning`, only those that
   * have not started. With more than `limit` runs that are over, only so many of them go; `more`: call again. Until the last
   * call it is paused, and then the notification is written. Null: there was none.
   */
  delete(params: DeleteScheduleParams): Promise<DeletedSchedule | null>;
  /** How many there are, how many of their runs go, and when the next is due. */
  status(params: { tenant: string }): Promise<ScheduleCounts>;

  /**
   * Schedules that are due, at most `limit`, taken from their tenants in turn: the longest due of each tenant, then the second
   * of each, and so on. The turn begins with the first tenant after `after`, by id, and goes round. If more than `limit` are
   * due, each of the first `limit` tenants in that order gives an equal share of `limit`, rounded down: what one tenant has due
   * neither delays the others nor makes the call cost more.
   */
  due(params: DueParams): Promise<ScheduleRecord[]>;
  /** When the next one is due, of one tenant or of any; null: none ever is. */
  nextDueAt(params?: { tenant?: string }): Promise<number | null>;
  /**
   * Writes down what became of moments, makes the tasks of those that fire, and moves the schedules on. A schedule whose
   * `revision` is another by now stays as it is: somebody else was faster, or it was changed. A moment that has its row never
   * gets another: what was to become of it is left out. Moments that were missed join the row of those missed right before
   * them, unless one that lies in between has a row of its own. A run that fires while `waitingMax` of its schedule wait, their
   * tasks without an attempt that runs, is skipped with `TOO_MANY_WAITING` as its reason, unless it replaces them; so skipped
   * ones in a row share a row as missed ones do, and notify only of the first. One out of turn is left out instead. Of those that are
   * skipped in a row for another reason, the first `SKIPPED_ROWS_MAX` have rows of their own, and all that follow share the last. A run that `replaces` ends those that go, with `REPLACED` as the
   * error of their tasks. A schedule that recurs is `completed` once it has fired `maxRuns` times, or nothing more is due; then
   * it is not paused. What has fired goes on.
   */
  fire(params: { fires: readonly Fire[] }): Promise<FiredSchedule[]>;

  /** The rows of a schedule's due times after `after`, in the order of those. Runs out of turn have none. */
  dueRows(params: ScheduleName & { after: number; limit: number }): Promise<DueRow[]>;
  /**
   * Takes back what was written of due times that lie ahead of the clock, which was set back: they are due again. False:
   * its `revision` is another by now, or a row does not lie ahead; then nothing changed.
   */
  rewind(params: RewindParams): Promise<boolean>;

  getRun(params: { tenant: string; id: number }): Promise<RunRecord | null>;
  /** Newest first. */
  listRuns(params: ListRunsParams): Promise<{ runs: RunRecord[]; nextCursor: number | null }>;
  /** Deletes a slice of the runs and notifications that were over before `now - retentionMs`. `more`: call again. */
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
}

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
  /** The tenant whose turn was last; left out: the turn begins with the first. */
  readonly after?: string;
}

/** What its owner says of a schedule. */
export interface ScheduleDefinition {
  readonly name: string | null;
  readonly agent: string;
  /** What its agent is handed. */
  readonly work: ScheduleWork;
  /** As it was written, or its canonical form where it was given in another way. */
  readonly phrase: string;
  readonly rule: Rule;
  /** When it was made, or given another rule: where steps are counted from. */
  readonly anchorAt: number;
  /** The conversation that its agent's side knows it by; null: that of the session. */
  readonly conversationId: string | null;
  /** The session that its runs are part of; null: one of its own. */
  readonly sessionKey: string | null;
  /** Whether it goes after its run has succeeded: only for one that is due once. */
  readonly deleteAfterRun: boolean;
  readonly retryPolicy: RetryPolicy;
  readonly overlap: Overlap;
  readonly catchUp: CatchUp;
  /** How late a moment may still fire; null: however late. */
  readonly usefulForMs: number | null;
  /** For each attempt of its runs; null: the configuration's. */
  readonly timeoutMs: number | null;
  /** Where its runs go; null: the lane of runs. */
  readonly lane: string | null;
  /** Of its runs; null: the default. */
  readonly priority: number | null;
  readonly metadata: Readonly<Record<string, unknown>> | null;
  /** Where the end of each of its runs is told; null: nowhere. */
  readonly callbackUrl: string | null;
  /** How often it may fire; null: any number of times. */
  readonly maxRuns: number | null;
  /** The last moment at which it may be due; null: there is none. */
  readonly untilAt: number | null;
  /** After how many failed runs in a row it is paused; null or 0: never. */
  readonly pauseAfterFailures: number | null;
}

export interface NewSchedule {
  readonly tenant: string;
  readonly definition: ScheduleDefinition;
  readonly status: "active" | "paused";
  /** Null: never; always so unless it is active. */
  readonly nextFireAt: number | null;
  /** What it was made for, so that it is made only once; null: nobody minds. */
  readonly source: string | null;
  /** How many of its tenant may be active or paused, this one included; left out or null: any number. */
  readonly maxSchedules?: number | null;
}

export interface ScheduleRecord extends ScheduleDefinition, ScheduleName {
  readonly status: ScheduleStatus;
  readonly revision: number;
  readonly createdAt: number;
  /** When its definition or its status was changed last; fires do not count. */
  readonly updatedAt: number;
  /** Null: nothing is due. */
  readonly nextFireAt: number | null;
  /** The last moment that has its row; null: none has. */
  readonly lastDueAt: number | null;
  /** When a run of it fired last, and which; null: none has. */
  readonly lastRunAt: number | null;
  readonly lastRunId: number | null;
  /** How often it has fired. */
  readonly runCount: number;
  /** How the run ended that ended last; null: none has. Of a one-shot also that it was missed. */
  readonly lastStatus: Exclude<RunStatus, "running" | "skipped"> | null;
  readonly lastError: string | null;
  /** How many of its runs have failed since one succeeded, or since it was made active; those that were cancelled don't count. */
  readonly consecutiveFailures: number;
  /** Why it is paused, unless its owner wished it; null too while it is not. */
  readonly pausedReason: string | null;
  /** How many of its runs go. */
  readonly openRuns: number;
  /** Paused until its tenant is enabled, by nobody's wish; see `whileDisabled`. */
  readonly held: boolean;
}

export interface UpdateScheduleParams extends ScheduleName {
  readonly revision: number;
  readonly changes: Partial<ScheduleDefinition> & {
    /** Made active, its failures in a row are forgotten. */
    readonly status?: "active" | "paused" | "completed";
    readonly nextFireAt?: number | null;
  };
  readonly pauseReason?: string;
  /** Nothing changes while one of its moments has come and has no row yet. */
  readonly unlessDue?: boolean;
  /** As for a new one. */
  readonly maxSchedules?: number | null;
}

export interface ScheduleCounts {
  readonly active: number;
  readonly paused: number;
  /** Runs. */
  readonly running: number;
  readonly nextFireAt: number | null;
}

/** What becomes of a schedule's moments. */
export interface Fire extends ScheduleName {
  readonly revision: number;
  /** In the order of their moments. */
  readonly runs: readonly NewRun[];
  /** Null: nothing more. Where it was asked for out of turn: as it was. */
  readonly nextFireAt: number | null;
  /** It is paused for this reason; null: it is not. */
  readonly pauses: string | null;
  /**
   * It follows from its tenant being disabled: where that no longer is so, the schedule stays as it is, and one that is paused
   * is held until then.
   */
  readonly whileDisabled?: boolean;
  /** How many of its runs may wait; left out: any number. */
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
    /** It could not even start. */
    | { readonly status: "failed"; readonly requestId: string; readonly error: string }
    | { readonly status: "skipped" | "missed"; readonly reason: string }
  );

export interface NewRunMoments {
  /** The last moment that it stands for. */
  readonly dueAt: number;
  readonly firstDueAt: number;
  readonly moments: number;
  /** Somebody asked for it out of turn: `dueAt` is no moment of the schedule. */
  readonly forced: boolean;
}

export interface FiredSchedule extends ScheduleName {
  /** False: somebody else was faster, or it was changed, and nothing happened. */
  readonly fired: boolean;
  /** Those that were written, in order; one that was to fire and has no task was skipped. */
  readonly runs: readonly { readonly id: number; readonly task: InsertedTask | null }[];
  /** What had to give way. */
  readonly cancelled: readonly EndedTask[];
}

/** The row of one or several due times. */
export interface DueRow {
  readonly runId: number;
  readonly firstDueAt: number;
  /** The last due time that it stands for. */
  readonly dueAt: number;
  readonly moments: number;
  /** Whether that started a run: it never starts another. */
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
  /** What they stand for from now on; 0 `moments`: nothing, and they go. */
  readonly rows: readonly Omit<DueRow, "started">[];
  /** Due times that a run stood for whose own lies ahead: they have come, and get a row that says that they were missed. */
  readonly missed: readonly MissedTimes[];
  readonly nextFireAt: number | null;
  /** It had ended because its only due time did not run, and goes on. */
  readonly reopens: boolean;
}

export interface RunRecord {
  /** Grows with every run. */
  readonly id: number;
  readonly tenant: string;
  readonly scheduleId: number;
  readonly agent: string;
  /** The task that it became; null: none. */
  readonly taskId: string | null;
  readonly dueAt: number;
  readonly firstDueAt: number;
  readonly moments: number;
  readonly forced: boolean;
  readonly status: RunStatus;
  /** Why it was skipped or missed, or ended by somebody. */
  readonly reason: string | null;
  /** When it fired; null: it did not. */
  readonly startedAt: number | null;
  /** When it ended, or was written down as skipped or missed; null: it goes. */
  readonly completedAt: number | null;
  readonly requestId: string | null;
  readonly resultSummary: string | null;
  readonly error: string | null;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** How often its task was tried, the try under way included. */
  readonly attempt: number;
}

export interface ListRunsParams {
  readonly tenant: string;
  readonly schedule?: number;
  readonly status?: RunStatus;
  /** Those that fired, ended or were written down not before. */
  readonly since?: number;
  readonly limit: number;
  /** From `nextCursor` of the page before. */
  readonly cursor?: number;
}
