import { type EventType, STATE_AFTER } from "../../../model/event.ts";
import {
  type EventFilter,
  type EventPage,
  LOOKED_MAX,
  type LogMark,
  type ReadEventsParams,
  type StoredEvent,
} from "../../storage.ts";
import type { PostgresDatabase } from "../connection/database.ts";
import { SESSION_KEY } from "../tasks/task-row.ts";

export interface EventRow {
  readonly seq: string;
  readonly type: EventType;
  readonly at: string;
  readonly tenant: string;
  readonly data: string | null;
  readonly task_id: string;
  readonly agent: string;
  readonly lane: string;
  readonly batch: string | null;
  readonly session: string | null;
  readonly schedule: string | null;
  readonly result: string | null;
  readonly bytes: string;
  /** How many events there were before the byte limit cut some off. */
  readonly found: string;
  readonly mark: LogMark | null;
}

/**
 * Up to `limit` events after `after`, oldest first. Sequences run ahead of commits, but numbers are assigned under the write
 * lock, which is held until the commit. So a reader that sees one event sees all before it, and never skips one.
 */
export async function readEvents(db: PostgresDatabase, params: ReadEventsParams): Promise<EventPage> {
  const { after, limit, bytesMax, filter } = params;
  const values = filter === undefined ? [] : await filterValues(db, filter);
  const rows = await db.readDurably<EventRow>({
    name: filter === undefined ? "read_events" : "read_events_of_tenant",
    text: filter === undefined ? EVENTS_AFTER : EVENTS_OF_TENANT_AFTER,
    values: [after, limit + 1, bytesMax, ...values],
  });
  if (rows.length === 0) return passOver(db, after, filter === undefined ? null : values);
  const page = rows.slice(0, limit);
  const upTo = Number(page.at(-1)?.seq ?? after);
  db.sawEvent(upTo);
  return {
    events: page.map(toStoredEvent),
    more: page.length < Number(rows[0]?.found ?? 0),
    upTo,
    mark: rows[0]?.mark ?? null,
  };
}

export async function eventMark(db: PostgresDatabase, { seq }: { seq: number }): Promise<LogMark | null> {
  const [row] = await db.read<{ mark: LogMark | null }>({
    name: "event_mark",
    text: `select ${MARK} as mark`,
    values: [seq],
  });
  return row?.mark ?? null;
}

/** There is no index on the time: this walks the log backwards, over what was written after `at`. */
export async function lastEventUntil(db: PostgresDatabase, { at }: { at: number }): Promise<number> {
  const [row] = await db.read<{ seq: string }>({
    name: "last_event_until",
    text: "select last_seq as seq from event where at <= $1 order by last_seq desc limit 1",
    values: [at],
  });
  return Number(row?.seq ?? 0);
}

/** Type and time of the event with the number `$1`; null: there is none. */
const MARK = `(
  select case when e.last_seq - e.count < $1 then json_build_object('type', e.type, 'at', e.at) end
    from event e where e.last_seq >= $1 order by e.last_seq limit 1)`;

/** The parameters of the filter, from `$4` on. A session that does not exist becomes 0, which no task has. */
async function filterValues(db: PostgresDatabase, filter: EventFilter): Promise<unknown[]> {
  const { tenant, agent = null, batch = null, session: key, schedule = null } = filter;
  const [session] =
    key === undefined
      ? [{ id: null }]
      : await db.read<{ id: string }>({
          name: "session_of_events",
          text: "select id from session where tenant = $1 and key = $2",
          values: [tenant, key],
        });
  return [tenant, agent, batch, session === undefined ? 0 : session.id, schedule];
}

/** Where to continue if no event matched. Events that were committed since must not be skipped. */
async function passOver(
  db: PostgresDatabase,
  after: number,
  filter: readonly unknown[] | null,
): Promise<EventPage> {
  const [row] = await db.read<{ up_to: string | null; more: boolean; mark: LogMark | null }>({
    name: filter === null ? "pass_over_events" : "pass_over_events_of_tenant",
    text: filter === null ? PASS_OVER : PASS_OVER_OF_TENANT,
    // The statement has no use for `$2` and `$3`, but both need a value.
    values: filter === null ? [after] : [after, 0, 0, ...filter],
  });
  const upTo = Number(row?.up_to ?? after);
  db.sawEvent(upTo);
  return { events: [], more: row?.more ?? false, upTo, mark: row?.mark ?? null };
}

interface Asked {
  /** Condition on the rows of the log to read. */
  readonly rows: string;
  /** The order of the index on these rows, so that the planner cannot use another. */
  readonly order: string;
  /** Condition on their tasks `t`. */
  readonly fits: string;
}

const ALL: Asked = { rows: "true", order: "e.last_seq", fits: "true" };
const OF_TENANT: Asked = {
  rows: "(e.tenant, e.last_seq) > ($4, $1) and (e.tenant, e.last_seq) < ($4, 9e18::bigint)",
  order: "e.tenant, e.last_seq",
  fits: `($5::text is null or t.agent = $5) and ($6::text is null or t.batch = $6)
    and ($7::bigint is null or t.session = $7) and ($8::bigint is null or t.schedule = $8)`,
};

/**
 * The events that one call reads. The limit is a subquery: given a plain number, the planner expects fewer events of a tenant
 * than that, and would sort all of them instead of walking the index.
 */
function lookedAt({ rows, order }: Asked): string {
  return `
  select e.last_seq - e.count + u.ordinal as seq, e.type, e.at, e.tenant, e.data, u.task_seq, e.last_seq, u.ordinal
    from event e cross join lateral unnest(e.task_seqs) with ordinality u(task_seq, ordinal)
   where ${rows} and e.last_seq > $1 and e.last_seq - e.count + u.ordinal > $1
   order by ${order}, u.ordinal limit (select ${LOOKED_MAX})`;
}

/** After a tenant's last event there may be any number of others: these are skipped, up to the newest event there is now. */
function passingOver(asked: Asked, newest: string): string {
  return `
  with looked as materialized (${lookedAt(asked)}),
       next as (select min(l.seq) as seq from looked l join task t on t.seq = l.task_seq and ${asked.fits}),
       found as (
         select max(l.seq) filter (where n.seq is null or l.seq < n.seq) as up_to, count(l.seq) = ${LOOKED_MAX} as full,
                max(n.seq) is not null as next
           from next n left join looked l on true)
  select case when f.full or f.next then f.up_to else ${newest} end as up_to, f.full or f.next as more, ${MARK} as mark
    from found f`;
}

const PASS_OVER = passingOver(ALL, "f.up_to");
const PASS_OVER_OF_TENANT = `${passingOver(OF_TENANT, "(select max(last_seq) from event)")}
   where $2::integer is not null and $3::integer is not null`;

// One event more than the limit shows whether there are more. A row is returned if those before it left bytes for it.
function eventsAfter(asked: Asked): string {
  return `
  select *, ${MARK} as mark from (
    select *, count(*) over () as found, sum(bytes) over (order by seq) - bytes as bytes_before from (
      select e.seq, e.type, e.at, e.tenant, e.data, t.id as task_id, t.agent, n.lane,
             t.batch, ${SESSION_KEY} as session, t.schedule, case when e.type = 'task.completed' then t.result end as result,
             coalesce(octet_length(e.data), 0)
               + case when e.type = 'task.completed' then coalesce(octet_length(t.result), 0) else 0 end as bytes
        from (${lookedAt(asked)}) e
        join task t on t.seq = e.task_seq and ${asked.fits} join line n on n.id = t.line
       order by ${asked.order}, e.ordinal limit $2) next) page
   where bytes_before < $3 order by seq`;
}

export const EVENTS_AFTER = eventsAfter(ALL);
export const EVENTS_OF_TENANT_AFTER = eventsAfter(OF_TENANT);

export async function eventRange(db: PostgresDatabase): Promise<{ oldest: number; newest: number }> {
  const [row] = await db.read<{ oldest: string | null; newest: string | null }>({
    name: "event_range",
    text: `select (select last_seq - count + 1 from event order by last_seq limit 1) as oldest,
                  greatest((select max(last_seq) from event),
                           (select value from high_water where name = 'event')) as newest`,
    values: [],
  });
  const newest = Number(row?.newest ?? 0);
  db.sawEvent(newest);
  return { oldest: Number(row?.oldest ?? newest + 1), newest };
}

export function toStoredEvent(row: EventRow): StoredEvent {
  const data = row.data === null ? null : JSON.parse(row.data);
  return {
    seq: Number(row.seq),
    type: row.type,
    at: Number(row.at),
    tenant: row.tenant,
    taskId: row.task_id,
    agent: row.agent,
    lane: row.lane,
    batch: row.batch,
    session: row.session,
    schedule: row.schedule === null ? null : Number(row.schedule),
    state: STATE_AFTER[row.type] ?? data.state,
    result: row.result === null ? undefined : JSON.parse(row.result),
    data,
    bytes: Number(row.bytes),
  };
}
