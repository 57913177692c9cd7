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
    for (const event of eventsAfter(db, after)) {
      if (events.length === limit || (bytes >= bytesMax && events.length > 0)) return { events, more: true };
      events.push(event);
      bytes += event.bytes;
    }
    return { events, more: false };
  });
}

/** A row of the log. Its nth event has the number last_seq - count + n. */
interface LogRow {
  readonly last_seq: number;
  readonly count: number;
  readonly type: EventType;
  readonly at: number;
  readonly tenant: string;
  readonly task_seqs: string;
  readonly data: string | null;
}

interface TaskOfEvent {
  readonly id: string;
  readonly agent: string;
  readonly lane: string;
  readonly batch: string | null;
  readonly result: string | null;
}

/** How many rows of the log are read at once; there are that many events in them at least. */
const ROWS = 100;

/** Event by event, each with its task as it is needed: results are large, and whoever asks stops when it has enough. */
function* eventsAfter(db: SqliteDatabase, after: number): Generator<StoredEvent> {
  const readRows = db.prepare<LogRow>(
    "select last_seq, count, type, at, tenant, task_seqs, data from event where last_seq > ? order by last_seq limit ?",
  );
  const findTask = db.prepare<TaskOfEvent>(
    `select t.id, t.agent, n.lane, t.batch, case when @withResult = 1 then t.result end as result
       from task t join line n on n.id = t.line where t.seq = @seq`,
  );
  let rows: LogRow[];
  let last = after;
  do {
    rows = readRows.all(last, ROWS);
    for (const row of rows) {
      const first = row.last_seq - row.count + 1;
      const withResult = row.type === "task.completed" ? 1 : 0;
      for (const [place, taskSeq] of (JSON.parse(row.task_seqs) as number[]).entries()) {
        if (first + place <= after) continue;
        const task = findTask.get({ seq: taskSeq, withResult });
        // Gone: then there is nobody left to tell about.
        if (task !== undefined) yield toStoredEvent(row, first + place, task);
      }
      last = row.last_seq;
    }
  } while (rows.length === ROWS);
}

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

function toStoredEvent(row: LogRow, seq: number, task: TaskOfEvent): StoredEvent {
  const data = row.data === null ? null : JSON.parse(row.data);
  return {
    seq,
    type: row.type,
    at: row.at,
    tenant: row.tenant,
    taskId: task.id,
    agent: task.agent,
    lane: task.lane,
    batch: task.batch,
    state: STATE_AFTER[row.type] ?? data.state,
    result: task.result === null ? undefined : JSON.parse(task.result),
    data,
    bytes: (task.result?.length ?? 0) + (row.data?.length ?? 0),
  };
}
