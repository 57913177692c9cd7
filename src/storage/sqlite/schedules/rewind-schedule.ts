import type { DueRow, RewindParams, ScheduleName } from "../../storage.ts";
import type { SqliteDatabase } from "../connection/database.ts";
import type { Transaction } from "../connection/transaction.ts";
import { notifyOfRun } from "../log/steps/notify.ts";
import type { ScheduleRow } from "./schedule-row.ts";
import { addRun } from "./steps/write-run.ts";

export function dueRows(
  db: SqliteDatabase,
  { tenant, id, after, limit }: ScheduleName & { after: number; limit: number },
): DueRow[] {
  return db
    .prepare<Omit<DueRow, "started"> & { started: 0 | 1 }>(
      `select id as runId, first_due_at as firstDueAt, due_at as dueAt, moments, started_at is not null as started
         from run indexed by run_of_moment
        where schedule = @id and due_at > @after and forced = 0 and tenant = @tenant order by due_at limit +@limit`,
    )
    .all({ tenant, id, after, limit })
    .map((row) => ({ ...row, started: row.started === 1 }));
}

/** Reverts rows of due times that are in the future. */
export function rewindSchedule(db: SqliteDatabase, params: RewindParams): Promise<boolean> {
  return db.transactDurably((tx) => rewind(tx, params));
}

function rewind(tx: Transaction, params: RewindParams): boolean {
  const { now } = tx;
  const { tenant, id, revision, rows, missed, nextFireAt, reopens } = params;
  const schedule = tx
    .prepare<ScheduleRow>("select * from schedule where tenant = ? and id = ? and revision = ?")
    .get(tenant, id, revision);
  if (schedule === undefined) return false;
  const isAhead = tx.prepare("select 1 from run where id = ? and schedule = ? and forced = 0 and due_at > ?");
  if (rows.some(({ runId }) => isAhead.get(runId, id, now) === undefined)) return false;
  // Deletes first: a row that stays may get the due time of a deleted one.
  for (const { runId, moments } of rows)
    if (moments === 0) tx.prepare("delete from run where id = ?").run(runId);
  for (const { runId, firstDueAt, dueAt, moments } of rows) {
    if (moments === 0) continue;
    tx.prepare("update run set first_due_at = ?, due_at = ?, moments = ? where id = ?").run(
      firstDueAt,
      dueAt,
      moments,
      runId,
    );
  }
  for (const times of missed) {
    const run = addRun(tx, schedule, { ...times, forced: false, status: "missed" });
    notifyOfRun(tx, "run.missed", run);
  }
  if (reopens) {
    tx.prepare(
      `update schedule set status = 'active', updated_at = ?, last_error = iif(last_status = 'missed', null, last_error),
                           last_status = iif(last_status = 'missed', null, last_status)
        where id = ?`,
    ).run(now, id);
  }
  tx.prepare(
    `update schedule set next_fire_at = iif(status = 'active', @nextFireAt, null), revision = revision + 1,
                         last_due_at = (select max(due_at) from run where schedule = @id and forced = 0)
      where id = @id`,
  ).run({ id, nextFireAt });
  tx.signal("schedules");
  return true;
}
