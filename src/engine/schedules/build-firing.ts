import { errorText } from "../../attempts/attempt-error.ts";
import { WAITING_RUNS_MAX } from "../../model/run.ts";
import { openSpans, type TakenTimes } from "../../schedules/open-spans.ts";
import { type PlannedMoments, type PlannedRun, planFire, upTo } from "../../schedules/plan-fire.ts";
import { deferWhileDisabled, resumeAfterEnable, type Standstill } from "../../schedules/stand-still.ts";
import type { Fire, NewRun, NewTask, ScheduleRecord } from "../../storage/storage.ts";

export interface FireParts {
  readonly now: number;
  /** Whether the agent of the schedule does not exist. */
  readonly isOrphan: boolean;
  /** Whether its tenant has used up its storage quota. Left out: no. */
  readonly isFull?: boolean;
  readonly newTask: (schedule: ScheduleRecord, params: { inTurn: boolean; requestId: string }) => NewTask;
  readonly newRequestId: () => string;
}

/** Builds the runs for the due times of a schedule that have come. */
export function fireDue(schedule: DueRecord, parts: FireParts): Fire {
  const planned = planFire(schedule, parts.now);
  const plan = parts.isFull ? { ...planned, runs: planned.runs.map(withoutRoom) } : planned;
  const start = parts.isOrphan ? plan.runs.findIndex(({ status }) => status === "running") : -1;
  if (start === -1) {
    const runs = plan.runs.map((run) => toNewRun(schedule, run, parts));
    return { ...nameOf(schedule), runs, nextFireAt: plan.nextFireAt, pauses: null };
  }
  // The first run that cannot start also covers the due times after it.
  const before = plan.runs.slice(0, start).map((run) => toNewRun(schedule, run, parts));
  const error = orphanError(schedule);
  return pausing(schedule, [...before, failedRun(joined(plan.runs.slice(start)), error, parts)], error);
}

/** The tenant has no room for the task. The storage joins consecutive missed due times in one row, which takes no room either. */
function withoutRoom({ firstDueAt, dueAt, moments, ...run }: PlannedRun): PlannedRun {
  const common = { firstDueAt, dueAt, moments };
  return run.status === "running" ? { ...common, status: "missed", reason: NO_ROOM } : { ...common, ...run };
}

export type DueRecord = ScheduleRecord & {
  readonly nextFireAt: number;
  /** Due times from `nextFireAt` on that have started a run already. */
  readonly taken?: TakenTimes;
};

export function isDue(schedule: ScheduleRecord, now: number): schedule is DueRecord {
  return schedule.nextFireAt !== null && schedule.nextFireAt <= now;
}

/** A run that a caller requested, due or not. Null: with overlap `skip`, an earlier run has not ended yet. */
export function fireForced(schedule: ScheduleRecord, parts: FireParts): Fire | null {
  const { overlap, openRuns, nextFireAt } = schedule;
  if (overlap === "skip" && openRuns > 0) return null;
  const now = { dueAt: parts.now, firstDueAt: parts.now, moments: 1 };
  if (!parts.isOrphan) {
    const run = { ...now, status: "running", replaces: overlap === "replace", inTurn: false } as const;
    const runs = [{ ...toNewRun(schedule, run, parts), forced: true }];
    return { ...nameOf(schedule), runs, nextFireAt, pauses: null };
  }
  const error = orphanError(schedule);
  const runs = [{ ...failedRun(now, error, parts), forced: true }];
  // Only an active schedule needs to be paused: others do not fire by themselves.
  if (schedule.status === "active") return pausing(schedule, runs, error);
  return { ...nameOf(schedule), runs, nextFireAt, pauses: null };
}

/** A schedule whose due times cannot be computed would stay due for ever. It is paused, and a failed run gives the reason. */
export function fireBroken(
  schedule: DueRecord,
  cause: unknown,
  parts: Pick<FireParts, "newRequestId">,
): Fire {
  const { nextFireAt: dueAt } = schedule;
  const error = `it could not be worked out when it is due: ${errorText(cause)}`;
  return pausing(schedule, [failedRun({ dueAt, firstDueAt: dueAt, moments: 1 }, error, parts)], error);
}

/** Like `fireDue` while its tenant is disabled: nothing fires. A one-time schedule is held until the tenant is enabled. */
export function fireDisabled(schedule: DueRecord, now: number): Fire {
  const fire =
    schedule.rule.kind === "once"
      ? pausing(schedule, [], TENANT_DISABLED)
      : schedule.taken === undefined
        ? standing(schedule, deferWhileDisabled(schedule, now))
        : standingBetween(schedule, now);
  return { ...fire, whileDisabled: true };
}

/** The changes to write when its tenant is enabled again; null: none. */
export function fireEnabled(schedule: ScheduleRecord, now: number): Fire | null {
  const { nextFireAt, rule } = schedule;
  if (nextFireAt === null || rule.kind === "once") return null;
  const going = resumeAfterEnable({ ...schedule, nextFireAt }, now);
  return going === null ? null : standing(schedule, going);
}

function standing(schedule: ScheduleRecord, { skipped, nextFireAt }: Standstill): Fire {
  return skipping(schedule, skipped === null ? [] : [skipped], nextFireAt);
}

/**
 * After the clock was set back, the schedule is not deferred by an hour: it would not be clear which due times between earlier
 * runs are still open.
 */
function standingBetween(schedule: DueRecord, now: number): Fire {
  const { spans, nextFireAt } = openSpans(schedule, now);
  const skipped = spans.map(({ first, until }) => upTo({ ...schedule, nextFireAt: first }, until));
  return skipping(schedule, skipped, nextFireAt);
}

function skipping(
  schedule: ScheduleRecord,
  skipped: readonly PlannedMoments[],
  nextFireAt: number | null,
): Fire {
  const run = { forced: false, status: "skipped", reason: TENANT_DISABLED } as const;
  const runs = skipped.map((moments) => ({ ...moments, ...run }));
  return { ...nameOf(schedule), runs, nextFireAt, pauses: null };
}

function toNewRun(schedule: ScheduleRecord, run: PlannedRun, parts: FireParts): NewRun {
  const { firstDueAt, dueAt, moments } = run;
  const common = { firstDueAt, dueAt, moments, forced: false };
  if (run.status !== "running") return { ...common, status: run.status, reason: run.reason };
  const { inTurn, replaces } = run;
  const requestId = parts.newRequestId();
  const task = parts.newTask(schedule, { inTurn, requestId });
  return { ...common, status: "running", requestId, task, replaces };
}

function failedRun(
  moments: PlannedMoments,
  error: string,
  { newRequestId }: Pick<FireParts, "newRequestId">,
): NewRun {
  return { ...moments, forced: false, status: "failed", requestId: newRequestId(), error };
}

function joined(runs: readonly PlannedRun[]): PlannedMoments {
  return {
    firstDueAt: runs.at(0)?.firstDueAt as number,
    dueAt: runs.at(-1)?.dueAt as number,
    moments: runs.reduce((sum, { moments }) => sum + moments, 0),
  };
}

function pausing(schedule: ScheduleRecord, runs: readonly NewRun[], reason: string): Fire {
  return { ...nameOf(schedule), runs, nextFireAt: null, pauses: reason };
}

function nameOf({
  tenant,
  id,
  revision,
}: ScheduleRecord): Pick<Fire, "tenant" | "id" | "revision" | "waitingMax"> {
  return { tenant, id, revision, waitingMax: WAITING_RUNS_MAX };
}

/** The reason in the rows of due times that did not fire because the tenant is disabled, and in the notification of a pause. */
const TENANT_DISABLED = "tenant disabled";

/** The reason when the tenant stores too much. */
const NO_ROOM = "quota exceeded: the tenant stores as much as its `maxStoredBytes` allows";

function orphanError({ agent }: ScheduleRecord): string {
  return `agent "${agent}" not found`;
}
