import { FAILED_IN_A_ROW } from "../../../../model/schedule.ts";
import type { Transaction } from "../../connection/transaction.ts";
import { notifyOfRun, notifyOfSchedule } from "../../log/steps/notify.ts";
import type { RunRow } from "../run-row.ts";
import type { ScheduleRow } from "../schedule-row.ts";
import { removeSchedule } from "./remove-schedule.ts";

/** Ends the run of a task, inside the transaction that ends the task. */
export function endRun(
  tx: Transaction,
  taskSeq: number,
  end: {
    state: "done" | "failed" | "cancelled";
    error: string | null;
    summary?: string | undefined;
  },
): void {
  const isDone = end.state === "done";
  const error = isDone ? null : (end.error ?? end.state);
  const run = tx
    .prepare<RunRow>(
      `update run set status = @status, completed_at = @now, result_summary = @summary, error = @error, reason = @reason,
                      input_tokens = coalesce(t.input_tokens, 0), output_tokens = coalesce(t.output_tokens, 0),
                      attempt = t.executions
         from (select id, input_tokens, output_tokens, executions from task where seq = @taskSeq) t
        where run.task_id = t.id and run.status = 'running' returning *`,
    )
    .get({
      status: isDone ? "succeeded" : "failed",
      now: tx.now,
      summary: isDone ? (end.summary ?? null) : null,
      error,
      reason: end.state === "cancelled" ? error : null,
      taskSeq,
    });
  // Its schedule was deleted.
  if (run === undefined) return;
  notifyOfRun(tx, isDone ? "run.completed" : "run.failed", run);
  settleSchedule(tx, run);
}

/** Updates a schedule after the end of one of its runs. */
function settleSchedule(tx: Transaction, run: RunRow): void {
  const schedule = tx
    .prepare<ScheduleRow & { is_over: 0 | 1 }>(
      `update schedule set open_runs = open_runs - 1, revision = revision + 1, last_status = @status, last_error = @error,
                           consecutive_failures = iif(@status = 'succeeded', 0, consecutive_failures + @counts)
        where id = @schedule
       returning *, kind = 'once' and next_fire_at is null and open_runs = 0
                   -- One that is paused before its only moment still has that to come.
                   and (status <> 'paused' or coalesce(last_due_at >= json_extract(rule, '$.atMs'), 0)) as is_over`,
    )
    .get({
      status: run.status,
      error: run.error,
      schedule: run.schedule,
      // A cancelled run does not show whether the schedule works.
      counts: run.status === "failed" && run.reason === null ? 1 : 0,
    });
  if (schedule === undefined) return;
  if (isFailing(schedule)) {
    const reason = `${FAILED_IN_A_ROW}${schedule.consecutive_failures}`;
    pauseSchedule(tx, schedule, { reason, held: false });
    return;
  }
  if (schedule.is_over === 0) return;
  if (run.status === "succeeded" && schedule.delete_after_run === 1) {
    removeSchedule(tx, run.schedule);
    return;
  }
  tx.prepare(
    "update schedule set status = ?, held = 0, paused_reason = null, updated_at = ? where id = ?",
  ).run(run.status === "succeeded" ? "completed" : "failed", tx.now, run.schedule);
}

/** Only for recurring schedules: one that is due once ends with its run. */
function isFailing({ kind, status, consecutive_failures, pause_after_failures }: ScheduleRow): boolean {
  if (kind === "once" || status !== "active") return false;
  return (pause_after_failures ?? 0) > 0 && consecutive_failures >= (pause_after_failures ?? 0);
}

/** Pauses a schedule and adds a notification. `held`: until its tenant is enabled. */
export function pauseSchedule(
  tx: Transaction,
  schedule: ScheduleRow,
  { reason, held }: { reason: string; held: boolean },
): void {
  tx.prepare(
    `update schedule set status = 'paused', next_fire_at = null, held = ?, paused_reason = ?, updated_at = ? where id = ?`,
  ).run(held ? 1 : 0, reason, tx.now, schedule.id);
  notifyOfSchedule(tx, "schedule.paused", { ...schedule, reason });
}

/** Sets the run of a retried task back to `running`. */
export function reopenRun(tx: Transaction, taskId: string): void {
  const run = tx
    .prepare<RunRow>(
      "update run set status = 'running', completed_at = null, reason = null, error = null where task_id = ? returning *",
    )
    .get(taskId);
  if (run === undefined) return;
  takeUp(tx, run.schedule);
  tx.prepare("update schedule set revision = revision + 1 where id = ?").run(run.schedule);
  notifyOfRun(tx, "run.started", run);
}

/** Counts a run that starts. A schedule that is due once becomes active again until the run ends. */
export function takeUp(tx: Transaction, schedule: number): void {
  tx.prepare(
    `update schedule
        set open_runs = open_runs + 1,
            updated_at = iif(kind = 'once' and status in ('completed', 'failed'), @now, updated_at),
            status = iif(kind = 'once' and status in ('completed', 'failed'), 'active', status)
      where id = @schedule`,
  ).run({ schedule, now: tx.now });
}
