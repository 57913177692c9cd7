import { isOfWorker, type NotificationKind } from "../../../model/notification.ts";
import {
  type LogMark,
  type NotificationPage,
  type NotificationStorage,
  OF_WORKER,
  type ReadNotificationsParams,
  type StoredNotification,
  WORKER_NOTIFICATIONS_MAX,
} from "../../storage.ts";
import type { PostgresDatabase } from "../connection/database.ts";
import { oneRow } from "../connection/one-row.ts";

/** Notifications about schedules and workers. Numbers are assigned under the write lock: a reader that sees one sees all before it. */
export function postgresNotifications(db: PostgresDatabase): NotificationStorage {
  return {
    async read({ after, limit, tenant, ...others }) {
      if (tenant !== undefined) return readOfTenant(db, { after, limit, tenant, ...others });
      // Also reads the entry that the caller saw last, so that the caller can check that it is still the same.
      const rows = await db.readDurably<NotificationRow>({
        name: "read_notifications",
        text: "select * from notification where seq >= $1 order by seq limit $2",
        values: [after, limit + 2],
      });
      const [first] = rows;
      const seen = first !== undefined && Number(first.seq) === after ? first : null;
      const found = (seen === null ? rows : rows.slice(1)).map(toNotification);
      const notifications = found.slice(0, limit);
      const upTo = notifications.at(-1)?.seq ?? after;
      return { notifications, more: found.length > limit, upTo, mark: toMark(seen) };
    },
    async mark({ seq }) {
      const [row] = await db.read<Pick<NotificationRow, "kind" | "at">>({
        name: "notification_mark",
        text: "select kind, at from notification where seq = $1",
        values: [seq],
      });
      return toMark(row ?? null);
    },
    async lastUntil({ at }) {
      const [row] = await db.read<{ seq: string }>({
        name: "last_notification_until",
        text: "select seq from notification where at <= $1 order by seq desc limit 1",
        values: [at],
      });
      return Number(row?.seq ?? 0);
    },
    async range() {
      const [row] = await db.read<{ oldest: string | null; newest: string | null }>({
        name: "notification_range",
        text: `select (select min(seq) from notification) as oldest,
                      greatest((select max(seq) from notification),
                               (select value from high_water where name = 'notification')) as newest`,
        values: [],
      });
      const newest = Number(row?.newest ?? 0);
      return { oldest: Number(row?.oldest ?? newest + 1), newest };
    },
  };
}

/** The notifications of a tenant or an agent, of which `$3` is the page size. */
export const NOTIFICATIONS_OF = {
  tenant: `select * from notification where (tenant, seq) > ($1, $2) and (tenant, seq) < ($1, 9e18::bigint)
            order by tenant, seq limit $3`,
  agent: `select * from notification
           where (tenant || '', agent, seq) > ($1, $4, $2) and (tenant || '', agent, seq) < ($1, $4, 9e18::bigint)
           order by tenant || '', agent, seq limit $3`,
} as const;

/** The notifications about workers of a tenant that are too many. */
export function surplusOfWorkers(tenant: string): string {
  return `select seq from notification
     where (tenant || '', agent, seq) > (${tenant}, '${OF_WORKER.agent}', 0)
       and (tenant || '', agent, seq) < (${tenant}, '${OF_WORKER.agent}', 9e18::bigint)
     order by tenant || '' desc, agent desc, seq desc offset ${WORKER_NOTIFICATIONS_MAX}`;
}

/** Others' notifications may follow the last one. If there are no more, `upTo` is the newest that this statement sees. */
async function readOfTenant(
  db: PostgresDatabase,
  { after, limit, tenant, agent }: ReadNotificationsParams & { readonly tenant: string },
): Promise<NotificationPage> {
  const rows = await db.readDurably<{
    found: NotificationRow | null;
    newest: string | null;
    mark: LogMark | null;
  }>({
    name: `read_notifications_of_${agent === undefined ? "tenant" : "agent"}`,
    text: `select to_json(f) as found, (select max(seq) from notification) as newest,
                  (select json_build_object('type', kind, 'at', at) from notification where seq = $2) as mark
             from (select) s left join lateral (
               ${NOTIFICATIONS_OF[agent === undefined ? "tenant" : "agent"]}) f on true`,
    values: [tenant, after, limit + 1, ...(agent === undefined ? [] : [agent])],
  });
  const found = rows.flatMap((row) => (row.found === null ? [] : toNotification(row.found)));
  const notifications = found.slice(0, limit);
  const more = found.length > limit;
  const last = notifications.at(-1)?.seq ?? after;
  return {
    notifications,
    more,
    upTo: more ? last : Math.max(last, Number(rows[0]?.newest ?? 0)),
    mark: rows[0]?.mark ?? null,
  };
}

interface NotificationRow {
  readonly seq: string;
  readonly at: string;
  readonly tenant: string;
  readonly kind: NotificationKind;
  readonly schedule: string;
  readonly agent: string;
  /** JSON: a run, or a worker. */
  readonly run: string | null;
  readonly reason: string | null;
}

function toMark(row: Pick<NotificationRow, "kind" | "at"> | null): LogMark | null {
  return row === null ? null : { type: row.kind, at: Number(row.at) };
}

function toNotification(row: NotificationRow): StoredNotification {
  const { kind, tenant, agent, reason } = row;
  const entry = { seq: Number(row.seq), at: Number(row.at), tenant, reason };
  const about = row.run === null ? null : JSON.parse(row.run);
  return isOfWorker(kind)
    ? { ...entry, kind, worker: about }
    : { ...entry, kind, scheduleId: Number(row.schedule), agent, run: about };
}

export const NOTIFICATION_FUNCTIONS = `
-- Appends notifications of runs as they are now, in this order.
create function append_run_notifications(p_now bigint, p_ids bigint[]) returns void language plpgsql as $$
#variable_conflict use_column
begin
  insert into notification (at, tenant, kind, schedule, agent, run)
  select p_now, r.tenant,
         case r.status when 'running' then 'run.started' when 'succeeded' then 'run.completed' else 'run.' || r.status end,
         r.schedule, r.agent,
         json_build_object('id', r.id, 'status', r.status, 'dueAt', r.due_at, 'moments', r.moments, 'reason', r.reason,
                           'startedAt', r.started_at, 'completedAt', r.completed_at,
                           'resultSummary', r.result_summary, 'error', r.error)::text
    from unnest(p_ids) with ordinality u(id, ordinal) cross join ${oneRow("*", "run", "id = u.id")} r order by u.ordinal;
  perform wake_readers();
end $$;

-- Appends notifications of schedules with these reasons, in this order.
create function append_schedule_notifications(p_now bigint, p_kind text, p_ids bigint[], p_reasons text[]) returns void
language plpgsql as $$
#variable_conflict use_column
begin
  insert into notification (at, tenant, kind, schedule, agent, reason)
  select p_now, s.tenant, p_kind, s.id, s.agent, u.reason
    from unnest(p_ids, p_reasons) with ordinality u(id, reason, ordinal)
   cross join ${oneRow("*", "schedule", "id = u.id")} s order by u.ordinal;
  perform wake_readers();
end $$;

-- Appends a notification of a worker as it is now, and deletes the oldest of its tenant beyond a maximum.
create function append_worker_notification(p_now bigint, p_kind text, p_worker worker, p_attempts bigint, p_reason text)
returns void language plpgsql as $$
begin
  insert into notification (at, tenant, kind, schedule, agent, run, reason)
  values (p_now, p_worker.tenant, p_kind, ${OF_WORKER.schedule}, '${OF_WORKER.agent}',
          json_build_object('id', p_worker.id, 'name', p_worker.name, 'agents', p_worker.agents, 'slots', p_worker.slots,
                            'attempts', p_attempts)::text, p_reason);
  perform delete_notifications(array(
    ${surplusOfWorkers("p_worker.tenant")}));
  perform wake_readers();
end $$;

-- Returns how many it deleted. Readers continue from the newest number ever used, even if that was deleted.
create function delete_notifications(p_seqs bigint[]) returns integer language plpgsql as $$
begin
  if cardinality(p_seqs) = 0 then return 0; end if;
  insert into high_water (name, value) select 'notification', max(s.seq) from unnest(p_seqs) s(seq)
  on conflict (name) do update set value = greatest(high_water.value, excluded.value);
  delete from notification n where n.seq = any (p_seqs);
  return cardinality(p_seqs);
end $$;

-- Any function that ends a task may end a run and does not know it, so the notification is part of the transaction. Commits
-- do not wait for it longer than for the write lock.
create function wake_readers() returns void language plpgsql as $$
begin
  perform pg_notify('rota', '{"from":"","signals":[{"kind":"notifications"}]}');
end $$;
`;
