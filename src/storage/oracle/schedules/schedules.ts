import { SCHEDULE_DELETED, type ScheduleStatus } from "../../../model/schedule.ts";
import { largeBytesOf, withLazyJson } from "../../lazy-json.ts";
import {
  type DeletedSchedule,
  type DeleteScheduleParams,
  type ListSchedulesParams,
  type MakerLimit,
  type NewSchedule,
  OLDEST_NAMED,
  SCHEDULE_PAGE_BYTES,
  type ScheduleCounts,
  type ScheduleName,
  type ScheduleRecord,
  type ScheduleSelection,
  type UpdateScheduleParams,
} from "../../storage.ts";
import { tooManyOfMaker } from "../../too-many-of-maker.ts";
import { tooManySchedules } from "../../too-many-schedules.ts";
import { notifyOfSchedule } from "../log/notifications.ts";
import { copyJson, type OracleSchedule, type OracleState, scheduleOf, signal } from "../state.ts";
import { cancelThese } from "../tasks/cancel-tasks.ts";
import { openTasksOfRuns, removeSchedule } from "./runs.ts";

export function createSchedule(state: OracleState, params: NewSchedule): ScheduleRecord {
  const { tenant, definition, status, nextFireAt, source, provenance = null } = params;
  const made = state.schedules.find(
    (schedule) => source !== null && schedule.source === source && schedule.tenant === tenant,
  );
  if (made !== undefined) return toScheduleRecord(made);
  checkRoom(state, params);
  state.lastScheduleId += 1;
  const now = state.clock.now();
  const schedule: OracleSchedule = {
    ...copyJson(definition),
    id: state.lastScheduleId,
    tenant,
    source,
    status,
    nextFireAt,
    revision: 1,
    createdAt: now,
    updatedAt: now,
    lastDueAt: null,
    lastRunAt: null,
    lastRunId: null,
    runCount: 0,
    lastStatus: null,
    lastError: null,
    consecutiveFailures: 0,
    pausedReason: null,
    openRuns: 0,
    held: false,
    provenance: copyJson(provenance),
  };
  state.schedules.push(schedule);
  signal(state, { kind: "schedules" });
  return toScheduleRecord(schedule);
}

function checkRoom(
  state: OracleState,
  { tenant, maxSchedules = null, ofMaker }: Pick<NewSchedule, "tenant" | "maxSchedules" | "ofMaker">,
): void {
  const own = ofMaker === undefined ? [] : schedulesOfMaker(state, tenant, ofMaker);
  if (ofMaker !== undefined && own.length >= ofMaker.max)
    throw tooManyOfMaker(ofMaker, own.slice(0, OLDEST_NAMED));
  const { active, paused } = countSchedules(state, { tenant });
  if (maxSchedules !== null && active + paused >= maxSchedules) throw tooManySchedules(maxSchedules);
}

export function ofMaker(
  state: OracleState,
  { tenant, limit }: { tenant: string; limit: MakerLimit },
): number[] {
  return schedulesOfMaker(state, tenant, limit).slice(0, limit.max);
}

/** The ids of the active and paused schedules that a limit counts, the oldest first. */
function schedulesOfMaker(state: OracleState, tenant: string, { by, id }: MakerLimit): number[] {
  return state.schedules
    .filter((schedule) => schedule.tenant === tenant && !isOver(schedule.status))
    .filter(({ provenance }) => {
      if (by === "tenant") return true;
      return provenance?.createdBy[by === "key" ? "keyId" : "agentId"] === id;
    })
    .map((schedule) => schedule.id);
}

export function pauseOfKey(
  state: OracleState,
  params: { tenant: string; key: string; reason: string; limit: number },
): { paused: number; more: boolean } {
  const { tenant, key, reason, limit } = params;
  const found = state.schedules.filter(
    (schedule) =>
      schedule.tenant === tenant &&
      schedule.status === "active" &&
      schedule.provenance?.createdBy.keyId === key,
  );
  for (const { id, revision } of found.slice(0, limit)) {
    const changes = { status: "paused" } as const;
    updateSchedule(state, { tenant, id, revision, changes, pauseReason: reason });
  }
  return { paused: Math.min(found.length, limit), more: found.length >= limit };
}

export function getSchedule(state: OracleState, params: ScheduleName): ScheduleRecord | null {
  const schedule = scheduleOf(state, params);
  return schedule === undefined ? null : toScheduleRecord(schedule);
}

export function listSchedules(
  state: OracleState,
  { limit, below, bytesMax = Number.POSITIVE_INFINITY, ...selection }: ListSchedulesParams,
): ScheduleRecord[] {
  const records = select(state, selection)
    .filter(({ id }) => below === undefined || id < below)
    .sort((a, b) => (below === undefined ? b.updatedAt - a.updatedAt : 0) || b.id - a.id)
    .slice(0, limit)
    .map(toScheduleRecord);
  return upToBytes(records, bytesMax);
}

export function countSelected(state: OracleState, selection: ScheduleSelection): number {
  return select(state, selection).length;
}

function select(state: OracleState, { tenant, status, agent }: ScheduleSelection): OracleSchedule[] {
  return state.schedules
    .filter((schedule) => schedule.tenant === tenant)
    .filter((schedule) => status === undefined || schedule.status === status)
    .filter((schedule) => agent === undefined || schedule.agent === agent);
}

export function pageOfSchedules(
  state: OracleState,
  { tenant, after, limit }: { tenant: string; after: number; limit: number },
): ScheduleRecord[] {
  const records = state.schedules
    .filter((schedule) => schedule.tenant === tenant && schedule.id > after)
    .slice(0, limit)
    .map(toScheduleRecord);
  return upToBytes(records, SCHEDULE_PAGE_BYTES);
}

export function sizeOfSchedule(state: OracleState, name: ScheduleName): number | null {
  const schedule = scheduleOf(state, name);
  return schedule === undefined
    ? null
    : Buffer.byteLength(JSON.stringify([schedule.work, schedule.metadata]));
}

/** The first schedules, up to the one with which their large fields take more than `bytesMax`. */
function upToBytes(records: readonly ScheduleRecord[], bytesMax: number): ScheduleRecord[] {
  let bytes = 0;
  return records.filter((record) => {
    const isFull = bytes > bytesMax;
    bytes += largeBytesOf(record);
    return !isFull;
  });
}

export function updateSchedule(state: OracleState, params: UpdateScheduleParams): ScheduleRecord | null {
  const schedule = scheduleOf(state, params);
  if (schedule?.revision !== params.revision) return null;
  const isDue = schedule.nextFireAt !== null && schedule.nextFireAt <= state.clock.now();
  if (params.unlessDue === true && isDue) return null;
  const wasPaused = schedule.status === "paused";
  if (isOver(schedule.status) && !isOver(params.changes.status ?? schedule.status)) checkRoom(state, params);
  Object.assign(schedule, copyJson(params.changes));
  if (schedule.status !== "active") schedule.nextFireAt = null;
  if (params.changes.status !== undefined) {
    schedule.held = false;
    schedule.pausedReason = params.changes.status === "paused" ? (params.pauseReason ?? null) : null;
  }
  if (params.changes.status === "active") schedule.consecutiveFailures = 0;
  schedule.revision += 1;
  schedule.updatedAt = state.clock.now();
  if (schedule.status === "paused" && !wasPaused) {
    notifyOfSchedule(state, "schedule.paused", schedule, params.pauseReason ?? null);
  }
  signal(state, { kind: "schedules" });
  return toScheduleRecord(schedule);
}

function isOver(status: ScheduleStatus): boolean {
  return status === "completed" || status === "failed";
}

export function deleteSchedule(state: OracleState, params: DeleteScheduleParams): DeletedSchedule | null {
  const schedule = scheduleOf(state, params);
  if (schedule === undefined) return null;
  const open = openTasksOfRuns(state, schedule).filter(({ held }) => !params.sparesRunning || held === null);
  const cancelled = cancelThese(state, open, SCHEDULE_DELETED);
  const over = state.runs.filter((run) => run.scheduleId === schedule.id && run.status !== "running");
  const { limit = Number.POSITIVE_INFINITY } = params;
  if (over.length < limit) {
    removeSchedule(state, schedule);
    notifyOfSchedule(state, "schedule.canceled", schedule, null);
    return { cancelled, more: false };
  }
  const gone = new Set(over.sort((a, b) => a.id - b.id).slice(0, limit));
  state.runs = state.runs.filter((run) => !gone.has(run));
  if (schedule.status === "active") {
    Object.assign(schedule, { status: "paused", nextFireAt: null, pausedReason: SCHEDULE_DELETED });
    schedule.revision += 1;
  }
  return { cancelled, more: true };
}

export function countSchedules(state: OracleState, { tenant }: { tenant: string }): ScheduleCounts {
  const own = state.schedules.filter((schedule) => schedule.tenant === tenant);
  return {
    active: own.filter(({ status }) => status === "active").length,
    paused: own.filter(({ status }) => status === "paused").length,
    running: own.reduce((sum, { openRuns }) => sum + openRuns, 0),
    nextFireAt: earliest(own),
  };
}

export function toScheduleRecord(schedule: OracleSchedule): ScheduleRecord {
  const { source: _source, work, metadata, ...record } = schedule;
  return withLazyJson<ScheduleRecord, "work" | "metadata">(copyJson(record), {
    work: JSON.stringify(work),
    metadata: metadata === null ? null : JSON.stringify(metadata),
  });
}

export function earliest(schedules: readonly OracleSchedule[]): number | null {
  const moments = schedules.flatMap(({ nextFireAt }) => nextFireAt ?? []);
  return moments.length === 0 ? null : Math.min(...moments);
}
