import { REPLACED, SKIPPED_ROWS_MAX, TOO_MANY_WAITING } from "../../../model/run.ts";
import type { EndedTask, Fire, FiredSchedule, InsertedTask, NewRun } from "../../storage.ts";
import type { SqliteDatabase } from "../connection/database.ts";
import { Ledger } from "../counters/ledger.ts";
import { notifyOfRun } from "../log/notifications.ts";
import { endNow, tellOfCancelled } from "../tasks/cancel-tasks.ts";
import { WAITING_COLUMNS, type WaitingTask } from "../tasks/end-waiting-task.ts";
import { insertTask, NO_ADMISSION } from "../tasks/insert-tasks.ts";
import { preemptTasks } from "../tasks/preempt-tasks.ts";
import { settleMoves } from "../tasks/settle-moves.ts";
import { pauseSchedule, takeUp } from "./end-run.ts";
import type { RunRow } from "./runs.ts";
import type { ScheduleRow } from "./schedule-row.ts";

const TOLD_AS = {
  running: "run.started",
  failed: "run.failed",
  skipped: "run.skipped",
  missed: "run.missed",
} as const;

/** Stores the outcomes of due times, inside a transaction. */
export function fireSchedules(db: SqliteDatabase, fires: readonly Fire[], now: number): FiredSchedule[] {
  const ledger = new Ledger(db);
  const fired = fires.map((fire) => fireSchedule(db, ledger, fire, now));
  settleMoves(db, ledger, now);
  preemptTasks(db, ledger, now);
  ledger.save();
  const cancelled = fired.flatMap((each) => each.cancelled);
  if (cancelled.length > 0) tellOfCancelled(db, cancelled);
  db.signal({ kind: "events" });
  db.signal({ kind: "work" });
  db.signal({ kind: "schedules" });
  return fired;
}

function fireSchedule(db: SqliteDatabase, ledger: Ledger, fire: Fire, now: number): FiredSchedule {
  const { tenant, id, revision, nextFireAt, whileDisabled = false } = fire;
  // Before its runs end: their ends, below, change the schedule depending on `next_fire_at`.
  const schedule = db
    .prepare<ScheduleRow>(
      `update schedule set next_fire_at = @nextFireAt, revision = revision + 1
        where tenant = @tenant and id = @id and revision = @revision
          and (@whileDisabled = 0 or exists (select 1 from tenant where id = @tenant and disabled = 1)) returning *`,
    )
    .get({ tenant, id, revision, nextFireAt, whileDisabled: whileDisabled ? 1 : 0 });
  if (schedule === undefined) return { tenant, id, fired: false, runs: [], cancelled: [] };
  const cancelled: EndedTask[] = [];
  const { waitingMax = Number.POSITIVE_INFINITY } = fire;
  const runs = fire.runs.flatMap((run) => {
    const given = isCrowdedOut(db, schedule.id, run, waitingMax) ? crowdedOut(run) : run;
    return (given && writeRun(db, ledger, schedule, given, cancelled, now)) ?? [];
  });
  if (completeIfSpent(db, schedule, now)) return { tenant, id, fired: true, runs, cancelled };
  if (fire.pauses !== null) pauseSchedule(db, schedule, { reason: fire.pauses, held: whileDisabled, now });
  else if (schedule.kind === "once") failIfMissed(db, schedule, fire.runs.at(-1), now);
  else completeIfNeverDue(db, schedule, now);
  return { tenant, id, fired: true, runs, cancelled };
}

/** Whether a run would fire while `waitingMax` runs of its schedule wait. */
function isCrowdedOut(db: SqliteDatabase, schedule: number, run: NewRun, waitingMax: number): boolean {
  if (run.status !== "running" || run.replaces) return false;
  const { open } = db
    .prepare<{ open: number }>("select open_runs as open from schedule where id = ?")
    .get(schedule) ?? { open: 0 };
  if (open < waitingMax) return false;
  // The newest first: running ones are usually the oldest.
  const waiting = db
    .prepare<{ n: number }>(
      `select count(*) as n from (
         select 1 from run r indexed by run_open cross join task t on t.id = r.task_id
          where r.schedule = @schedule and r.status = 'running'
            and not exists (select 1 from lease l where l.task_seq = t.seq)
          order by r.id desc limit +@waitingMax)`,
    )
    .get({ schedule, waitingMax });
  return (waiting?.n ?? 0) >= waitingMax;
}

/** The run to store instead; null: nothing, since a forced run has no due time. */
function crowdedOut({ dueAt, firstDueAt, moments, forced }: NewRun): NewRun | null {
  if (forced) return null;
  return { dueAt, firstDueAt, moments, forced, status: "skipped", reason: TOO_MANY_WAITING };
}

/** Null: its due time has a row already. */
function writeRun(
  db: SqliteDatabase,
  ledger: Ledger,
  schedule: ScheduleRow,
  given: NewRun,
  cancelled: EndedTask[],
  now: number,
): FiredSchedule["runs"][number] | null {
  if (!given.forced) {
    db.prepare(
      "update schedule set last_due_at = max(coalesce(last_due_at, @dueAt), @dueAt) where id = @id",
    ).run({ dueAt: given.dueAt, id: schedule.id });
    if (hasRow(db, schedule.id, given.dueAt)) return null;
  }
  const joined = sharesRow(db, schedule.id, given) ? joinLast(db, schedule.id, given, now) : undefined;
  if (joined !== undefined) return { id: joined.id, task: null };
  if (given.status === "running" && given.replaces) {
    cancelled.push(...cancelOpenRuns(db, ledger, schedule.id, { error: REPLACED, now }));
  }
  const run = addRun(db, schedule, given, now);
  let task: InsertedTask | null = null;
  if (given.status === "running") {
    takeUp(db, schedule.id, now);
    task = insertTask(db, ledger, given.task, NO_ADMISSION, now);
  }
  if (run.started_at !== null) noteFire(db, run);
  notifyOfRun(db, TOLD_AS[given.status], run, now);
  return { id: run.id, task };
}

function hasRow(db: SqliteDatabase, schedule: number, dueAt: number): boolean {
  return (
    db.prepare("select 1 from run where schedule = ? and due_at = ? and forced = 0").get(schedule, dueAt) !==
    undefined
  );
}

type UnfiredRun = NewRun & { readonly status: "skipped" | "missed" };

/**
 * Whether a run may share the row before it: a missed one or one skipped as `TOO_MANY_WAITING` always; one skipped for another
 * reason if the last `SKIPPED_ROWS_MAX` runs were skipped for the same reason.
 */
function sharesRow(db: SqliteDatabase, schedule: number, run: NewRun): run is UnfiredRun {
  if (run.status !== "skipped" || run.reason === TOO_MANY_WAITING)
    return run.status === "missed" || run.status === "skipped";
  const skipped = db
    .prepare<{ n: number }>(
      `select count(*) as n from (select status, reason, forced from run where schedule = ? order by id desc limit +?)
        where status = 'skipped' and reason = ? and forced = 0`,
    )
    .get(schedule, SKIPPED_ROWS_MAX, run.reason);
  return skipped?.n === SKIPPED_ROWS_MAX;
}

/** Adds due times that did not fire to the last row, if that row is of the same kind and right before them. */
function joinLast(
  db: SqliteDatabase,
  schedule: number,
  { dueAt, firstDueAt, moments, status, reason, forced }: UnfiredRun,
  now: number,
): RunRow | undefined {
  if (forced) return undefined;
  const run = db
    .prepare<RunRow>(
      `update run set due_at = @dueAt, moments = moments + @moments, reason = @reason, completed_at = @now
        where id = (select max(id) from run where schedule = @schedule)
          and status = @status and (status = 'missed' or reason = @reason) and forced = 0 and due_at < @firstDueAt
          and not exists (select 1 from run b where b.schedule = @schedule and b.forced = 0
                             and b.due_at > run.due_at and b.due_at < @firstDueAt) returning *`,
    )
    .get({ schedule, dueAt, firstDueAt, moments, status, reason, now });
  if (run !== undefined && status === "missed") notifyOfRun(db, "run.missed", run, now);
  return run;
}

/** Cancels the tasks of a schedule's runs that have not ended. */
export function cancelOpenRuns(
  db: SqliteDatabase,
  ledger: Ledger,
  schedule: number,
  { sparesRunning = false, ...end }: { error: string; now: number; sparesRunning?: boolean | undefined },
): EndedTask[] {
  return db
    .prepare<WaitingTask & { id: string }>(
      `select t.id, ${WAITING_COLUMNS} from run r join task t on t.id = r.task_id
        where r.schedule = ? and r.status = 'running' and t.completed_at is null
          and (? = 0 or not exists (select 1 from lease l where l.task_seq = t.seq)) order by r.id`,
    )
    .all(schedule, sparesRunning ? 1 : 0)
    .map((task) => endNow(db, ledger, task, end));
}

export function addRun(
  db: SqliteDatabase,
  { id, tenant, agent }: ScheduleRow,
  given: NewRun,
  now: number,
): RunRow {
  const { dueAt, firstDueAt, moments, forced, status } = given;
  return db
    .prepare<RunRow>(
      `insert into run (tenant, schedule, agent, task_id, due_at, first_due_at, moments, forced, status, reason, started_at,
                        completed_at, request_id, error)
       values (@tenant, @id, @agent, @taskId, @dueAt, @firstDueAt, @moments, @forced, @status, @reason, @startedAt,
               @completedAt, @requestId, @error) returning *`,
    )
    .get({
      id,
      tenant,
      agent,
      taskId: given.status === "running" ? given.task.id : null,
      dueAt,
      firstDueAt,
      moments,
      forced: forced ? 1 : 0,
      status,
      reason: "reason" in given ? given.reason : null,
      startedAt: status === "running" || status === "failed" ? now : null,
      completedAt: status === "running" ? null : now,
      requestId: "requestId" in given ? given.requestId : null,
      error: given.status === "failed" ? given.error : null,
    }) as RunRow;
}

/** Counts a run on its schedule. A run that failed to start has also ended. */
function noteFire(db: SqliteDatabase, run: RunRow): void {
  db.prepare(
    "update schedule set run_count = run_count + 1, last_run_at = ?, last_run_id = ? where id = ?",
  ).run(run.started_at, run.id, run.schedule);
  if (run.status === "failed") {
    db.prepare(
      `update schedule set last_status = 'failed', last_error = ?, consecutive_failures = consecutive_failures + 1
        where id = ?`,
    ).run(run.error, run.schedule);
  }
}

/** Completes a schedule that has fired `maxRuns` times. One that is due once ends with its run instead. */
function completeIfSpent(db: SqliteDatabase, { id, kind, max_runs }: ScheduleRow, now: number): boolean {
  if (max_runs === null) return false;
  const spent = db
    .prepare("update schedule set next_fire_at = null where id = ? and run_count >= max_runs")
    .run(id);
  if (spent.changes === 0 || kind === "once") return false;
  complete(db, id, now);
  return true;
}

function completeIfNeverDue(db: SqliteDatabase, { id, next_fire_at }: ScheduleRow, now: number): void {
  if (next_fire_at === null) complete(db, id, now, "active");
}

/** With `from`: only if the schedule has that status. */
function complete(db: SqliteDatabase, id: number, now: number, from?: "active"): void {
  db.prepare(
    `update schedule set status = 'completed', held = 0, paused_reason = null, updated_at = ?
      where id = ? and status <> 'completed' and coalesce(?, status) = status`,
  ).run(now, id, from ?? null);
}

/** A schedule that is due once and missed its due time has failed. */
function failIfMissed(db: SqliteDatabase, { id }: ScheduleRow, last: NewRun | undefined, now: number): void {
  if (last?.status !== "missed") return;
  db.prepare("update schedule set last_status = 'missed', last_error = ? where id = ?").run(last.reason, id);
  db.prepare(
    `update schedule set status = 'failed', held = 0, paused_reason = null, updated_at = ?
      where id = ? and next_fire_at is null and open_runs = 0`,
  ).run(now, id);
}
