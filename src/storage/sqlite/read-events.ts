import { type EventType, STATE_AFTER } from "../../model/event.ts";
import type { ReadEventsParams, StoredEvent } from "../storage.ts";
import type { SqliteDatabase } from "./database.ts";

/** Up to `limit` events after `after`, oldest first. There is one writer, so numbers are in order of commit. */
export async function readEvents(
  db: SqliteDatabase,
  { after, limit, bytesMax }: ReadEventsParams,
): Promise<{ events: StoredEvent[]; more: boolean }> {
  return db.read(() => {
    const events: StoredEvent[] = [];
    let bytes = 0;
    // Row by row: results are large, and enough may be enough.
    for (const row of db.prepare<EventRow>(EVENTS_AFTER).iterate({ after })) {
      if (events.length === limit || (bytes >= bytesMax && events.length > 0)) return { events, more: true };
      const event = toStoredEvent(row);
      events.push(event);
      bytes += event.bytes;
    }
    return { events, more: false };
  });
}

interface EventRow {
  readonly seq: number;
  readonly type: EventType;
  readonly at: number;
  readonly tenant: string;
  readonly data: string | null;
  readonly task_id: string;
  readonly agent: string;
  readonly lane: string;
  readonly batch: string | null;
  readonly result: string | null;
}

/**
 * Events of tasks that are gone are left out: there is nobody left to tell about. The tables are walked in this order, and
 * `json_each` in that of its array: sorting by the place in it would read every result of a row before the first.
 */
const EVENTS_AFTER = `
  select e.last_seq - e.count + 1 + j.key as seq, e.type, e.at, e.tenant, e.data, t.id as task_id, t.agent, n.lane,
         t.batch, case when e.type = 'task.completed' then t.result end as result
    from event e cross join json_each(e.task_seqs) j
   cross join task t on t.seq = j.value cross join line n on n.id = t.line
   where e.last_seq > @after and e.last_seq - e.count + 1 + j.key > @after
   order by e.last_seq`;

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

function toStoredEvent(row: EventRow): StoredEvent {
  const data = row.data === null ? null : JSON.parse(row.data);
  return {
    seq: row.seq,
    type: row.type,
    at: row.at,
    tenant: row.tenant,
    taskId: row.task_id,
    agent: row.agent,
    lane: row.lane,
    batch: row.batch,
    state: STATE_AFTER[row.type] ?? data.state,
    result: row.result === null ? undefined : JSON.parse(row.result),
    data,
    bytes: (row.result?.length ?? 0) + (row.data?.length ?? 0),
  };
}
