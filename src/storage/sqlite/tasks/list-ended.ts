import { type EventType, STATE_AFTER } from "../../../model/event.ts";
import { isTerminal, type TaskState, TERMINAL_STATES } from "../../../model/task-state.ts";
import type { ListTasksParams } from "../../storage.ts";
import { ENDED_LOOKED_MAX } from "../../task-listing.ts";
import type { SqliteDatabase } from "../connection/database.ts";

interface EndedTask {
  readonly seq: number;
  /** The number of the event of its end. */
  readonly cursor: number;
}

interface EndRow {
  readonly at: number;
  readonly last_seq: number;
  readonly count: number;
}

/** The position of an end in the order of ends: its time, and the number of its event. */
interface Position {
  readonly at: number;
  readonly seq: number;
}

interface EndedList {
  readonly filters: Readonly<Record<string, unknown>>;
  readonly conditions: string;
}

/**
 * Tasks in the order of their ends, the last one first. The event log serves as the index: tasks that end together share one
 * row of it, while an index on tasks would be written for each.
 */
export function findEnded(
  db: SqliteDatabase,
  params: ListTasksParams,
  list: EndedList,
): { readonly found: readonly EndedTask[]; readonly nextCursor: number | null } {
  const { limit, cursor, to = Number.MAX_SAFE_INTEGER } = params;
  const before = cursor === undefined ? NOW : positionOf(db, cursor);
  // The log loses its oldest entries first: if the entry of the cursor is deleted, all earlier ends are, too.
  if (before === null) return { found: [], nextCursor: null };
  const start = before.at < to ? before : { at: to - 1, seq: Number.MAX_SAFE_INTEGER };
  const types = endsAskedFor(params.states);
  const walks = types.map((type) => endsOfType(db, params, list, { type, start, share: types.length }));
  params.onLooked?.(walks.reduce((sum, { looked }) => sum + looked, 0));
  const end = walks
    .flatMap(({ reached }) => reached ?? [])
    .sort(latestFirst)
    .at(0);
  const all = walks
    .flatMap((walk) => walk.found)
    .filter((task) => end === undefined || latestFirst(task, end) <= 0)
    .sort(latestFirst);
  // A task that was retried and ended again within the same millisecond is found twice: its last end counts.
  const found = [...new Map(all.toReversed().map((each) => [each.task, each])).values()].sort(latestFirst);
  const page = found.slice(0, limit).map(({ task, seq }) => ({ seq: task, cursor: seq }));
  return { found: page, nextCursor: (found.length > limit ? page.at(-1)?.cursor : end?.seq) ?? null };
}

const NOW: Position = { at: Number.MAX_SAFE_INTEGER, seq: Number.MAX_SAFE_INTEGER };

function latestFirst(a: Position, b: Position): number {
  return b.at - a.at || b.seq - a.seq;
}

/** The ends of one type. `reached`: the last end that was read; null: there are no earlier ones. */
function endsOfType(
  db: SqliteDatabase,
  { tenant, limit, from = 0, lookedMax = ENDED_LOOKED_MAX }: ListTasksParams,
  { filters, conditions }: EndedList,
  { type, start, share }: { type: EventType; start: Position; share: number },
): { found: (Position & { readonly task: number })[]; reached: Position | null; looked: number } {
  const found: (Position & { readonly task: number })[] = [];
  const tasks = db.prepare<{ task: number; seq: number }>(tasksEnded(conditions));
  const rows = rowsBefore(db, { tenant, type, from, ...start }, lookedMax / share);
  let looked = 0;
  for (const row of rows.taken) {
    const { last_seq: last, at } = row;
    const ended = tasks.all({
      ...filters,
      state: STATE_AFTER[type],
      row: last,
      startAt: start.at,
      start: start.seq,
    });
    found.push(...ended.map((end) => ({ ...end, at })));
    looked += row.count;
    if (found.length > limit) return { found, reached: { at, seq: firstOf(row) }, looked };
  }
  const last = rows.taken.at(-1);
  const reached = rows.more && last !== undefined ? { at: last.at, seq: firstOf(last) } : null;
  return { found, reached, looked };
}

/** Rows of the log until they hold `max` ends: whole rows, and at least one. */
function rowsBefore(
  db: SqliteDatabase,
  values: Position & { readonly tenant: string; readonly type: EventType; readonly from: number },
  max: number,
): { taken: EndRow[]; more: boolean } {
  const taken: EndRow[] = [];
  let ends = 0;
  for (const row of db.prepare<EndRow>(ENDS_BEFORE).iterate(values)) {
    if (ends >= max) return { taken, more: true };
    taken.push(row);
    ends += row.count;
  }
  return { taken, more: false };
}

function firstOf({ last_seq, count }: EndRow): number {
  return last_seq - count + 1;
}

function endsAskedFor(states: readonly TaskState[] = TERMINAL_STATES): EventType[] {
  return [...new Set(states)].filter(isTerminal).map((state) => TYPE_OF_END[state]);
}

const TYPE_OF_END = {
  done: "task.completed",
  failed: "task.failed",
  cancelled: "task.cancelled",
  rejected: "task.rejected",
} as const;

function positionOf(db: SqliteDatabase, seq: number): Position | null {
  const row = db
    .prepare<EndRow>("select at, last_seq, count from event where last_seq >= ? order by last_seq limit 1")
    .get(seq);
  return row === undefined || firstOf(row) > seq ? null : { at: row.at, seq };
}

/** The predicate of `event_of_end`. */
function isEnd(e: string): string {
  return `(${Object.values(TYPE_OF_END)
    .map((type) => `${e}.type = '${type}'`)
    .join(" or ")})`;
}

/** Includes the row that holds the start: its ends before the start are not listed yet. */
const ENDS_BEFORE = `
  select e.at, e.last_seq, e.count from event e indexed by event_of_end
   where e.tenant = @tenant and e.type = @type and ${isEnd("e")} and e.at >= @from and e.at <= @at
     and (e.at < @at or e.last_seq - e.count + 1 < @seq)
   order by e.at desc, e.last_seq desc`;

/**
 * `+@state`: with a bare `@state` SQLite would check whether a partial index applies, and plan the statement again for every
 * row.
 *
 * A task may have been retried since: its last end counts. At the start of a page, tasks are left out that the previous page
 * listed because they ended again within the same millisecond.
 */
function tasksEnded(conditions: string): string {
  return `
    select t.seq as task, e.last_seq - e.count + 1 + j.key as seq
      from event e cross join json_each(e.task_seqs) j cross join task t on t.seq = j.value
      join line n on n.id = t.line left join lease l on l.task_seq = t.seq
     where e.last_seq = @row and t.completed_at = e.at and t.resting_state = +@state
       and (e.at < @startAt or e.last_seq - e.count + 1 + j.key < @start)
       and (e.at <> @startAt or not exists (
         select 1 from event o indexed by event_of_end cross join json_each(o.task_seqs) k
          where o.tenant = e.tenant and o.type = e.type and ${isEnd("o")} and o.at = e.at
            and o.last_seq > e.last_seq and k.value = t.seq))
       and ${conditions}`;
}
