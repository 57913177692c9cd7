import { isOfWorker } from "../../../model/notification.ts";
import type { LogMark, NotificationStorage, StoredNotification } from "../../storage.ts";
import type { SqliteDatabase } from "../connection/database.ts";
import type { NotificationRow } from "./steps/notify.ts";

export function sqliteNotifications(db: SqliteDatabase): NotificationStorage {
  return {
    async read({ after, limit, tenant, agent }) {
      return db.read(() => {
        const from =
          tenant === undefined
            ? "notification not indexed where true"
            : agent === undefined
              ? "notification indexed by notification_by_tenant where tenant = @tenant"
              : "notification indexed by notification_by_agent where tenant = @tenant and agent = @agent";
        const rows = db
          .prepare<NotificationRow>(`select * from ${from} and seq > @after order by seq limit +@page`)
          .all({ after, tenant, agent, page: limit + 1 });
        const notifications = rows.slice(0, limit).map(toNotification);
        const more = rows.length > limit;
        const last = notifications.at(-1)?.seq ?? after;
        const upTo = tenant === undefined || more ? last : Math.max(last, newestNotification(db));
        return { notifications, more, upTo, mark: findMark(db, after) };
      });
    },
    mark: ({ seq }) => db.read(() => findMark(db, seq)),
    async lastUntil({ at }) {
      const row = await db.read(() =>
        db
          .prepare<{ seq: number }>("select seq from notification where at <= ? order by seq desc limit 1")
          .get(at),
      );
      return row?.seq ?? 0;
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

function newestNotification(db: SqliteDatabase): number {
  return db.prepare<{ seq: number | null }>("select max(seq) as seq from notification").get()?.seq ?? 0;
}

function findMark(db: SqliteDatabase, seq: number): LogMark | null {
  return db.prepare<LogMark>("select kind as type, at from notification where seq = ?").get(seq) ?? null;
}

function toNotification({
  schedule: scheduleId,
  agent,
  run,
  kind,
  ...row
}: NotificationRow): StoredNotification {
  const about = run === null ? null : JSON.parse(run);
  return isOfWorker(kind) ? { ...row, kind, worker: about } : { ...row, kind, scheduleId, agent, run: about };
}
