import type { DueRow, RewindParams, ScheduleName } from "../../storage.ts";
import { notifyOfRun } from "../log/notifications.ts";
import { type OracleRun, type OracleState, scheduleOf, signal } from "../state.ts";
import { addRun } from "./fire-schedules.ts";

export function dueRows(
  state: OracleState,
  { tenant, id, after, limit }: ScheduleName & { after: number; limit: number },
): DueRow[] {
  return rowsOf(state, { tenant, id })
    .filter(({ dueAt }) => dueAt > after)
    .sort((a, b) => a.dueAt - b.dueAt)
    .slice(0, limit)
    .map(({ id: runId, firstDueAt, dueAt, moments, startedAt }) => ({
      runId,
      firstDueAt,
      dueAt,
      moments,
      started: startedAt !== null,
    }));
}

export function rewindSchedule(state: OracleState, params: RewindParams): boolean {
  const { tenant, id, revision, rows, missed, nextFireAt, reopens } = params;
  const schedule = scheduleOf(state, { tenant, id });
  if (schedule?.revision !== revision) return false;
  const now = state.clock.now();
  const own = new Map(rowsOf(state, { tenant, id }).map((run) => [run.id, run]));
  if (rows.some(({ runId }) => (own.get(runId)?.dueAt ?? now) <= now)) return false;
  const gone = new Set(rows.filter(({ moments }) => moments === 0).map(({ runId }) => runId));
  state.runs = state.runs.filter((run) => !gone.has(run.id));
  for (const { runId, firstDueAt, dueAt, moments } of rows) {
    const run = own.get(runId);
    if (run !== undefined && moments > 0) Object.assign(run, { firstDueAt, dueAt, moments });
  }
  for (const times of missed)
    notifyOfRun(state, "run.missed", addRun(state, schedule, { ...times, forced: false, status: "missed" }));
  const left = rowsOf(state, { tenant, id }).map(({ dueAt }) => dueAt);
  schedule.lastDueAt = left.length === 0 ? null : Math.max(...left);
  schedule.revision += 1;
  if (reopens) {
    if (schedule.lastStatus === "missed") Object.assign(schedule, { lastStatus: null, lastError: null });
    Object.assign(schedule, { status: "active", updatedAt: now });
  }
  schedule.nextFireAt = schedule.status === "active" ? nextFireAt : null;
  signal(state, { kind: "schedules" });
  return true;
}

function rowsOf(state: OracleState, { tenant, id }: ScheduleName): OracleRun[] {
  return state.runs.filter((run) => run.tenant === tenant && run.scheduleId === id && !run.forced);
}
