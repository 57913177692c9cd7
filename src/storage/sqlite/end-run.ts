import type { SqliteDatabase } from "./database.ts";
import { notifyOfRun } from "./notifications.ts";
import type { RunRow } from "./runs.ts";
import { removeSchedule } from "./schedules.ts";

/** The end of a task is the end of the run that it was made for; inside the transaction that ends it. */
export function endRun(
  db: SqliteDatabase,
  taskSeq: number,
  end: {
    state: "done" | "failed" | "cancelled";
    error: string | null;
    summary?: string | undefined;
    now: number;
  },
): void {
  const isDone = end.state === "done";
  const error = isDone ? null : (end.error ?? end.state);
  const run = db
    .prepare<RunRow>(
      `update run set status = @status, completed_at = @now, result_summary = @summary, error = @error, reason = @reason,
                      input_tokens = coalesce(t.input_tokens, 0), output_tokens = coalesce(t.output_tokens, 0),
                      attempt = t.executions
         from (select id, input_tokens, output_tokens, executions from task where seq = @taskSeq) t
        where run.task_id = t.id and run.status = 'running' returning *`,
    )
    .get({
      status: isDone ? "succeeded" : "failed",
      now: end.now,
      summary: isDone ? (end.summary ?? null) : null,
      error,
      reason: end.state === "cancelled" ? error : null,
      taskSeq,
    });
  // Its schedule was deleted.
  if (run === undefined) return;
  notifyOfRun(db, isDone ? "run.completed" : "run.failed", run, end.now);
  settleSchedule(db, run, end.now);
}

/** What the end of a run means for its schedule. */
function settleSchedule(db: SqliteDatabase, run: RunRow, now: number): void {
  const schedule = db
    .prepare<{ is_over: 0 | 1; delete_after_run: 0 | 1 }>(
      `update schedule set open_runs = open_runs - 1, revision = revision + 1, last_status = ?, last_error = ?
        where id = ?
       returning kind = 'once' and next_fire_at is null and open_runs = 0
                   -- One that is paused before its only moment still has that to come.
                   and (status <> 'paused' or coalesce(last_due_at >= json_extract(rule, '$.atMs'), 0)) as is_over,
                 delete_after_run`,
    )
    .get(run.status, run.error, run.schedule);
  if (schedule === undefined || schedule.is_over === 0) return;
  if (run.status === "succeeded" && schedule.delete_after_run === 1) {
    removeSchedule(db, run.schedule);
    return;
  }
  db.prepare("update schedule set status = ?, held = 0, updated_at = ? where id = ?").run(
    run.status === "succeeded" ? "completed" : "failed",
    now,
    run.schedule,
  );
}

/** A task that is retried takes its run up again. */
export function reopenRun(db: SqliteDatabase, taskId: string, now: number): void {
  const run = db
    .prepare<RunRow>(
      "update run set status = 'running', completed_at = null, reason = null, error = null where task_id = ? returning *",
    )
    .get(taskId);
  if (run === undefined) return;
  takeUp(db, run.schedule, now);
  db.prepare("update schedule set revision = revision + 1 where id = ?").run(run.schedule);
  notifyOfRun(db, "run.started", run, now);
}

/** A run of it goes: one that is due once is not over before that ends. */
export function takeUp(db: SqliteDatabase, schedule: number, now: number): void {
  db.prepare(
    `update schedule
        set open_runs = open_runs + 1,
            updated_at = iif(status = 'completed' or status = 'failed', @now, updated_at),
            status = iif(status = 'completed' or status = 'failed', 'active', status)
      where id = @schedule`,
  ).run({ schedule, now });
}
