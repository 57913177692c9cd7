import { FAILED_IN_A_ROW } from "../../../model/schedule.ts";
import { isTerminal } from "../../../model/task-state.ts";
import type { ListRunsParams, RunRecord } from "../../storage.ts";
import { notifyOfRun, notifyOfSchedule } from "../log/notifications.ts";
import {
  type OracleRun,
  type OracleSchedule,
  type OracleState,
  type OracleTask,
  scheduleOf,
} from "../state.ts";

export function getRun(state: OracleState, { tenant, id }: { tenant: string; id: number }): RunRecord | null {
  const run = state.runs.find((each) => each.tenant === tenant && each.id === id);
  return run === undefined ? null : toRunRecord(state, run);
}

export function listRuns(
  state: OracleState,
  { tenant, agent, schedule, status, since, limit, cursor }: ListRunsParams,
): { runs: RunRecord[]; nextCursor: number | null } {
  const found = state.runs
    .filter((run) => run.tenant === tenant && (cursor === undefined || run.id < cursor))
    .filter((run) => agent === undefined || run.agent === agent)
    .filter((run) => schedule === undefined || run.scheduleId === schedule)
    .filter((run) => status === undefined || run.status === status)
    .filter((run) => since === undefined || Math.max(run.startedAt ?? 0, run.completedAt ?? 0) >= since)
    .sort((a, b) => b.id - a.id);
  const page = found.slice(0, limit);
  return {
    runs: page.map((run) => toRunRecord(state, run)),
    nextCursor: found.length > limit ? (page.at(-1)?.id ?? null) : null,
  };
}

export function pruneRuns(
  state: OracleState,
  { retentionMs, limit }: { retentionMs: number; limit: number },
): { more: boolean } {
  const now = state.clock.now();
  const cutoff = now - retentionMs;
  const old = state.runs
    .filter(({ completedAt }) => completedAt !== null && completedAt < cutoff)
    .sort((a, b) => (a.completedAt ?? 0) - (b.completedAt ?? 0) || a.id - b.id)
    .slice(0, limit);
  state.runs = state.runs.filter((run) => !old.includes(run));
  // Entries far in the future were written while the clock was wrong. They must not keep everything after them.
  const firstKept = state.notifications.findIndex(({ at }) => at >= cutoff && at <= now + retentionMs);
  const deleted = state.notifications.slice(0, firstKept === -1 ? undefined : firstKept).slice(0, limit);
  state.notifications = state.notifications.slice(deleted.length);
  return { more: old.length === limit || deleted.length === limit };
}

/** The tasks of a schedule's runs that have not ended, in the order of the runs. */
export function openTasksOfRuns(state: OracleState, { id }: { id: number }): OracleTask[] {
  return state.runs
    .filter((run) => run.scheduleId === id && run.status === "running")
    .flatMap((run) => state.tasks.find((task) => task.id === run.taskId && !isTerminal(task.state)) ?? []);
}

/** The end of a task ends the run that it was created for. */
export function endRun(state: OracleState, task: OracleTask): void {
  const run = state.runs.find((each) => each.taskId === task.id && each.status === "running");
  if (run === undefined) return;
  const isDone = task.state === "done";
  run.status = isDone ? "succeeded" : "failed";
  run.completedAt = task.completedAt;
  run.resultSummary = isDone ? task.summary : null;
  run.error = isDone ? null : (task.error ?? task.state);
  run.reason = task.state === "cancelled" ? run.error : null;
  run.inputTokens = task.usage?.inputTokens ?? 0;
  run.outputTokens = task.usage?.outputTokens ?? 0;
  run.attempt = task.attempts.length;
  notifyOfRun(state, isDone ? "run.completed" : "run.failed", run);
  const schedule = scheduleOf(state, { tenant: run.tenant, id: run.scheduleId });
  if (schedule !== undefined) settleSchedule(state, schedule, run);
}

/** What the end of a run means for its schedule. */
function settleSchedule(state: OracleState, schedule: OracleSchedule, run: OracleRun): void {
  schedule.openRuns -= 1;
  schedule.revision += 1;
  schedule.lastStatus = run.status as "succeeded" | "failed";
  schedule.lastError = run.error;
  if (run.status === "succeeded") schedule.consecutiveFailures = 0;
  else if (run.reason === null) schedule.consecutiveFailures += 1;
  if (pauseIfFailing(state, schedule)) return;
  if (!isOver(schedule)) return;
  if (run.status === "succeeded" && schedule.deleteAfterRun) {
    removeSchedule(state, schedule);
    return;
  }
  schedule.status = run.status === "succeeded" ? "completed" : "failed";
  schedule.held = false;
  schedule.pausedReason = null;
  schedule.updatedAt = state.clock.now();
}

/** Only recurring schedules: a one-time schedule ends with its run. */
function pauseIfFailing(state: OracleState, schedule: OracleSchedule): boolean {
  const { rule, status, consecutiveFailures, pauseAfterFailures } = schedule;
  if (rule.kind === "once" || status !== "active" || !pauseAfterFailures) return false;
  if (consecutiveFailures < pauseAfterFailures) return false;
  pauseSchedule(state, schedule, `${FAILED_IN_A_ROW}${consecutiveFailures}`);
  return true;
}

/** Also writes a notification. */
export function pauseSchedule(state: OracleState, schedule: OracleSchedule, reason: string): void {
  schedule.status = "paused";
  schedule.held = false;
  schedule.pausedReason = reason;
  schedule.nextFireAt = null;
  schedule.updatedAt = state.clock.now();
  notifyOfSchedule(state, "schedule.paused", schedule, reason);
}

/** Deletes a schedule with all its runs. */
export function removeSchedule(state: OracleState, { id }: { id: number }): void {
  state.schedules = state.schedules.filter((schedule) => schedule.id !== id);
  state.runs = state.runs.filter((run) => run.scheduleId !== id);
}

/** Whether a one-time schedule has nothing left to do. If it was paused before its due time, that is still to come. */
function isOver({ rule, nextFireAt, openRuns, status, lastDueAt }: OracleSchedule): boolean {
  if (rule.kind !== "once" || nextFireAt !== null || openRuns > 0) return false;
  return status !== "paused" || (lastDueAt !== null && lastDueAt >= rule.atMs);
}

/** A retry of a task reopens its run. */
export function reopenRun(state: OracleState, task: OracleTask): void {
  const run = state.runs.find((each) => each.taskId === task.id);
  const schedule = run && scheduleOf(state, { tenant: run.tenant, id: run.scheduleId });
  if (run === undefined || schedule === undefined) return;
  Object.assign(run, { status: "running", completedAt: null, reason: null, error: null });
  takeUp(state, schedule);
  schedule.revision += 1;
  notifyOfRun(state, "run.started", run);
}

/** Records that a run has started. A one-time schedule is active again until its run has ended. */
export function takeUp(state: OracleState, schedule: OracleSchedule): void {
  schedule.openRuns += 1;
  if (schedule.rule.kind !== "once") return;
  if (schedule.status !== "completed" && schedule.status !== "failed") return;
  schedule.status = "active";
  schedule.updatedAt = state.clock.now();
}

function toRunRecord(state: OracleState, run: OracleRun): RunRecord {
  if (run.status !== "running") return { ...run };
  const task = state.tasks.find(({ id }) => id === run.taskId);
  return { ...run, attempt: task?.attempts.length ?? run.attempt };
}
