import type { TaskRowRecord } from "../../../model/task-record.ts";
import type { TaskState } from "../../../model/task-state.ts";
import {
  cutShort,
  ROW_TEXT_MAX,
  TITLE_READ,
  TITLED_BYTES_MAX,
  titleOf,
} from "../../../model/text/task-title.ts";
import type { ListedTasks, ListTasksParams } from "../../storage.ts";
import { behindPrefix, ENDED_LOOKED_MAX, mergeWalks, type Walk } from "../../task-listing.ts";
import type { PostgresDatabase } from "../connection/database.ts";
import { endedQuery, type FoundEnds, mergeEnds } from "./list-ended.ts";
import { AGENTS_MERGED_MAX, conditionsFor, FEW, type LookedAround, listQuery } from "./list-query.ts";
import { TASK_COLUMNS, TASK_TABLES, type TaskRow, toTaskRecords } from "./task-row.ts";

export async function listTasks(db: PostgresDatabase, params: ListTasksParams): Promise<ListedTasks> {
  const { found, nextCursor } = await findTasks(db, params);
  const bytesMax = params.bytesMax ?? Number.MAX_SAFE_INTEGER;
  const rows = await db.readDurably<TaskRow & { readonly up_to: string }>({
    name: "read_listed_tasks",
    text: `select ${TASK_COLUMNS}, p.up_to
             from (select u.seq, u.nth, sum(octet_length(b.spec) + coalesce(octet_length(b.result), 0)) over (order by u.nth)
                            as up_to
                     from unnest($1::bigint[]) with ordinality u(seq, nth) join task b on b.seq = u.seq) p
             join (${TASK_TABLES}) on t.seq = p.seq
            where p.up_to <= $2 or p.nth = 1 order by p.nth`,
    values: [found.map(({ seq }) => seq), bytesMax],
  });
  const last = rows.at(-1);
  const bytes = Number(last?.up_to ?? 0);
  const tasks = stillIn(await toTaskRecords(db, rows), params.states);
  // Tasks after the last row exceed the byte limit, or have been deleted meanwhile.
  const index = found.findIndex(({ seq }) => String(seq) === last?.seq);
  const cut = index === -1 || index === found.length - 1 ? undefined : found[index];
  return { tasks, bytes, nextCursor: cut?.cursor ?? nextCursor };
}

export async function listTaskRows(
  db: PostgresDatabase,
  params: ListTasksParams,
): Promise<{ rows: TaskRowRecord[]; nextCursor: number | null }> {
  const { found, nextCursor } = await findTasks(db, params);
  const rows = await db.readDurably<RowOfTask>({
    name: "read_listed_rows",
    text: `select ${ROW_COLUMNS} from unnest($1::bigint[]) with ordinality u(seq, nth)
             join (${TASK_TABLES}) on t.seq = u.seq order by u.nth`,
    values: [found.map(({ seq }) => seq)],
  });
  return { rows: stillIn(rows.map(toRowRecord), params.states), nextCursor };
}

/** A task may change its state between being found and being read. It then belongs in another list. */
function stillIn<Row extends { readonly state: TaskState }>(
  rows: Row[],
  states: readonly TaskState[] | undefined,
): Row[] {
  return states === undefined ? rows : rows.filter(({ state }) => states.includes(state));
}

interface RowOfTask {
  readonly seq: string;
  readonly id: string;
  readonly agent: string;
  readonly lane: string;
  readonly priority: number;
  readonly state: TaskState;
  readonly created_at: string;
  readonly started_at: string | null;
  readonly completed_at: string | null;
  readonly attempts: number;
  readonly tokens: string | null;
  readonly error: string | null;
  readonly spec: string | null;
}

const ROW_COLUMNS = `
  t.seq, t.id, t.agent, n.lane, t.priority, coalesce(l.state, t.resting_state) as state, t.created_at,
  coalesce(t.started_at, case when l.state = 'running' then l.started_at end) as started_at, t.completed_at, coalesce(l.attempt, t.executions) as attempts,
  t.input_tokens + t.output_tokens as tokens, left(t.error, ${ROW_TEXT_MAX + 1}) as error,
  case when octet_length(t.spec) <= ${TITLED_BYTES_MAX} then left(t.spec, ${TITLE_READ}) end as spec`;

function toRowRecord(row: RowOfTask): TaskRowRecord {
  return {
    seq: Number(row.seq),
    id: row.id,
    title: row.spec === null ? null : titleOf(row.spec),
    agent: row.agent,
    lane: row.lane,
    priority: row.priority,
    state: row.state,
    createdAt: Number(row.created_at),
    startedAt: row.started_at === null ? null : Number(row.started_at),
    completedAt: row.completed_at === null ? null : Number(row.completed_at),
    attempts: row.attempts,
    tokens: row.tokens === null ? null : Number(row.tokens),
    error: row.error === null ? null : cutShort(row.error),
  };
}

/** A task of a page, and the cursor of the page after it. */
interface FoundTask {
  readonly seq: number;
  readonly cursor: number;
}

async function findTasks(
  db: PostgresDatabase,
  params: ListTasksParams,
): Promise<{ readonly found: readonly FoundTask[]; readonly nextCursor: number | null }> {
  if (params.states?.length === 0) return { found: [], nextCursor: null };
  const look = await lookAround(db, params);
  if (params.session !== undefined && look.session === null) return { found: [], nextCursor: null };
  if (params.order === "completed") {
    const query = endedQuery(params, (values) => conditionsFor(params, look, values));
    const pages = query === null ? [] : await db.read<FoundEnds>(query);
    params.onLooked?.(endsLookedAt(pages, params.lookedMax ?? ENDED_LOOKED_MAX));
    return mergeEnds(pages, params);
  }
  const { order = "newest", limit } = params;
  const query = listQuery(params, look);
  const rows = query === null ? [] : await db.read<FoundWalk>(query);
  params.onLooked?.(rows.reduce((sum, { looked }) => sum + Number(looked), 0));
  const walks = rows.map(
    ({ found, reached }): Walk => ({
      found: (found ?? []).map(Number),
      reached: reached === null ? null : Number(reached),
    }),
  );
  const merged = mergeWalks(walks, { order, limit });
  return {
    found: merged.found.map((seq) => ({ seq, cursor: seq })),
    nextCursor: merged.nextCursor,
  };
}

/** The database does not count the ends it reads. A page that reached its limit is taken to have read its share of the total. */
function endsLookedAt(pages: readonly FoundEnds[], max: number): number {
  const each = Math.ceil(max / Math.max(pages.length, 1));
  return pages.reduce((sum, { found, reached }) => sum + (reached === null ? (found?.length ?? 0) : each), 0);
}

interface FoundWalk {
  readonly found: readonly string[] | null;
  /** How many tasks were read. */
  readonly looked: string;
  readonly reached: string | null;
}

/** Up to this many of the newest tasks, whose times are not recorded yet, are scanned. */
const UNSPANNED_MAX = 5_000;

async function lookAround(db: PostgresDatabase, params: ListTasksParams): Promise<LookedAround> {
  const { tenant, session, states, lane, agent, search, from, to, order } = params;
  const timed = order !== "completed" && (from !== undefined || to !== undefined);
  const [row] = await db.read<{
    session: string | null;
    resting: string;
    ready: string;
    agents: string[];
    ids: number;
    first: string | null;
    last: string | null;
  }>({
    name: `look_around_${timed}`,
    text: `select (select id from session where tenant = $1 and key = $2) as session,
                  (select coalesce(sum(tasks), 0) from tally where tenant = $1 and state = any ($3)) as resting,
                  case when 'queued' = any ($3)
                       then (select coalesce(sum(ready + parked), 0) from line where tenant = $1 and waiting > 0) else 0
                       end as ready,
                  case when $4::text is null then '{}'
                       else array(select distinct agent from line where tenant = $1 and lane = $4 limit ${AGENTS_MERGED_MAX + 1})
                       end as agents,
                  case when $5::text is null then 0
                       else (select count(*) from (select 1 from task where id >= $5 and id < $6 limit ${FEW + 1}) i)
                       end::integer as ids,
                  ${timed ? "s.first, s.last" : "null as first, null as last, $7::bigint, $8::bigint"}
             from ${timed ? `(${SEQS_OF_SPAN}) s` : "(select) s"}`,
    values: [
      tenant,
      session ?? null,
      states ?? [],
      agent === undefined ? (lane ?? null) : null,
      search ?? null,
      search === undefined ? null : behindPrefix(search),
      from ?? 0,
      to ?? Number.MAX_SAFE_INTEGER,
    ],
  });
  if (row === undefined) throw new Error("one row is always there");
  const nothing = timed && row.first === null;
  return {
    session: row.session,
    resting: Number(row.resting),
    ready: Number(row.ready),
    agents: row.agents,
    ids: row.ids,
    above: timed && !nothing ? Number(row.first) - 1 : 0,
    below: nothing ? 0 : timed ? Number(row.last) + 1 : Number.MAX_SAFE_INTEGER,
  };
}

/**
 * The first and the last seq that a task created in a span of time may have. A clock may be set back, so seqs and times need not
 * be in the same order. The first and the last time of each thousand tasks is recorded, and the newest tasks are scanned.
 */
const SEQS_OF_SPAN = `
  with tail as materialized (
    select seq, created_at from task where seq > (select coalesce(max(last_seq), 0) from task_span)
     order by seq limit ${UNSPANNED_MAX})
  select min(f.first_seq) as first, max(f.last_seq) as last from (
    select first_seq, last_seq from task_span where last_at >= $7 and first_at < $8
    union all select seq, seq from tail where created_at >= $7 and created_at < $8
    -- After the newest tasks that are scanned, any task may be of that time.
    union all select max(seq), 9e15::bigint from tail having count(*) = ${UNSPANNED_MAX}) f`;

/** Records when the tasks of the next thousands were created. They are complete: seqs are assigned in order of commit. */
export async function recordSpans(db: PostgresDatabase): Promise<void> {
  await db.read({ name: "record_spans", text: RECORD_SPANS, values: [] });
}

/** How many tasks one row of task_span describes. */
const TASKS_PER_SPAN = 1_000;
/** Rows of task_span that one call adds. */
const SPANS_MAX = 50;

const RECORD_SPANS = `
  insert into task_span (last_seq, first_seq, first_at, last_at)
  select b.last_seq, s.first_seq, s.first_at, s.last_at
    from (select coalesce((select max(last_seq) from task_span), -1) as upto, (select max(seq) from task) as newest) w
   cross join lateral generate_series((w.upto + 1) / ${TASKS_PER_SPAN} * ${TASKS_PER_SPAN} + ${TASKS_PER_SPAN - 1}, least(w.newest - 1, w.upto + ${SPANS_MAX * TASKS_PER_SPAN}), ${TASKS_PER_SPAN}) b(last_seq)
   cross join lateral (
     select min(t.seq) as first_seq, min(t.created_at) as first_at, max(t.created_at) as last_at
       from task t where t.seq > b.last_seq - ${TASKS_PER_SPAN} and t.seq <= b.last_seq) s
   where s.first_seq is not null
  on conflict (last_seq) do nothing`;
