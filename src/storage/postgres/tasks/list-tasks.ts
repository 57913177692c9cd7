import type { TaskRowRecord } from "../../../model/task-record.ts";
import { HELD_STATES, type TaskState } from "../../../model/task-state.ts";
import {
  cutShort,
  ROW_TEXT_MAX,
  TITLE_READ,
  TITLED_BYTES_MAX,
  titleOf,
} from "../../../model/text/task-title.ts";
import type { ListedTasks, ListTasksParams } from "../../storage.ts";
import {
  asksForMore,
  behindPrefix,
  ENDED_LOOKED_MAX,
  LISTED_LOOKED_MAX,
  type ListFilter,
  mergeWalks,
  type Walk,
} from "../../task-listing.ts";
import type { PostgresDatabase } from "../connection/database.ts";
import { untilDurable } from "../connection/until-durable.ts";
import { endedQuery, type FoundEnds, mergeEnds } from "./list-ended.ts";
import { TASK_COLUMNS, TASK_TABLES, type TaskRow, toTaskRecords } from "./task-row.ts";

export async function listTasks(db: PostgresDatabase, params: ListTasksParams): Promise<ListedTasks> {
  const { found, nextCursor } = await findTasks(db, params);
  const bytesMax = params.bytesMax ?? Number.MAX_SAFE_INTEGER;
  const rows = await db.read<TaskRow & { readonly up_to: string }>({
    name: "read_listed_tasks",
    text: `select ${TASK_COLUMNS}, p.up_to
             from (select u.seq, u.place, sum(octet_length(b.spec) + coalesce(octet_length(b.result), 0)) over (order by u.place)
                            as up_to
                     from unnest($1::bigint[]) with ordinality u(seq, place) join task b on b.seq = u.seq) p
             join (${TASK_TABLES}) on t.seq = p.seq
            where p.up_to <= $2 or p.place = 1 order by p.place`,
    values: [found.map(({ seq }) => seq), bytesMax],
  });
  await untilDurable(
    db,
    rows.map(({ held_since }) => held_since),
  );
  const last = rows.at(-1);
  const bytes = Number(last?.up_to ?? 0);
  const tasks = stillIn(await toTaskRecords(db, rows), params.states);
  // Tasks after the last row exceed the byte limit, or have been deleted meanwhile.
  const place = found.findIndex(({ seq }) => String(seq) === last?.seq);
  const cut = place === -1 || place === found.length - 1 ? undefined : found[place];
  return { tasks, bytes, nextCursor: cut?.cursor ?? nextCursor };
}

export async function listTaskRows(
  db: PostgresDatabase,
  params: ListTasksParams,
): Promise<{ rows: TaskRowRecord[]; nextCursor: number | null }> {
  const { found, nextCursor } = await findTasks(db, params);
  const rows = await db.read<RowOfTask>({
    name: "read_listed_rows",
    text: `select ${ROW_COLUMNS} from unnest($1::bigint[]) with ordinality u(seq, place)
             join (${TASK_TABLES}) on t.seq = u.seq order by u.place`,
    values: [found.map(({ seq }) => seq)],
  });
  await untilDurable(
    db,
    rows.map(({ held_since }) => held_since),
  );
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
  readonly held_since: string | null;
}

const ROW_COLUMNS = `
  t.seq, t.id, t.agent, n.lane, t.priority, coalesce(l.state, t.resting_state) as state, t.created_at,
  coalesce(t.started_at, l.started_at) as started_at, t.completed_at, coalesce(l.attempt, t.executions) as attempts,
  t.input_tokens + t.output_tokens as tokens, left(t.error, ${ROW_TEXT_MAX + 1}) as error,
  case when octet_length(t.spec) <= ${TITLED_BYTES_MAX} then left(t.spec, ${TITLE_READ}) end as spec,
  l.started_at as held_since`;

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

/** What decides which index is used. */
export interface LookedAround {
  /** Null: there is no session with this key. */
  readonly session: string | null;
  /** How many tasks have one of the requested states as their resting state. */
  readonly resting: number;
  /** How many of them are queued and not held. */
  readonly ready: number;
  /** Agents with tasks in the requested lane: a few more than are merged at most. */
  readonly agents: readonly string[];
  /** How many ids begin with the search text: a few more than are read at most. */
  readonly ids: number;
  readonly above: number;
  readonly below: number;
}

/** Up to this many tasks are all read, whatever the other filters. */
const FEW = 1_000;
/** Up to this many agents are read one by one and merged. */
const AGENTS_MERGED_MAX = 16;
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
    -- Behind as many as are looked through, any may be of that time.
    union all select max(seq), 9e15::bigint from tail having count(*) = ${UNSPANNED_MAX}) f`;

/** An index that has tasks in order of acceptance. */
interface Source {
  /** The columns of the index on `task t` before the seq, and their values. */
  readonly columns: readonly (readonly [column: string, value: string])[];
  /** The predicate of the index. */
  readonly condition?: string;
  /** The filters that all its tasks match. Null: there are so few tasks that all may be read. */
  readonly answers: readonly ListFilter[] | null;
}

/** A statement that returns a row for each source: the tasks that match, and how far it read. Null: there is nothing to read. */
export function listQuery(
  params: ListTasksParams,
  look: LookedAround,
): { text: string; values: unknown[] } | null {
  const { order = "newest", limit, cursor, lookedMax = LISTED_LOOKED_MAX } = params;
  const isNewest = order === "newest";
  const above = Math.max(look.above, isNewest ? 0 : (cursor ?? 0));
  const below = Math.min(look.below, isNewest ? (cursor ?? look.below) : look.below);
  const values: unknown[] = [params.tenant, above, below];
  const bind = (value: unknown) => `$${values.push(value)}`;
  const sources = sourcesFor(params, look, bind);
  if (sources.length === 0) return null;
  const bounded = sources.filter(({ answers }) => answers !== null).length;
  const looked = Math.max(Math.floor(lookedMax / Math.max(bounded, 1)), 1);
  const direction = isNewest ? "desc" : "asc";
  const walks = sources.map(({ columns, condition = "true", answers }) => {
    const fitting = conditionsFor(params, look, values, answers ?? []);
    const [last] = columns.slice(-1);
    const row = last === undefined ? ["t.seq"] : [last[0], "t.seq"];
    const rowAt = (seq: string) => `(${last === undefined ? seq : `${last[1]}, ${seq}`})`;
    const equal = columns.slice(0, -1).map(([column, value]) => `${column} = ${value}`);
    // The last column and the seq are compared and ordered together, so that the planner can only use the index that has them in
    // this order. Where most tasks are of one tenant, it would otherwise walk all tasks: for a tenant without any, to the end.
    const between = [
      ...equal,
      `(${row.join(", ")}) > ${rowAt("$2")} and (${row.join(", ")}) < ${rowAt("$3")}`,
      condition,
    ].join(" and ");
    const inOrder = row.map((column) => `${column} ${direction}`).join(", ");
    const lead = row.length > 1 ? row[0] : "null";
    const isBounded = answers !== null && asksForMore(params, answers);
    const inRange = `from task t where ${between} order by ${inOrder}`;
    // Stops at the last task that the page needs. Only if too few match does it count how many were read.
    const pageFull = `f.count > ${limit}`;
    return `
      select f.found, ${isBounded ? `case when ${pageFull} then f.looked else s.count end` : "f.looked"} as looked,
             ${isBounded ? `case when s.count = ${looked} then s.last end` : "null::bigint"} as reached
        from (select array_agg(t.seq order by t.nth) as found, coalesce(max(t.nth), 0) as looked, count(*) as count
                from (select t.seq, t.nth
                        from (select t.*, ${lead} as lead, row_number() over (order by ${inOrder}) as nth ${inRange}
                              ${isBounded ? `limit ${looked}` : ""}) t
                       where ${fitting} order by t.lead ${direction}, t.seq ${direction} limit ${limit + 1}) t) f
        ${
          isBounded
            ? `cross join lateral (
                 select count(*) as count, ${isNewest ? "min" : "max"}(t.seq) as last
                   from (select t.seq ${inRange} limit ${looked}) t where not ${pageFull}) s`
            : ""
        }`;
  });
  return { text: walks.join(" union all "), values };
}

/**
 * The conditions of a list, without those that the index ensures. Repeating these would make the planner expect fewer rows, and
 * read and sort all there are. No condition is written the way an index has it.
 */
function conditionsFor(
  params: ListTasksParams,
  look: LookedAround,
  values: unknown[],
  answered: readonly ListFilter[] = [],
): string {
  const conditions = ["(t.tenant = $1) is true"];
  const filter = (name: ListFilter, value: unknown, condition: (value: string) => string) => {
    if (params[name] === undefined || answered.includes(name)) return;
    conditions.push(`(${condition(`$${values.push(value)}`)}) is true`);
  };
  const { agent, priority, priorityMax, batch, lane, schedule, search, states } = params;
  filter("agent", agent, (value) => `t.agent = ${value}`);
  filter("priority", priority, (value) => `t.priority = ${value}`);
  filter("priorityMax", priorityMax, (value) => `t.priority <= ${value}`);
  filter("batch", batch, (value) => `t.batch = ${value}`);
  filter(
    "lane",
    lane,
    (value) => `t.line in (select n.id from line n where n.tenant = $1 and n.lane = ${value})`,
  );
  filter("session", look.session, (value) => `t.session = ${value}`);
  filter("schedule", schedule, (value) => `t.schedule = ${value}`);
  filter(
    "search",
    search,
    (value) =>
      `starts_with(t.id, ${value}) or case when t.batch is not null then t.batch = ${value} or t.spec::jsonb ->> 'key' = ${value} end`,
  );
  if (params.order !== "completed") {
    filter("from", params.from, (value) => `t.created_at >= ${value}`);
    filter("to", params.to, (value) => `t.created_at < ${value}`);
  }
  filter(
    "states",
    states,
    (value) =>
      `coalesce((select l.state from lease l where l.task_seq = t.seq), t.resting_state) = any (${value})`,
  );
  return conditions.join(" and ");
}

function sourcesFor(params: ListTasksParams, look: LookedAround, bind: (value: unknown) => string): Source[] {
  const { batch, search, session, schedule, agent, priority, priorityMax } = params;
  if (batch !== undefined) return [ofBatch(bind(batch))];
  if (search !== undefined) return sourcesOfSearch(search, look, bind);
  if (session !== undefined)
    return [
      {
        columns: [["t.session + 0", `${bind(look.session)}::bigint`]],
        condition: "t.session + 0 is not null",
        answers: ["session"],
      },
    ];
  if (schedule !== undefined)
    return [
      {
        columns: [["t.schedule + 0", `${bind(schedule)}::bigint`]],
        condition: "t.schedule + 0 is not null",
        answers: ["schedule"],
      },
    ];
  const byState = sourcesOfStates(params.states, look);
  if (byState !== null && look.resting <= FEW) return byState;
  if (agent !== undefined) return [{ columns: [OF_TENANT, ["t.agent", bind(agent)]], answers: ["agent"] }];
  if (priority !== undefined && priority !== 2)
    return [
      {
        columns: [OF_TENANT, ["t.priority", `${bind(priority)}::integer`]],
        condition: "t.priority <> 2",
        answers: ["priority"],
      },
    ];
  if (priorityMax !== undefined && priorityMax <= 0)
    return [
      {
        columns: [OF_TENANT],
        condition: "t.priority <= 0",
        answers: priorityMax === 0 ? ["priorityMax"] : [],
      },
    ];
  if (byState !== null) return byState;
  if (params.lane !== undefined && look.agents.length <= AGENTS_MERGED_MAX) {
    // An agent may have tasks in other lanes, too. Without agents there is nothing to read.
    return look.agents.map((each) => ({
      columns: [OF_TENANT, ["t.agent", bind(each)]],
      answers: ["agent"],
    }));
  }
  return [{ columns: [OF_TENANT], answers: [] }];
}

const OF_TENANT = ["t.tenant", "$1"] as const;

function ofBatch(batch: string): Source {
  return { columns: [["t.batch", batch]], condition: "t.batch is not null", answers: null };
}

/** Reads each state through its own index. Null: one of them has none. */
function sourcesOfStates(states: readonly TaskState[] | undefined, look: LookedAround): Source[] | null {
  if (states === undefined || states.includes("done")) return null;
  if (states.includes("queued") && look.ready > FEW) return null;
  const sources = states
    .filter((state) => state !== "queued" && !isHeld(state))
    .map(
      (state): Source => ({
        columns: [OF_TENANT, ["t.listed_state", `'${state}'`]],
        condition: "t.listed_state is not null",
        answers: ["states"],
      }),
    );
  if (states.includes("queued")) sources.push({ columns: [], condition: IS_QUEUED, answers: null });
  if (states.some(isHeld))
    sources.push({
      columns: [],
      condition: "t.seq = any (array(select h.task_seq from lease h))",
      answers: null,
    });
  return sources;
}

/** Ready, or parked by a batch, a key or a session. */
const IS_QUEUED = `t.seq = any (array(
  select r.task_seq from line n join ready r on r.line = n.id where n.tenant = $1 and n.ready > 0
  union all select p.seq from task p where p.tenant = $1 and p.parked is not null
  union all select u.task_seq from session s join turn u on u.session = s.id and u.stage = 'parked'
             where s.tenant || '' = $1 and s.parked > 0))`;

function isHeld(state: TaskState): boolean {
  return (HELD_STATES as readonly TaskState[]).includes(state);
}

function sourcesOfSearch(search: string, look: LookedAround, bind: (value: unknown) => string): Source[] {
  const text = bind(search);
  const byId: Source =
    look.ids > FEW
      ? { columns: [OF_TENANT], answers: [] }
      : {
          columns: [],
          condition: `t.seq = any (array(select i.seq from task i where i.id >= ${text} and i.id < ${bind(behindPrefix(search))}))`,
          answers: null,
        };
  return [
    byId,
    ofBatch(text),
    {
      columns: [OF_TENANT, ["(t.spec::jsonb ->> 'key')", text]],
      condition: "t.batch is not null",
      answers: ["search"],
    },
  ];
}

/** Records when the tasks of the next thousands were created. They are complete: seqs are assigned in order of commit. */
export async function noteSpans(db: PostgresDatabase): Promise<void> {
  await db.read({ name: "note_spans", text: NOTE_SPANS, values: [] });
}

/** Thousands per call. */
const SPANS_MAX = 50;

const NOTE_SPANS = `
  insert into task_span (last_seq, first_seq, first_at, last_at)
  select b.last_seq, s.first_seq, s.first_at, s.last_at
    from (select coalesce((select max(last_seq) from task_span), -1) as upto, (select max(seq) from task) as newest) w
   cross join lateral generate_series((w.upto + 1) / 1000 * 1000 + 999, least(w.newest - 1, w.upto + ${SPANS_MAX} * 1000), 1000) b(last_seq)
   cross join lateral (
     select min(t.seq) as first_seq, min(t.created_at) as first_at, max(t.created_at) as last_at
       from task t where t.seq > b.last_seq - 1000 and t.seq <= b.last_seq) s
   where s.first_seq is not null
  on conflict (last_seq) do nothing`;
