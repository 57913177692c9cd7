import { SCHEDULE_DELETED } from "../../../model/schedule.ts";
import { largeBytesOf } from "../../lazy-json.ts";
import {
  type DeletedSchedule,
  type DeleteScheduleParams,
  type ListSchedulesParams,
  type MakerLimit,
  type NewSchedule,
  OLDEST_NAMED,
  SCHEDULE_PAGE_BYTES,
  type ScheduleName,
  type ScheduleRecord,
  type ScheduleSelection,
  type ScheduleStorage,
  type UpdateScheduleParams,
} from "../../storage.ts";
import { tooManyOfMaker } from "../../too-many-of-maker.ts";
import { tooManySchedules } from "../../too-many-schedules.ts";
import type { SqliteDatabase } from "../connection/database.ts";
import type { Transaction } from "../connection/transaction.ts";
import { notifyOfSchedule } from "../log/steps/notify.ts";
import { signalCancelled } from "../tasks/steps/cancel-all.ts";
import { dueSchedules, nextDueAt } from "./due-schedules.ts";
import { fireSchedules } from "./fire-schedules.ts";
import { dueRows, rewindSchedule } from "./rewind-schedule.ts";
import { getRun, listRuns, pruneRuns } from "./runs.ts";
import {
  SCHEDULE_BYTES,
  type ScheduleRow,
  toColumns,
  toMakerColumns,
  toScheduleRecord,
} from "./schedule-row.ts";
import { removeSchedule } from "./steps/remove-schedule.ts";
import { cancelOpenRuns } from "./steps/write-run.ts";

export function sqliteSchedules(db: SqliteDatabase): ScheduleStorage {
  return {
    create: (params) => db.transactDurably((tx) => createSchedule(tx, params)),
    get: (params) => db.read(() => findSchedule(db, params)),
    size: (params) => db.read(() => sizeOf(db, params)),
    list: (params) => db.read(() => listSchedules(db, params)),
    count: (params) => db.read(() => countSelected(db, params)),
    page: (params) =>
      db.read(() =>
        upToBytes(
          db
            .prepare<ScheduleRow>(
              `select * from schedule indexed by schedule_by_tenant
                where tenant = @tenant and id > @after order by id limit +@limit`,
            )
            .iterate(params),
          SCHEDULE_PAGE_BYTES,
        ),
      ),
    update: (params) => db.transactDurably((tx) => updateSchedule(tx, params)),
    delete: (params) => db.transactDurably((tx) => deleteSchedule(tx, params)),
    pauseOfKey: (params) => db.transactDurably((tx) => pauseOfKey(tx, params)),
    ofMaker: ({ tenant, limit }) => db.read(() => ofMaker(db, tenant, limit)),
    status: ({ tenant }) => db.read(() => countSchedules(db, tenant)),
    due: (params) => db.read(() => dueSchedules(db, params)),
    nextDueAt: ({ tenant } = {}) => db.read(() => nextDueAt(db, tenant)),
    fire: (params) => fireSchedules(db, params),
    dueRows: (params) => db.read(() => dueRows(db, params)),
    rewind: (params) => rewindSchedule(db, params),
    getRun: (params) => db.read(() => getRun(db, params)),
    listRuns: (params) => db.read(() => listRuns(db, params)),
    prune: (params) => pruneRuns(db, params),
  };
}

function findSchedule(db: SqliteDatabase, { tenant, id }: ScheduleName): ScheduleRecord | null {
  const row = db.prepare<ScheduleRow>("select * from schedule where tenant = ? and id = ?").get(tenant, id);
  return row === undefined ? null : toScheduleRecord(row);
}

function sizeOf(db: SqliteDatabase, { tenant, id }: ScheduleName): number | null {
  const row = db
    .prepare<{ bytes: number }>(`select ${SCHEDULE_BYTES} as bytes from schedule where tenant = ? and id = ?`)
    .get(tenant, id);
  return row?.bytes ?? null;
}

function createSchedule(tx: Transaction, params: NewSchedule): ScheduleRecord {
  const { now } = tx;
  const { tenant, definition, status, nextFireAt, source, provenance } = params;
  const made = tx
    .prepare<ScheduleRow>("select * from schedule where tenant = ? and source = ?")
    .get(tenant, source);
  if (made !== undefined) return toScheduleRecord(made);
  checkRoom(tx.db, params);
  const columns = {
    ...toColumns(definition),
    ...toMakerColumns(provenance),
    tenant,
    status,
    next_fire_at: nextFireAt,
    source,
    created_at: now,
    updated_at: now,
  };
  const names = Object.keys(columns);
  const row = tx
    .prepare<ScheduleRow>(
      `insert into schedule (${names.join(", ")}) values (${names.map((name) => `@${name}`).join(", ")}) returning *`,
    )
    .get(columns) as ScheduleRow;
  tx.signal("schedules");
  return toScheduleRecord(row);
}

/** Throws if a tenant has reached its limit of active and paused schedules. */
function checkRoom(
  db: SqliteDatabase,
  { tenant, maxSchedules = null, ofMaker }: Pick<NewSchedule, "tenant" | "maxSchedules" | "ofMaker">,
): void {
  if (ofMaker !== undefined) checkRoomOfMaker(db, tenant, ofMaker);
  if (maxSchedules === null) return;
  const count = db.prepare<{ n: number }>(
    `select count(*) as n from (
       select 1 from schedule indexed by schedule_by_status
        where tenant = @tenant and status in ('active', 'paused') limit +@maxSchedules)`,
  );
  if ((count.get({ tenant, maxSchedules })?.n ?? 0) >= maxSchedules) throw tooManySchedules(maxSchedules);
}

const MAKER_INDEX = {
  key: "schedule_by_maker_key where tenant = @tenant and maker_key = @id",
  agent: "schedule_by_maker_agent where tenant = @tenant and maker_agent = @id",
  tenant: "schedule_by_status where tenant = @tenant",
} as const;

function checkRoomOfMaker(db: SqliteDatabase, tenant: string, limit: MakerLimit): void {
  const found = ofMaker(db, tenant, limit);
  if (found.length >= limit.max) throw tooManyOfMaker(limit, found.slice(0, OLDEST_NAMED));
}

/** The ids of the oldest `max` that a limit counts. */
function ofMaker(db: SqliteDatabase, tenant: string, { by, id, max }: MakerLimit): number[] {
  return db
    .prepare<{ id: number }>(
      `select id from schedule indexed by ${MAKER_INDEX[by]} and status in ('active', 'paused') order by id limit +@max`,
    )
    .all({ tenant, id, max })
    .map((row) => row.id);
}

function pauseOfKey(
  tx: Transaction,
  { tenant, key, reason, limit }: { tenant: string; key: string; reason: string; limit: number },
): { paused: number; more: boolean } {
  const found = tx
    .prepare<{ id: number; revision: number }>(
      `select id, revision from schedule indexed by schedule_by_maker_key
        where tenant = @tenant and maker_key = @key and status = 'active' order by id limit +@limit`,
    )
    .all({ tenant, key, limit });
  for (const { id, revision } of found) {
    const changes = { status: "paused" } as const;
    updateSchedule(tx, { tenant, id, revision, changes, pauseReason: reason });
  }
  return { paused: found.length, more: found.length === limit };
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
  const rows = db.prepare<ScheduleRow>(statement).iterate(params);
  return upToBytes(rows, params.bytesMax ?? Number.POSITIVE_INFINITY);
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

function updateSchedule(tx: Transaction, params: UpdateScheduleParams): ScheduleRecord | null {
  const { now } = tx;
  const { tenant, id, revision, changes, pauseReason, unlessDue = false } = params;
  const schedule = findSchedule(tx.db, { tenant, id });
  if (schedule?.revision !== revision) return null;
  if (unlessDue && schedule.nextFireAt !== null && schedule.nextFireAt <= now) return null;
  const changed = { ...schedule, ...changes };
  if (isOver(schedule) && !isOver(changed)) checkRoom(tx.db, params);
  const columns = {
    ...toColumns(changed),
    ...(changes.provenance === undefined ? {} : { provenance: JSON.stringify(changes.provenance) }),
    status: changed.status,
    next_fire_at: changed.status === "active" ? changed.nextFireAt : null,
    held: schedule.held && changes.status === undefined ? 1 : 0,
    paused_reason: pausedReason(schedule, changes.status, pauseReason),
    consecutive_failures: changes.status === "active" ? 0 : schedule.consecutiveFailures,
    updated_at: now,
    revision: revision + 1,
  };
  const row = tx
    .prepare<ScheduleRow>(
      `update schedule set ${Object.keys(columns)
        .map((name) => `${name} = @${name}`)
        .join(", ")} where id = @id returning *`,
    )
    .get({ ...columns, id }) as ScheduleRow;
  if (row.status === "paused" && schedule.status !== "paused")
    notifyOfSchedule(tx, "schedule.paused", { ...row, reason: pauseReason ?? null });
  tx.signal("schedules");
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

function deleteSchedule(tx: Transaction, params: DeleteScheduleParams): DeletedSchedule | null {
  const schedule = findSchedule(tx.db, params);
  if (schedule === null) return null;
  const cancelled = cancelOpenRuns(tx, schedule.id, {
    error: SCHEDULE_DELETED,
    sparesRunning: params.sparesRunning,
  });
  const more = params.limit !== undefined && deleteOldRuns(tx, schedule.id, params.limit) === params.limit;
  if (more) restUntilDeleted(tx, schedule.id);
  else {
    removeSchedule(tx, schedule.id);
    notifyOfSchedule(tx, "schedule.canceled", { ...schedule, reason: null });
  }
  signalCancelled(tx, cancelled);
  return { cancelled, more };
}

/** Deletes a slice of the runs of a schedule that are over. Returns how many. */
function deleteOldRuns(tx: Transaction, schedule: number, limit: number): number {
  return tx
    .prepare(
      `delete from run where id in (
         select id from run indexed by run_by_schedule where schedule = ? and status <> 'running' order by id limit +?)`,
    )
    .run(schedule, limit).changes;
}

/**
 * Pauses a schedule while the rest of its runs is deleted, so that it never fires again, even if no call finishes the deletion.
 */
function restUntilDeleted(tx: Transaction, id: number): void {
  tx.prepare(
    `update schedule set status = 'paused', next_fire_at = null, paused_reason = ?, revision = revision + 1
      where id = ? and status = 'active'`,
  ).run(SCHEDULE_DELETED, id);
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

/** The first schedules, up to the one with which their large fields take more than `bytesMax`. */
function upToBytes(rows: Iterable<ScheduleRow>, bytesMax: number): ScheduleRecord[] {
  const records: ScheduleRecord[] = [];
  let bytes = 0;
  for (const row of rows) {
    const record = toScheduleRecord(row);
    records.push(record);
    bytes += largeBytesOf(record);
    if (bytes > bytesMax) break;
  }
  return records;
}
