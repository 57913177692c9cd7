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
  const rows = await db.read(() =>
    db
      .prepare<EventRow>(
        `select e.last_seq - e.count + 1 + j.key as seq, e.type, e.at, e.tenant, e.data, t.id as task_id, t.agent, n.lane,
              case when e.type = 'task.completed' then t.result end as result
         from event e, json_each(e.task_seqs) j
         join task t on t.seq = j.value join line n on n.id = t.line
        where e.last_seq > @after and e.last_seq - e.count + 1 + j.key > @after
        order by e.last_seq, j.key limit @limit`,
      )
      .all(params),
  );
  return rows.map(toStoredEvent);
}

export async function eventRange(db: SqliteDatabase): Promise<{ oldest: number; newest: number }> {
  const row = await db.read(() =>
    db
      .prepare<{ oldest: number | null; newest: number | null }>(
        `select (select last_seq - count + 1 from event order by last_seq limit 1) as oldest,
              (select max(last_seq) from event) as newest`,
      )
      .get(),
  );
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
