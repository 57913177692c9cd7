import { REPLACED, SKIPPED_ROWS_MAX, TOO_MANY_WAITING } from "../../../model/run.ts";
import type { EndedTask, Fire, FiredSchedule, FireParams, InsertedTask, NewRun } from "../../storage.ts";
import { notifyOfRun } from "../log/notifications.ts";
import { type OracleRun, type OracleSchedule, type OracleState, scheduleOf, signal } from "../state.ts";
import { endNow, signalCancelled } from "../tasks/cancel-tasks.ts";
import { copyOf, insertTask, orRestore, toInserted } from "../tasks/insert-tasks.ts";
import { preempt } from "../tasks/preempt-tasks.ts";
import { settleMoves } from "../tasks/settle-moves.ts";
import { countBounded } from "../tasks/submit-bounds.ts";
import { openTasksOfRuns, pauseSchedule, takeUp } from "./runs.ts";

const NO_LIMITS = {
  maxQueueSize: Number.MAX_SAFE_INTEGER,
  maxQueueSizeTotal: Number.MAX_SAFE_INTEGER,
  maxPerAgent: Number.MAX_SAFE_INTEGER,
};

const NOTIFICATION_KINDS = {
  running: "run.started",
  failed: "run.failed",
  skipped: "run.skipped",
  missed: "run.missed",
} as const;

export function fireSchedules(state: OracleState, { fires, bounds }: FireParams): FiredSchedule[] {
  const before = bounds === undefined ? {} : copyOf(state);
  const fired = fires.map((fire) => fireSchedule(state, fire));
  if (bounds !== undefined) {
    const seqs = new Set(fired.flatMap(({ runs }) => runs.flatMap(({ task }) => task?.seq ?? [])));
    const tasks = state.tasks.filter(({ seq }) => seqs.has(seq));
    orRestore(state, before, () => countBounded(state, bounds, tasks));
  }
  settleMoves(state);
  preempt(state);
  signalCancelled(
    state,
    fired.flatMap(({ cancelled }) => cancelled),
  );
  signal(state, { kind: "schedules" });
  return fired;
}

function fireSchedule(state: OracleState, fire: Fire): FiredSchedule {
  const { tenant, id } = fire;
  const schedule = scheduleOf(state, fire);
  if (schedule?.revision !== fire.revision || isOutdated(state, fire)) {
    return { tenant, id, fired: false, runs: [], cancelled: [] };
  }
  const cancelled: EndedTask[] = [];
  // Set before runs end below: an end checks it to see whether the schedule is over.
  schedule.nextFireAt = fire.nextFireAt;
  const runs = fire.runs.flatMap((run) => {
    if (!isBeyondWaitingMax(state, schedule, run, fire))
      return writeRun(state, schedule, run, cancelled) ?? [];
    const { dueAt, firstDueAt, moments, forced } = run;
    const skipped = {
      dueAt,
      firstDueAt,
      moments,
      forced,
      status: "skipped",
      reason: TOO_MANY_WAITING,
    } as const;
    return forced ? [] : (writeRun(state, schedule, skipped, cancelled) ?? []);
  });
  schedule.revision += 1;
  if (completeIfSpent(state, schedule)) return { tenant, id, fired: true, runs, cancelled };
  if (fire.pauses !== null) pause(state, schedule, { ...fire, pauses: fire.pauses });
  else {
    failIfMissed(state, schedule, fire.runs.at(-1));
    completeIfNeverDue(state, schedule);
  }
  return { tenant, id, fired: true, runs, cancelled };
}

function isOutdated(state: OracleState, { tenant, whileDisabled = false }: Fire): boolean {
  return whileDisabled && !state.tenants.get(tenant)?.disabled;
}

/** Whether a run would fire while the maximum of runs wait. */
function isBeyondWaitingMax(
  state: OracleState,
  schedule: OracleSchedule,
  run: NewRun,
  { waitingMax = Number.POSITIVE_INFINITY }: Fire,
): boolean {
  if (run.status !== "running" || run.replaces) return false;
  return openTasksOfRuns(state, schedule).filter(({ held }) => held === null).length >= waitingMax;
}

/** Null: the due time has a row already. */
function writeRun(
  state: OracleState,
  schedule: OracleSchedule,
  given: NewRun,
  cancelled: EndedTask[],
): FiredSchedule["runs"][number] | null {
  if (!given.forced) {
    schedule.lastDueAt = Math.max(schedule.lastDueAt ?? given.dueAt, given.dueAt);
    if (rowOf(state, schedule, given) !== undefined) return null;
  }
  const joined =
    given.status === "skipped" || given.status === "missed" ? join(state, schedule, given) : null;
  if (joined !== null) return { id: joined.id, task: null };
  if (given.status === "running" && given.replaces) {
    cancelled.push(...openTasksOfRuns(state, schedule).map((task) => endNow(state, task, REPLACED)));
  }
  const run = addRun(state, schedule, given);
  let task: InsertedTask | null = null;
  if (given.status === "running") {
    takeUp(state, schedule);
    task = toInserted(state, insertTask(state, given.task, NO_LIMITS));
  }
  if (given.status === "running" || given.status === "failed") {
    schedule.runCount += 1;
    schedule.lastRunAt = run.startedAt;
    schedule.lastRunId = run.id;
  }
  if (given.status === "failed") {
    schedule.lastStatus = "failed";
    schedule.lastError = given.error;
    schedule.consecutiveFailures += 1;
  }
  notifyOfRun(state, NOTIFICATION_KINDS[given.status], run);
  return { id: run.id, task };
}

function rowOf(state: OracleState, { id }: OracleSchedule, { dueAt }: NewRun): OracleRun | undefined {
  return state.runs.find((run) => run.scheduleId === id && run.dueAt === dueAt && !run.forced);
}

/** Whether enough due times right before were skipped for this reason. */
function isSkippedAgain(state: OracleState, scheduleId: number, reason: string): boolean {
  const count = reason === TOO_MANY_WAITING ? 1 : SKIPPED_ROWS_MAX;
  const newest = state.runs.filter((run) => run.scheduleId === scheduleId).slice(-count);
  return (
    newest.length === count &&
    newest.every((run) => run.status === "skipped" && run.reason === reason && !run.forced)
  );
}

/** Missed due times share one row. So do skipped ones, once many in a row were skipped for the same reason. */
function join(
  state: OracleState,
  { id }: OracleSchedule,
  given: NewRun & { status: "skipped" | "missed" },
): OracleRun | null {
  const last = state.runs.findLast((run) => run.scheduleId === id);
  if (last?.status !== given.status || last.forced || given.forced || last.dueAt >= given.firstDueAt)
    return null;
  if (given.status === "skipped" && !isSkippedAgain(state, id, given.reason)) return null;
  const isBetween = ({ dueAt }: OracleRun) => dueAt > last.dueAt && dueAt < given.firstDueAt;
  if (state.runs.some((run) => run.scheduleId === id && !run.forced && isBetween(run))) return null;
  last.dueAt = given.dueAt;
  last.moments += given.moments;
  last.reason = given.reason;
  last.completedAt = state.clock.now();
  if (given.status === "missed") notifyOfRun(state, "run.missed", last);
  return last;
}

export function addRun(state: OracleState, schedule: OracleSchedule, given: NewRun): OracleRun {
  const now = state.clock.now();
  const { dueAt, firstDueAt, moments, forced, status } = given;
  state.lastRunId += 1;
  const run: OracleRun = {
    id: state.lastRunId,
    tenant: schedule.tenant,
    scheduleId: schedule.id,
    agent: schedule.agent,
    taskId: given.status === "running" ? given.task.id : null,
    dueAt,
    firstDueAt,
    moments,
    forced,
    status,
    reason: "reason" in given ? given.reason : null,
    startedAt: status === "running" || status === "failed" ? now : null,
    completedAt: status === "running" ? null : now,
    requestId: "requestId" in given ? given.requestId : null,
    resultSummary: null,
    error: given.status === "failed" ? given.error : null,
    inputTokens: 0,
    outputTokens: 0,
    attempt: 0,
  };
  state.runs.push(run);
  return run;
}

function pause(
  state: OracleState,
  schedule: OracleSchedule,
  { pauses: reason, whileDisabled = false }: Fire & { pauses: string },
): void {
  pauseSchedule(state, schedule, reason);
  schedule.held = whileDisabled;
}

/** Completes a schedule that has used up its runs. Returns whether it did: a one-time schedule completes when its run ends. */
function completeIfSpent(state: OracleState, schedule: OracleSchedule): boolean {
  const { maxRuns, runCount, rule } = schedule;
  if (maxRuns === null || runCount < maxRuns) return false;
  schedule.nextFireAt = null;
  if (rule.kind === "once") return false;
  complete(state, schedule);
  return true;
}

function completeIfNeverDue(state: OracleState, schedule: OracleSchedule): void {
  const { rule, status, nextFireAt } = schedule;
  if (rule.kind !== "once" && status === "active" && nextFireAt === null) complete(state, schedule);
}

function complete(state: OracleState, schedule: OracleSchedule): void {
  if (schedule.status === "completed") return;
  schedule.status = "completed";
  schedule.held = false;
  schedule.pausedReason = null;
  schedule.updatedAt = state.clock.now();
}

/** A one-time schedule that missed its due time has failed. */
function failIfMissed(state: OracleState, schedule: OracleSchedule, last: NewRun | undefined): void {
  if (last?.status !== "missed" || schedule.rule.kind !== "once") return;
  schedule.lastStatus = "missed";
  schedule.lastError = last.reason;
  if (schedule.nextFireAt !== null || schedule.openRuns > 0) return;
  schedule.status = "failed";
  schedule.held = false;
  schedule.pausedReason = null;
  schedule.updatedAt = state.clock.now();
}
