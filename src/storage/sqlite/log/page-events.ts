import type { EventType } from "../../../model/event.ts";
import { PAGE_LOOKED, type PageEventsParams, type StoredEvent, TASK_SPAN_ROOM_MS } from "../../storage.ts";
import type { SqliteDatabase } from "../connection/database.ts";
import { type EventRow, toStoredEvent } from "./read-events.ts";

interface Page {
  readonly events: StoredEvent[];
  readonly next: number | null;
}

/** The events to find in the log. */
interface Sought {
  readonly tenant: string;
  readonly after: number;
  readonly before: number;
  readonly isForward: boolean;
  readonly type: EventType | null;
  /** Null: of any task. */
  readonly taskSeq: number | null;
}

/** What is read of every row of the log. */
interface LightRow {
  readonly last_seq: number;
  readonly count: number;
  /** Whether it may hold matching events. */
  readonly fits: 0 | 1;
}

/** A page of a tenant's events. */
export async function pageEvents(db: SqliteDatabase, params: PageEventsParams): Promise<Page> {
  return db.read(() => {
    const sought = toSought(db, params);
    return sought === null ? { events: [], next: null } : readPage(db, sought, params);
  });
}

function readPage(
  db: SqliteDatabase,
  sought: Sought,
  { limit, bytesMax }: { readonly limit: number; readonly bytesMax: number },
): Page {
  const { isForward, after, before, tenant, type, taskSeq } = sought;
  const isFiltered = type !== null || taskSeq !== null;
  const rowsMax = isFiltered ? PAGE_LOOKED.filteredRows : PAGE_LOOKED.rows;
  const rows = db.prepare<LightRow>(isForward ? ROWS_AFTER : ROWS_BEFORE).all({
    tenant,
    from: isForward ? after : before,
    type,
    task: taskSeq === null ? null : String(taskSeq),
    rows: rowsMax,
  });
  const events: StoredEvent[] = [];
  let [bytes, looked] = [0, 0];
  let upTo = isForward ? after : before;
  for (const row of rows) {
    const first = row.last_seq - row.count + 1;
    if (isForward ? first >= before : row.last_seq <= after) return { events, next: null };
    for (const { seq, at } of row.fits === 1 ? entriesOf(db, row, sought) : []) {
      const isEnough = events.length === limit || (bytes >= bytesMax && events.length > 0);
      if (isEnough || looked === PAGE_LOOKED.events) return { events, next: upTo };
      looked += 1;
      upTo = seq;
      const event = db.prepare<EventRow>(EVENT).get({ row: row.last_seq, seq, task: at });
      if (event === undefined || event.task_id === null) continue;
      const stored = toStoredEvent(event, event.task_id);
      events.push(stored);
      bytes += stored.bytes;
    }
    upTo = isForward ? row.last_seq : Math.min(first, before);
  }
  return { events, next: rows.length >= rowsMax ? upTo : null };
}

/** The numbers of the matching events of a row, and their tasks, in the order of the page. */
function entriesOf(
  db: SqliteDatabase,
  { last_seq, count }: LightRow,
  { after, before, isForward, taskSeq }: Sought,
): { seq: number; at: number }[] {
  const row = db
    .prepare<{ task_seqs: string }>("select task_seqs from event where last_seq = ?")
    .get(last_seq);
  const tasks = JSON.parse(row?.task_seqs ?? "[]") as number[];
  const entries = tasks
    .map((at, index) => ({ seq: last_seq - count + 1 + index, at }))
    .filter(({ seq, at }) => seq > after && seq < before && (taskSeq === null || at === taskSeq));
  return isForward ? entries : entries.reverse();
}

/** Null: there is no such task. */
function toSought(db: SqliteDatabase, params: PageEventsParams): Sought | null {
  const { tenant, after, before = Number.MAX_SAFE_INTEGER, type = null, taskId } = params;
  const sought = { tenant, after: after ?? 0, before, isForward: after !== undefined, type };
  if (taskId === undefined) return { ...sought, taskSeq: null };
  const task = db
    .prepare<{ seq: number; created_at: number; ended_at: number | null }>(
      `select seq, created_at, case when batch is null then completed_at end as ended_at
         from task where tenant = ? and id = ?`,
    )
    .get(tenant, taskId);
  if (task === undefined) return null;
  const first = firstSince(db, task.created_at - TASK_SPAN_ROOM_MS);
  // `batch.completed` is an event of the task, too, and may come at any later time.
  const end = task.ended_at === null ? null : firstSince(db, task.ended_at + TASK_SPAN_ROOM_MS);
  return {
    ...sought,
    taskSeq: task.seq,
    after: Math.max(sought.after, (first ?? 1) - 1),
    before: Math.min(before, end ?? before),
  };
}

/**
 * The first number of the first row that was written at this time or later; null: there is none. A binary search: times grow
 * with numbers.
 */
function firstSince(db: SqliteDatabase, at: number): number | null {
  const range = db
    .prepare<{ low: number | null; high: number | null }>(
      "select (select min(last_seq) from event) as low, (select max(last_seq) from event) as high",
    )
    .get();
  let [low, high] = [range?.low ?? 1, (range?.high ?? 0) + 1];
  const rowFrom = db.prepare<{ last_seq: number; count: number; at: number }>(
    "select last_seq, count, at from event where last_seq >= ? order by last_seq limit 1",
  );
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const row = rowFrom.get(middle);
    if (row === undefined || row.at >= at) high = middle;
    else low = row.last_seq + 1;
  }
  const row = rowFrom.get(low);
  return row === undefined ? null : row.last_seq - row.count + 1;
}

const LIGHT = `
  last_seq, count,
  (@type is null or type = @type) and (@task is null or instr(task_seqs, @task) > 0) as fits`;

const ROWS_AFTER = `
  select ${LIGHT} from event where tenant = @tenant and last_seq > @from order by last_seq limit +@rows`;

/** A row that begins before the number may end after it. */
const ROWS_BEFORE = `
  select * from (select ${LIGHT} from event where tenant = @tenant and last_seq >= @from order by last_seq limit 1)
  union all
  select * from (select ${LIGHT} from event where tenant = @tenant and last_seq < @from order by last_seq desc limit +@rows)`;

const EVENT = `
  select @seq as seq, e.type, e.at, e.tenant, e.data, t.id as task_id, t.agent, n.lane, t.batch,
         (select s.key from session s where s.id = t.session) as session, t.schedule,
         case when e.type = 'task.completed' then t.result end as result
    from event e join task t on t.seq = @task join line n on n.id = t.line where e.last_seq = @row`;
