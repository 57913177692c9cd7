import { type EventType, STATE_AFTER } from "../../../model/event.ts";
import {
  type EventFilter,
  type EventPage,
  LOOKED_MAX,
  type LogMark,
  type ReadEventsParams,
  type StoredEvent,
} from "../../storage.ts";
import type { SqliteDatabase } from "../connection/database.ts";

/** Up to `limit` events after `after`, oldest first. There is one writer, so numbers are in order of commit. */
export async function readEvents(
  db: SqliteDatabase,
  { after, limit, bytesMax, filter }: ReadEventsParams,
): Promise<EventPage> {
  return db.read(() => {
    const events: StoredEvent[] = [];
    const [statement, values] = filter === undefined ? [EVENTS_AFTER, {}] : filtered(db, filter);
    let bytes = 0;
    let looked = 0;
    let upTo = after;
    const mark = findMark(db, after);
    // Row by row: results may be large, and the loop may end early.
    for (const row of db.prepare<EventRow>(statement).iterate({ after, ...values })) {
      const enough = events.length === limit || (bytes >= bytesMax && events.length > 0);
      if (enough || looked === LOOKED_MAX) return { events, more: true, upTo, mark };
      looked += 1;
      upTo = row.seq;
      // The task is deleted or does not match the filter.
      if (row.task_id === null) continue;
      const event = toStoredEvent(row, row.task_id);
      events.push(event);
      bytes += event.bytes;
    }
    // After the tenant's last event there may be any number of events of other tenants: the reader can skip them.
    const newest = filter === undefined ? upTo : newestEvent(db);
    return { events, more: false, upTo: Math.max(upTo, newest), mark };
  });
}

function newestEvent(db: SqliteDatabase): number {
  return db.prepare<{ seq: number | null }>("select max(last_seq) as seq from event").get()?.seq ?? 0;
}

/** The statement for a filter, and its values. */
function filtered(db: SqliteDatabase, filter: EventFilter): [string, Record<string, unknown>] {
  const { tenant, agent = null, batch = null, session: key, schedule = null } = filter;
  const session =
    key === undefined
      ? null
      : // A session that does not exist has no tasks: no session has the id 0.
        (db.prepare<{ id: number }>("select id from session where tenant = ? and key = ?").get(tenant, key)
          ?.id ?? 0);
  return [EVENTS_OF_TENANT_AFTER, { tenant, agent, batch, session, schedule }];
}

export async function eventMark(db: SqliteDatabase, { seq }: { seq: number }): Promise<LogMark | null> {
  return db.read(() => findMark(db, seq));
}

/** There is no index on the time: this reads the log backwards over all events after `at`. */
export async function lastEventUntil(db: SqliteDatabase, { at }: { at: number }): Promise<number> {
  const row = await db.read(() =>
    db
      .prepare<{ seq: number }>(
        "select last_seq as seq from event where at <= ? order by last_seq desc limit 1",
      )
      .get(at),
  );
  return row?.seq ?? 0;
}

function findMark(db: SqliteDatabase, seq: number): LogMark | null {
  const row = db
    .prepare<{ type: EventType; at: number; first: number }>(
      "select type, at, last_seq - count + 1 as first from event where last_seq >= ? order by last_seq limit 1",
    )
    .get(seq);
  return row === undefined || row.first > seq ? null : { type: row.type, at: row.at };
}

export interface EventRow {
  readonly seq: number;
  readonly type: EventType;
  readonly at: number;
  readonly tenant: string;
  readonly data: string | null;
  /** Null: the task is deleted or does not match the filter. */
  readonly task_id: string | null;
  readonly agent: string;
  readonly lane: string;
  readonly batch: string | null;
  readonly session: string | null;
  readonly schedule: number | null;
  readonly result: string | null;
}

/**
 * SQLite reads the tables in this order, and `json_each` in the order of its array. Sorting by the index in the array would
 * read all results of a row before returning the first.
 */
function eventsAfter({ index, condition, fits }: { index: string; condition: string; fits: string }): string {
  return `
  select e.last_seq - e.count + 1 + j.key as seq, e.type, e.at, e.tenant, e.data, t.id as task_id, t.agent, n.lane,
         t.batch, (select s.key from session s where s.id = t.session) as session, t.schedule,
         case when e.type = 'task.completed' then t.result end as result
    from event e ${index} cross join json_each(e.task_seqs) j
    left join task t on t.seq = j.value and ${fits} left join line n on n.id = t.line
   where ${condition} and e.last_seq > @after and e.last_seq - e.count + 1 + j.key > @after
   order by e.last_seq`;
}

const EVENTS_AFTER = eventsAfter({ index: "not indexed", condition: "true", fits: "true" });

/** The columns of a task that does not match are not read; its result could be large. */
const EVENTS_OF_TENANT_AFTER = eventsAfter({
  index: "indexed by event_by_tenant",
  condition: "e.tenant = @tenant",
  fits: `(@agent is null or t.agent = @agent) and (@batch is null or t.batch = @batch)
    and (@session is null or t.session = @session) and (@schedule is null or t.schedule = @schedule)`,
});

export async function eventRange(db: SqliteDatabase): Promise<{ oldest: number; newest: number }> {
  const row = await db.read(() =>
    db
      .prepare<{ oldest: number | null; newest: number | null }>(
        `select (select last_seq - count + 1 from event order by last_seq limit 1) as oldest,
                max(coalesce((select max(last_seq) from event), 0),
                    coalesce((select value from high_water where name = 'event'), 0)) as newest`,
      )
      .get(),
  );
  const newest = row?.newest ?? 0;
  return { oldest: row?.oldest ?? newest + 1, newest };
}

export function toStoredEvent(row: EventRow, taskId: string): StoredEvent {
  const data = row.data === null ? null : JSON.parse(row.data);
  return {
    seq: row.seq,
    type: row.type,
    at: row.at,
    tenant: row.tenant,
    taskId,
    agent: row.agent,
    lane: row.lane,
    batch: row.batch,
    session: row.session,
    schedule: row.schedule,
    state: STATE_AFTER[row.type] ?? data.state,
    result: row.result === null ? undefined : JSON.parse(row.result),
    data,
    bytes: (row.result?.length ?? 0) + (row.data?.length ?? 0),
  };
}
