import { REPLACED, SKIPPED_ROWS_MAX, TOO_MANY_WAITING } from "../../../../model/run.ts";
import type { EndedTask, FiredSchedule, InsertedTask, NewRun } from "../../../storage.ts";
import type { Transaction } from "../../connection/transaction.ts";
import { notifyOfRun } from "../../log/steps/notify.ts";
import { NO_ADMISSION } from "../../tasks/steps/admit-task.ts";
import { endNow } from "../../tasks/steps/cancel-all.ts";
import { WAITING_COLUMNS, type WaitingTask } from "../../tasks/steps/end-waiting-task.ts";
import { insertTask } from "../../tasks/steps/insert-task.ts";
import type { RunRow } from "../run-row.ts";
import type { ScheduleRow } from "../schedule-row.ts";
import { takeUp } from "./end-run.ts";

const TOLD_AS = {
  running: "run.started",
  failed: "run.failed",
  skipped: "run.skipped",
  missed: "run.missed",
} as const;

/** Null: its due time has a row already. */
export function writeRun(
  tx: Transaction,
  given: NewRun,
  { schedule, cancelled }: { schedule: ScheduleRow; cancelled: EndedTask[] },
): FiredSchedule["runs"][number] | null {
  if (!given.forced) {
    tx.prepare(
      "update schedule set last_due_at = max(coalesce(last_due_at, @dueAt), @dueAt) where id = @id",
    ).run({ dueAt: given.dueAt, id: schedule.id });
    if (hasRow(tx, schedule.id, given.dueAt)) return null;
  }
  const joined = sharesRow(tx, schedule.id, given) ? joinLast(tx, schedule.id, given) : undefined;
  if (joined !== undefined) return { id: joined.id, task: null };
  if (given.status === "running" && given.replaces) {
    cancelled.push(...cancelOpenRuns(tx, schedule.id, { error: REPLACED }));
  }
  const run = addRun(tx, schedule, given);
  let task: InsertedTask | null = null;
  if (given.status === "running") {
    takeUp(tx, schedule.id);
    task = insertTask(tx, given.task, NO_ADMISSION);
  }
  if (run.started_at !== null) noteFire(tx, run);
  notifyOfRun(tx, TOLD_AS[given.status], run);
  return { id: run.id, task };
}

function hasRow(tx: Transaction, schedule: number, dueAt: number): boolean {
  return (
    tx.prepare("select 1 from run where schedule = ? and due_at = ? and forced = 0").get(schedule, dueAt) !==
    undefined
  );
}

type UnfiredRun = NewRun & { readonly status: "skipped" | "missed" };

/**
 * Whether a run may share the row before it: a missed one or one skipped as `TOO_MANY_WAITING` always; one skipped for another
 * reason if the last `SKIPPED_ROWS_MAX` runs were skipped for the same reason.
 */
function sharesRow(tx: Transaction, schedule: number, run: NewRun): run is UnfiredRun {
  if (run.status !== "skipped" || run.reason === TOO_MANY_WAITING)
    return run.status === "missed" || run.status === "skipped";
  const skipped = tx
    .prepare<{ n: number }>(
      `select count(*) as n from (select status, reason, forced from run where schedule = ? order by id desc limit +?)
        where status = 'skipped' and reason = ? and forced = 0`,
    )
    .get(schedule, SKIPPED_ROWS_MAX, run.reason);
  return skipped?.n === SKIPPED_ROWS_MAX;
}

/** Adds due times that did not fire to the last row, if that row is of the same kind and right before them. */
function joinLast(
  tx: Transaction,
  schedule: number,
  { dueAt, firstDueAt, moments, status, reason, forced }: UnfiredRun,
): RunRow | undefined {
  if (forced) return undefined;
  const run = tx
    .prepare<RunRow>(
      `update run set due_at = @dueAt, moments = moments + @moments, reason = @reason, completed_at = @now
        where id = (select max(id) from run where schedule = @schedule)
          and status = @status and (status = 'missed' or reason = @reason) and forced = 0 and due_at < @firstDueAt
          and not exists (select 1 from run b where b.schedule = @schedule and b.forced = 0
                             and b.due_at > run.due_at and b.due_at < @firstDueAt) returning *`,
    )
    .get({ schedule, dueAt, firstDueAt, moments, status, reason, now: tx.now });
  if (run !== undefined && status === "missed") notifyOfRun(tx, "run.missed", run);
  return run;
}

/** Cancels the tasks of a schedule's runs that have not ended. */
export function cancelOpenRuns(
  tx: Transaction,
  schedule: number,
  { error, sparesRunning = false }: { error: string; sparesRunning?: boolean | undefined },
): EndedTask[] {
  return tx
    .prepare<WaitingTask & { id: string }>(
      `select t.id, ${WAITING_COLUMNS} from run r join task t on t.id = r.task_id
        where r.schedule = ? and r.status = 'running' and t.completed_at is null
          and (? = 0 or not exists (select 1 from lease l where l.task_seq = t.seq)) order by r.id`,
    )
    .all(schedule, sparesRunning ? 1 : 0)
    .map((task) => endNow(tx, task, error));
}

export function addRun(tx: Transaction, { id, tenant, agent }: ScheduleRow, given: NewRun): RunRow {
  const { now } = tx;
  const { dueAt, firstDueAt, moments, forced, status } = given;
  return tx
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
function noteFire(tx: Transaction, run: RunRow): void {
  tx.prepare(
    "update schedule set run_count = run_count + 1, last_run_at = ?, last_run_id = ? where id = ?",
  ).run(run.started_at, run.id, run.schedule);
  if (run.status === "failed") {
    tx.prepare(
      `update schedule set last_status = 'failed', last_error = ?, consecutive_failures = consecutive_failures + 1
        where id = ?`,
    ).run(run.error, run.schedule);
  }
}
