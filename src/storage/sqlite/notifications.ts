import type { NotificationKind } from "../../model/schedule.ts";
import type { NotificationStorage, NotifiedRun, StoredNotification } from "../storage.ts";
import type { SqliteDatabase } from "./database.ts";
import type { RunRow } from "./runs.ts";

export function sqliteNotifications(db: SqliteDatabase): NotificationStorage {
  return {
    async read({ after, limit }) {
      const rows = await db.read(() =>
        db
          .prepare<NotificationRow>("select * from notification where seq > ? order by seq limit +?")
          .all(after, limit + 1),
      );
      return { notifications: rows.slice(0, limit).map(toNotification), more: rows.length > limit };
    },
    async range() {
      const row = await db.read(() =>
        db
          .prepare<{ oldest: number | null; newest: number | null }>(
            `select (select min(seq) from notification) as oldest,
                    (select seq from sqlite_sequence where name = 'notification') as newest`,
          )
          .get(),
      );
      const newest = row?.newest ?? 0;
      return { oldest: row?.oldest ?? newest + 1, newest };
    },
  };
}

interface NotificationRow {
  readonly seq: number;
  readonly at: number;
  readonly tenant: string;
  readonly kind: NotificationKind;
  readonly schedule: number;
  readonly agent: string;
  readonly run: string | null;
  readonly reason: string | null;
}

function toNotification({ schedule: scheduleId, run, ...row }: NotificationRow): StoredNotification {
  return { ...row, scheduleId, run: run === null ? null : JSON.parse(run) };
}

/** Tells of a schedule, inside a transaction. */
export function notifyOfSchedule(
  db: SqliteDatabase,
  kind: NotificationKind,
  { tenant, id, agent }: { readonly tenant: string; readonly id: number; readonly agent: string },
  { reason, now }: { reason: string | null; now: number },
): void {
  add(db, { at: now, tenant, kind, schedule: id, agent, run: null, reason });
}

/** Tells of a run as it is now, inside a transaction. */
export function notifyOfRun(db: SqliteDatabase, kind: NotificationKind, row: RunRow, now: number): void {
  const run: NotifiedRun = {
    id: row.id,
    status: row.status,
    dueAt: row.due_at,
    moments: row.moments,
    reason: row.reason,
    startedAt: row.started_at,
    completedAt: row.completed_at,
    resultSummary: row.result_summary,
    error: row.error,
  };
  const { tenant, schedule, agent } = row;
  add(db, { at: now, tenant, kind, schedule, agent, run: JSON.stringify(run), reason: null });
}

function add(db: SqliteDatabase, row: Omit<NotificationRow, "seq">): void {
  db.prepare(
    `insert into notification (at, tenant, kind, schedule, agent, run, reason)
     values (@at, @tenant, @kind, @schedule, @agent, @run, @reason)`,
  ).run(row);
  db.signal({ kind: "notifications" });
}
