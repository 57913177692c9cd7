import { SCHEDULE_DELETED } from "../../../model/schedule.ts";
import type {
  DeletedSchedule,
  DeleteScheduleParams,
  ListSchedulesParams,
  NewSchedule,
  ScheduleName,
  ScheduleRecord,
  ScheduleSelection,
  ScheduleStorage,
  UpdateScheduleParams,
} from "../../storage.ts";
import { tooManySchedules } from "../../too-many-schedules.ts";
import type { SqliteDatabase } from "../connection/database.ts";
import { Ledger } from "../counters/ledger.ts";
import { notifyOfSchedule } from "../log/notifications.ts";
import { tellOfCancelled } from "../tasks/cancel-tasks.ts";
import { preemptTasks } from "../tasks/preempt-tasks.ts";
import { settleMoves } from "../tasks/settle-moves.ts";
import { dueSchedules, nextDueAt } from "./due-schedules.ts";
import { cancelOpenRuns, fireSchedules } from "./fire-schedules.ts";
import { dueRows, rewindSchedule } from "./rewind-schedule.ts";
import { getRun, listRuns, pruneRuns } from "./runs.ts";
import { type ScheduleRow, toColumns, toScheduleRecord } from "./schedule-row.ts";

export function sqliteSchedules(db: SqliteDatabase): ScheduleStorage {
  return {
    create: (params) => durably(db, (now) => createSchedule(db, params, now)),
    get: (params) => db.read(() => findSchedule(db, params)),
    list: (params) => db.read(() => listSchedules(db, params)),
    count: (params) => db.read(() => countSelected(db, params)),
    page: (params) =>
      db.read(() =>
        db
          .prepare<ScheduleRow>(
            `select * from schedule indexed by schedule_by_tenant
              where tenant = @tenant and id > @after order by id limit +@limit`,
          )
          .all(params)
          .map(toScheduleRecord),
      ),
    update: (params) => durably(db, (now) => updateSchedule(db, params, now)),
    delete: (params) => durably(db, (now) => deleteSchedule(db, params, now)),
    status: ({ tenant }) => db.read(() => countSchedules(db, tenant)),
    due: (params) => db.read(() => dueSchedules(db, params)),
    nextDueAt: ({ tenant } = {}) => db.read(() => nextDueAt(db, tenant)),
    fire: ({ fires }) => durably(db, (now) => fireSchedules(db, fires, now)),
    dueRows: (params) => db.read(() => dueRows(db, params)),
    rewind: (params) => durably(db, (now) => rewindSchedule(db, params, now)),
    getRun: (params) => db.read(() => getRun(db, params)),
    listRuns: (params) => db.read(() => listRuns(db, params)),
    prune: (params) => durably(db, (now) => pruneRuns(db, params, now)),
  };
}

async function durably<Result>(db: SqliteDatabase, work: (now: number) => Result): Promise<Result> {
  const result = db.write(work);
  await db.durable();
  return result;
}

function findSchedule(db: SqliteDatabase, { tenant, id }: ScheduleName): ScheduleRecord | null {
  const row = db.prepare<ScheduleRow>("select * from schedule where tenant = ? and id = ?").get(tenant, id);
  return row === undefined ? null : toScheduleRecord(row);
}

function createSchedule(db: SqliteDatabase, params: NewSchedule, now: number): ScheduleRecord {
  const { tenant, definition, status, nextFireAt, source } = params;
  const made = db
    .prepare<ScheduleRow>("select * from schedule where tenant = ? and source = ?")
    .get(tenant, source);
  if (made !== undefined) return toScheduleRecord(made);
  checkRoom(db, params);
  const columns = {
    ...toColumns(definition),
    tenant,
    status,
    next_fire_at: nextFireAt,
    source,
    created_at: now,
    updated_at: now,
  };
  const names = Object.keys(columns);
  const row = db
    .prepare<ScheduleRow>(
      `insert into schedule (${names.join(", ")}) values (${names.map((name) => `@${name}`).join(", ")}) returning *`,
    )
    .get(columns) as ScheduleRow;
  db.signal({ kind: "schedules" });
  return toScheduleRecord(row);
}

/** Throws if a tenant has reached its limit of active and paused schedules. */
function checkRoom(
  db: SqliteDatabase,
  { tenant, maxSchedules = null }: Pick<NewSchedule, "tenant" | "maxSchedules">,
): void {
  if (maxSchedules === null) return;
  const count = db.prepare<{ n: number }>(
    `select count(*) as n from (
       select 1 from schedule indexed by schedule_by_status
        where tenant = @tenant and status in ('active', 'paused') limit +@maxSchedules)`,
  );
  if ((count.get({ tenant, maxSchedules })?.n ?? 0) >= maxSchedules) throw tooManySchedules(maxSchedules);
}

/** Each filter has its index, in the order of the list without `below`. */
function listSchedules(db: SqliteDatabase, params: ListSchedulesParams): ScheduleRecord[] {
  const selected = selection(params);
  // With `below`, SQLite sorts only the ids of one tenant, not whole rows.
  const statement =
    params.below === undefined
      ? `select * from ${selected} order by updated_at desc, id desc limit +@limit`
      : `select * from schedule
          where id in (select id from ${selected} and id < @below order by id desc limit +@limit) order by id desc`;
  return db.prepare<ScheduleRow>(statement).all(params).map(toScheduleRecord);
}

function countSelected(db: SqliteDatabase, params: ScheduleSelection): number {
  return db.prepare<{ n: number }>(`select count(*) as n from ${selection(params)}`).get(params)?.n ?? 0;
}

/** The table, the index and the condition for a selection. */
function selection({ status, agent }: ScheduleSelection): string {
  const conditions = ["tenant = @tenant"];
  if (status !== undefined) conditions.push("status = @status");
  if (agent !== undefined) conditions.push("agent = @agent");
  const index =
    agent !== undefined
      ? "schedule_by_agent"
      : status !== undefined
        ? "schedule_by_status"
        : "schedule_by_update";
  return `schedule indexed by ${index} where ${conditions.join(" and ")}`;
}

function updateSchedule(
  db: SqliteDatabase,
  params: UpdateScheduleParams,
  now: number,
): ScheduleRecord | null {
  const { tenant, id, revision, changes, pauseReason, unlessDue = false } = params;
  const schedule = findSchedule(db, { tenant, id });
  if (schedule?.revision !== revision) return null;
  if (unlessDue && schedule.nextFireAt !== null && schedule.nextFireAt <= now) return null;
  const changed = { ...schedule, ...changes };
  if (isOver(schedule) && !isOver(changed)) checkRoom(db, params);
  const columns = {
    ...toColumns(changed),
    status: changed.status,
    next_fire_at: changed.status === "active" ? changed.nextFireAt : null,
    held: schedule.held && changes.status === undefined ? 1 : 0,
    paused_reason: pausedReason(schedule, changes.status, pauseReason),
    consecutive_failures: changes.status === "active" ? 0 : schedule.consecutiveFailures,
    updated_at: now,
    revision: revision + 1,
  };
  const row = db
    .prepare<ScheduleRow>(
      `update schedule set ${Object.keys(columns)
        .map((name) => `${name} = @${name}`)
        .join(", ")} where id = @id returning *`,
    )
    .get({ ...columns, id }) as ScheduleRow;
  if (row.status === "paused" && schedule.status !== "paused")
    notifyOfSchedule(db, "schedule.paused", row, { reason: pauseReason ?? null, now });
  db.signal({ kind: "schedules" });
  return toScheduleRecord(row);
}

function isOver({ status }: Pick<ScheduleRecord, "status">): boolean {
  return status === "completed" || status === "failed";
}

/** A caller that sets the status also sets the reason; without one, the owner wanted the pause. */
function pausedReason(
  before: ScheduleRecord,
  status: UpdateScheduleParams["changes"]["status"],
  reason: string | undefined,
): string | null {
  if (status === undefined) return before.pausedReason;
  return status === "paused" ? (reason ?? null) : null;
}

function deleteSchedule(
  db: SqliteDatabase,
  params: DeleteScheduleParams,
  now: number,
): DeletedSchedule | null {
  const schedule = findSchedule(db, params);
  if (schedule === null) return null;
  const ledger = new Ledger(db);
  const cancelled = cancelOpenRuns(db, ledger, schedule.id, {
    error: SCHEDULE_DELETED,
    now,
    sparesRunning: params.sparesRunning,
  });
  const more = params.limit !== undefined && deleteOldRuns(db, schedule.id, params.limit) === params.limit;
  if (more) restUntilDeleted(db, schedule.id);
  else {
    removeSchedule(db, schedule.id);
    notifyOfSchedule(db, "schedule.canceled", schedule, { reason: null, now });
  }
  settleMoves(db, ledger, now);
  preemptTasks(db, ledger, now);
  ledger.save();
  tellOfCancelled(db, cancelled);
  return { cancelled, more };
}

/** Deletes a slice of the runs of a schedule that are over. Returns how many. */
function deleteOldRuns(db: SqliteDatabase, schedule: number, limit: number): number {
  return db
    .prepare(
      `delete from run where id in (
         select id from run indexed by run_by_schedule where schedule = ? and status <> 'running' order by id limit +?)`,
    )
    .run(schedule, limit).changes;
}

/**
 * Pauses a schedule while the rest of its runs is deleted, so that it never fires again, even if no call finishes the deletion.
 */
function restUntilDeleted(db: SqliteDatabase, id: number): void {
  db.prepare(
    `update schedule set status = 'paused', next_fire_at = null, paused_reason = ?, revision = revision + 1
      where id = ? and status = 'active'`,
  ).run(SCHEDULE_DELETED, id);
}

/** Deletes a schedule with all its runs. */
export function removeSchedule(db: SqliteDatabase, id: number): void {
  db.prepare("delete from run where schedule = ?").run(id);
  db.prepare("delete from schedule where id = ?").run(id);
}

function countSchedules(db: SqliteDatabase, tenant: string) {
  const row = db
    .prepare<{ active: number; paused: number; running: number; nextFireAt: number | null }>(
      `select (select count(*) from schedule where tenant = @tenant and status = 'active') as active,
              (select count(*) from schedule where tenant = @tenant and status = 'paused') as paused,
              (select coalesce(sum(open_runs), 0) from schedule where tenant = @tenant and open_runs > 0) as running,
              (select min(next_fire_at) from schedule where tenant = @tenant and next_fire_at is not null)
                as nextFireAt`,
    )
    .get({ tenant });
  return row ?? { active: 0, paused: 0, running: 0, nextFireAt: null };
}
