import { type EventType, STATE_AFTER } from "../../model/event.ts";
import type { StoredEvent } from "../storage.ts";
import type { SqliteDatabase } from "./database.ts";

interface EventRow {
  readonly seq: number;
  readonly type: EventType;
  readonly at: number;
  readonly tenant: string;
  readonly data: string | null;
  readonly task_id: string;
  readonly agent: string;
  readonly lane: string;
  readonly result: string | null;
}

/** Up to `limit` events after `after`, oldest first. There is one writer, so numbers are in order of commit. */
export async function readEvents(
  db: SqliteDatabase,
  params: { after: number; limit: number },
): Promise<StoredEvent[]> {
  await db.durable();
  const rows = db
    .prepare<EventRow>(
      `select e.seq, e.type, e.at, e.tenant, e.data, t.id as task_id, t.agent, n.lane,
              case when e.type = 'task.completed' then t.result end as result
         from event e join task t on t.seq = e.task_seq join line n on n.id = t.line
        where e.seq > ? order by e.seq limit ?`,
    )
    .all(params.after, params.limit);
  return rows.map(toStoredEvent);
}

export async function eventRange(db: SqliteDatabase): Promise<{ oldest: number; newest: number }> {
  await db.durable();
  const row = db
    .prepare<{ oldest: number | null; newest: number | null }>(
      "select (select min(seq) from event) as oldest, (select max(seq) from event) as newest",
    )
    .get();
  return { oldest: row?.oldest ?? 0, newest: row?.newest ?? 0 };
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
    state: STATE_AFTER[row.type] ?? data.state,
    result: row.result === null ? undefined : JSON.parse(row.result),
    data,
  };
}
