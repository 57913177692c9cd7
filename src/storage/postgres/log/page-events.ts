import { PAGE_LOOKED, type PageEventsParams, type StoredEvent, TASK_SPAN_ROOM_MS } from "../../storage.ts";
import type { PostgresDatabase } from "../connection/database.ts";
import { isOf } from "../tasks/read-tasks.ts";
import { SESSION_KEY } from "../tasks/task-row.ts";
import { type EventRow, toStoredEvent } from "./read-events.ts";

interface Page {
  readonly events: StoredEvent[];
  readonly next: number | null;
}

/** The events to find in the log. */
interface Sought {
  readonly after: number;
  readonly before: number;
  readonly isForward: boolean;
  /** Null: of any task. */
  readonly taskSeq: number | null;
}

/** A row of the log that may contain matching events. Null in `last_seq`: no row does. */
interface FoundRow {
  readonly last_seq: string | null;
  readonly count: number;
  readonly task_seqs: readonly string[];
  /** How many rows were read, and how far. */
  readonly rows: string;
  readonly up_to: string | null;
}

interface Entry {
  readonly seq: number;
  readonly task: string;
  readonly row: number;
}

/** A page of a tenant's events. */
export async function pageEvents(db: PostgresDatabase, params: PageEventsParams): Promise<Page> {
  const sought = await toSought(db, params);
  if (sought === null) return { events: [], next: null };
  const { isForward, after, before, taskSeq } = sought;
  const { tenant, type = null, limit, bytesMax } = params;
  const isFiltered = type !== null || taskSeq !== null;
  const rowsMax = isFiltered ? PAGE_LOOKED.filteredRows : PAGE_LOOKED.rows;
  const found = await db.read<FoundRow>({
    name: isForward ? "event_rows_after" : "event_rows_before",
    text: isForward ? ROWS_AFTER : ROWS_BEFORE,
    values: [tenant, after, before, type, taskSeq, rowsMax, limit + 1],
  });
  const rows = found.filter(({ last_seq }) => last_seq !== null);
  const entries = rows.flatMap((row) => entriesOf(row, sought));
  const events = await readEntries(db, entries, { limit, bytesMax });
  const page = events.slice(0, limit);
  const isCut = page.length < Number(events[0]?.found ?? 0);
  if (page.length > 0) db.sawEvent(Math.max(...page.map(({ seq }) => Number(seq))));
  return {
    events: page.map(toStoredEvent),
    next: isCut
      ? Number(page.at(-1)?.seq)
      : whereRowsEnd(found, { ...sought, rowsMax, rowsLimit: limit + 1 }),
  };
}

/** The position after the rows that were read; null: there are no more. */
function whereRowsEnd(
  found: readonly FoundRow[],
  {
    isForward,
    after,
    before,
    rowsMax,
    rowsLimit,
  }: Sought & { readonly rowsMax: number; readonly rowsLimit: number },
): number | null {
  const rows = found.filter(({ last_seq }) => last_seq !== null);
  const events = rows.reduce((sum, { count }) => sum + count, 0);
  const last = rows.at(-1);
  const isCut = rows.length >= rowsLimit || events >= PAGE_LOOKED.events;
  const lastEnd = last === undefined ? null : Number(last.last_seq) - (isForward ? 0 : last.count - 1);
  const looked = found[0];
  if (!isCut && Number(looked?.rows ?? 0) < rowsMax) return null;
  const end = isCut ? lastEnd : Number(looked?.up_to ?? 0);
  if (end === null) return null;
  // Further rows are out of the range.
  return (isForward ? end + 1 >= before : end - 1 <= after) ? null : isForward ? end : Math.min(end, before);
}

/** The matching events of a row, in the order of the page. */
function entriesOf(
  { last_seq, count, task_seqs }: FoundRow,
  { after, before, isForward, taskSeq }: Sought,
): Entry[] {
  const row = Number(last_seq);
  const entries = task_seqs
    .map((task, index) => ({ seq: row - count + 1 + index, task, row }))
    .filter(({ seq, task }) => seq > after && seq < before && (taskSeq === null || Number(task) === taskSeq));
  return isForward ? entries : entries.reverse();
}

async function readEntries(
  db: PostgresDatabase,
  entries: readonly Entry[],
  { limit, bytesMax }: { readonly limit: number; readonly bytesMax: number },
): Promise<EventRow[]> {
  if (entries.length === 0) return [];
  return db.readDurably<EventRow>({
    name: "events_of_page",
    text: EVENTS,
    values: [
      entries.map(({ seq }) => seq),
      entries.map(({ task }) => task),
      entries.map(({ row }) => row),
      limit + 1,
      bytesMax,
    ],
  });
}

/** Null: there is no such task. */
async function toSought(db: PostgresDatabase, params: PageEventsParams): Promise<Sought | null> {
  const { tenant, after, before = Number.MAX_SAFE_INTEGER, taskId } = params;
  const sought = { after: after ?? 0, before, isForward: after !== undefined };
  if (taskId === undefined) return { ...sought, taskSeq: null };
  const [task] = await db.read<{ seq: string; first: string | null; end: string | null }>({
    name: "events_of_task",
    text: EVENTS_OF_TASK,
    values: [tenant, taskId],
  });
  if (task === undefined) return null;
  return {
    ...sought,
    taskSeq: Number(task.seq),
    after: Math.max(sought.after, Number(task.first ?? 1) - 1),
    before: Math.min(before, task.end === null ? before : Number(task.end)),
  };
}

/** `batch.completed` counts as an event of the task, too, at any later time. */
const EVENTS_OF_TASK = `
  select seq, first_event_since(created_at - ${TASK_SPAN_ROOM_MS}) as first,
         case when batch is null and completed_at is not null
              then first_event_since(completed_at + ${TASK_SPAN_ROOM_MS}) end as "end"
    from task t where id = $2 and ${isOf("t", "$1")}`;

/** Of a limited number of rows, those that may contain matching events. `$2` and `$3` are the range of event numbers. */
function rowsOf({ looked, order, upTo }: { looked: string; order: string; upTo: string }): string {
  return `
  with looked as materialized (${looked}),
       found as (
         select last_seq, count, task_seqs, sum(count) over (order by last_seq ${order}) - count as before
           from looked
          where ($4::text is null or type = $4) and ($5::bigint is null or task_seqs @> array[$5::bigint])
            and last_seq > $2 and last_seq - count + 1 < $3
          order by last_seq ${order} limit $7)
  select f.last_seq, f.count, f.task_seqs, l.rows, l.up_to
    from (select count(*) as rows, ${upTo} as up_to from looked) l
    left join found f on f.before < ${PAGE_LOOKED.events} order by f.last_seq ${order}`;
}

const COLUMNS = "last_seq, count, type, task_seqs";

/** Compares and orders by both columns, so that the planner uses the index on them. */
const ROWS_AFTER = rowsOf({
  looked: `select ${COLUMNS} from event
            where (tenant, last_seq) > ($1, $2::bigint) and (tenant, last_seq) < ($1, 9e18::bigint)
            order by tenant, last_seq limit $6`,
  order: "asc",
  upTo: "max(last_seq)",
});

/** A row that begins before the number may end after it. */
const ROWS_BEFORE = rowsOf({
  looked: `(select ${COLUMNS} from event
             where (tenant, last_seq) >= ($1, $3::bigint) and (tenant, last_seq) < ($1, 9e18::bigint)
             order by tenant, last_seq limit 1)
           union all
           (select ${COLUMNS} from event
             where (tenant, last_seq) < ($1, $3::bigint) and (tenant, last_seq) > ($1, -1::bigint)
             order by tenant desc, last_seq desc limit $6)`,
  order: "desc",
  upTo: "min(last_seq - count + 1)",
});

// One event more than the limit shows whether there are more. A row is returned if those before it left bytes for it.
const EVENTS = `
  select * from (
    select *, count(*) over () as found, sum(bytes) over (order by ordinal) - bytes as bytes_before from (
      select c.seq, e.type, e.at, e.tenant, e.data, t.id as task_id, t.agent, n.lane,
             t.batch, ${SESSION_KEY} as session, t.schedule, case when e.type = 'task.completed' then t.result end as result,
             coalesce(octet_length(e.data), 0)
               + case when e.type = 'task.completed' then coalesce(octet_length(t.result), 0) else 0 end as bytes, c.ordinal
        from unnest($1::bigint[], $2::bigint[], $3::bigint[]) with ordinality c(seq, task_seq, row_seq, ordinal)
        join event e on e.last_seq = c.row_seq join task t on t.seq = c.task_seq join line n on n.id = t.line
       order by c.ordinal limit $4) next) page
   where bytes_before < $5 order by ordinal`;

export const PAGE_EVENT_FUNCTIONS = `
-- The first number of the first row that was written at this time or later; null: there is none. Times increase with
-- numbers.
create function first_event_since(p_at bigint) returns bigint language plpgsql stable as $$
declare
  v_low bigint := coalesce((select min(last_seq) from event), 1);
  v_high bigint := coalesce((select max(last_seq) from event), 0) + 1;
  v_middle bigint;
  v_row record;
begin
  while v_low < v_high loop
    v_middle := (v_low + v_high) / 2;
    select e.last_seq, e.at into v_row from event e where e.last_seq >= v_middle order by e.last_seq limit 1;
    if v_row.last_seq is null or v_row.at >= p_at then v_high := v_middle;
    else v_low := v_row.last_seq + 1; end if;
  end loop;
  return (select e.last_seq - e.count + 1 from event e where e.last_seq >= v_low order by e.last_seq limit 1);
end $$;
`;
