import { PRIORITY_CRITICAL } from "../../../model/priority.ts";
import type { TaskRecord, TaskRowRecord } from "../../../model/task-record.ts";
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
  LISTED_LOOKED_MAX,
  type ListFilter,
  mergeWalks,
  type Walk,
} from "../../task-listing.ts";
import type { SqliteDatabase } from "../connection/database.ts";
import { findEnded } from "./list-ended.ts";
import { TASK_COLUMNS, type TaskRow, taskTables, toTaskRecord } from "./task-row.ts";
import { seqsOfSpan } from "./tasks-of-agent-queue.ts";

export async function listTasks(db: SqliteDatabase, params: ListTasksParams): Promise<ListedTasks> {
  return db.read(() => {
    const { found, nextCursor } = findTasks(db, params);
    const read = db.prepare<TaskRow>(`select ${TASK_COLUMNS} from ${taskTables()} where t.seq = ?`);
    const tasks: TaskRecord[] = [];
    let bytes = 0;
    for (const { seq } of found) {
      const row = read.get(seq) as TaskRow;
      const own = row.spec.length + (row.result?.length ?? 0);
      const before = found[tasks.length - 1];
      if (before !== undefined && bytes + own > (params.bytesMax ?? Number.POSITIVE_INFINITY))
        return { tasks, bytes, nextCursor: before.cursor };
      tasks.push(toTaskRecord(db, row));
      bytes += own;
    }
    return { tasks, bytes, nextCursor };
  });
}

export async function listTaskRows(
  db: SqliteDatabase,
  params: ListTasksParams,
): Promise<{ rows: TaskRowRecord[]; nextCursor: number | null }> {
  return db.read(() => {
    const { found, nextCursor } = findTasks(db, params);
    const read = db.prepare<RowOfTask>(`select ${ROW_COLUMNS} from ${taskTables()} where t.seq = ?`);
    return { rows: found.map(({ seq }) => toRowRecord(read.get(seq) as RowOfTask)), nextCursor };
  });
}

type RowOfTask = Omit<TaskRowRecord, "title" | "error"> & {
  readonly spec: string | null;
  readonly error: string | null;
};

/** SQLite knows `octet_length` without reading the text. */
const ROW_COLUMNS = `
  t.seq, t.id, t.agent, n.lane, t.priority, coalesce(l.state, t.resting_state) as state, t.created_at as createdAt,
  coalesce(t.started_at, iif(l.state = 'running', l.started_at, null)) as startedAt, t.completed_at as completedAt,
  coalesce(l.attempt, t.executions) as attempts, t.input_tokens + t.output_tokens as tokens,
  substr(t.error, 1, ${ROW_TEXT_MAX + 1}) as error,
  iif(octet_length(t.spec) <= ${TITLED_BYTES_MAX}, substr(t.spec, 1, ${TITLE_READ}), null) as spec`;

function toRowRecord({ spec, error, ...row }: RowOfTask): TaskRowRecord {
  return {
    ...row,
    title: spec === null ? null : titleOf(spec),
    error: error === null ? null : cutShort(error),
  };
}

/** A task of a page, and the cursor of a page that would follow it. */
interface FoundTask {
  readonly seq: number;
  readonly cursor: number;
}

function findTasks(
  db: SqliteDatabase,
  params: ListTasksParams,
): { readonly found: readonly FoundTask[]; readonly nextCursor: number | null } {
  const filters = bindFilters(db, params);
  if (filters === null) return { found: [], nextCursor: null };
  if (params.order === "completed") return findEnded(db, params, { filters, conditions: CONDITIONS });
  const { order = "newest", limit, cursor, lookedMax = LISTED_LOOKED_MAX } = params;
  const span = seqsOfSpan(db, params);
  const isNewest = order === "newest";
  const range = {
    above: Math.max(span.above, isNewest ? 0 : (cursor ?? 0)),
    below: Math.min(span.below, isNewest ? (cursor ?? span.below) : span.below),
  };
  const sources = sourcesFor(db, params, filters);
  const bounded = sources.filter(({ answers }) => answers !== null).length;
  const each = Math.max(Math.floor(lookedMax / Math.max(bounded, 1)), 1);
  const walks = sources.map((source) =>
    walk(db, source, {
      values: { ...filters, entered: db.enteredUpTo, ...source.values, ...range },
      params,
      order,
      limit,
      looked: each,
    }),
  );
  params.onLooked?.(walks.reduce((sum, walk) => sum + walk.looked, 0));
  const { found, nextCursor } = mergeWalks(walks, { order, limit });
  return { found: found.map((seq) => ({ seq, cursor: seq })), nextCursor };
}

/**
 * One index to read tasks from, in order of acceptance. Without statistics SQLite would guess, and sort all tasks of a tenant
 * to find the newest.
 */
interface Source {
  /** The table or index with the entries, without the tasks. `by`: the column that they are ordered by. */
  readonly entries: string;
  readonly by: string;
  readonly condition: string;
  /** Joins the task to an entry; left out: the entry is the task. */
  readonly join?: string;
  readonly values?: Readonly<Record<string, unknown>>;
  /** The filters that all entries match. Null: there are so few entries that all may be read. */
  readonly answers: readonly ListFilter[] | null;
  /** How many entries there are at most, if all are read; left out: few. */
  readonly size?: (db: SqliteDatabase) => number;
}

interface WalkOptions {
  readonly values: Readonly<Record<string, unknown>>;
  readonly params: ListTasksParams;
  readonly order: "newest" | "oldest";
  readonly limit: number;
  readonly looked: number;
}

function walk(db: SqliteDatabase, source: Source, options: WalkOptions): Walk & { readonly looked: number } {
  const { values, params, order, limit, looked } = options;
  const { entries, by, condition, join = "" } = source;
  const inRange = `${condition} and ${by} > @above and ${by} < @below`;
  const direction = order === "newest" ? "desc" : "asc";
  const isBounded = source.answers !== null && asksForMore(params, source.answers);
  const seen = isBounded
    ? db
        .prepare<{ count: number; last: number }>(
          `select count(*) as count, ${order === "newest" ? "min" : "max"}(seq) as last from (
             select ${by} as seq from ${entries} where ${inRange} order by ${by} ${direction} limit +@looked)`,
        )
        .get({ ...values, looked })
    : undefined;
  const reached = seen?.count === looked ? seen.last : undefined;
  const range =
    reached === undefined ? {} : order === "newest" ? { above: reached - 1 } : { below: reached + 1 };
  const found = db
    .prepare<{ seq: number }>(
      `select ${by} as seq from ${entries} ${join} join line n on n.id = t.line left join lease l on l.task_seq = t.seq
        where ${inRange} and ${CONDITIONS} order by ${by} ${direction} limit +@page`,
    )
    .all({ ...values, ...range, page: limit + 1 });
  return {
    found: found.map(({ seq }) => seq),
    reached: reached ?? null,
    looked: Math.max(found.length, seen?.count ?? source.size?.(db) ?? 0),
  };
}

type Filters = Readonly<Record<string, string | number | null>>;

/**
 * The conditions of every list, for a task `t`, its agent queue `n` and its lease `l`: one text, so that few statements are
 * prepared.
 */
const CONDITIONS = `
  t.tenant = @tenant and (@agent is null or t.agent = @agent)
  and (@states is null or instr(@states, ',' || coalesce(l.state, t.resting_state) || ',') > 0)
  and (@priority is null or t.priority = @priority) and (@priorityMax is null or t.priority <= @priorityMax)
  and (@batch is null or t.batch = @batch) and (@lane is null or n.lane = @lane)
  and (@session is null or t.session = @session) and (@schedule is null or t.schedule = @schedule)
  and (@root is null or t.root_task = @root)
  and (@search is null or (t.id >= @search and t.id < @searchEnd) or t.batch = @search
       or (t.batch is not null and json_extract(t.spec, '$.key') = @search))
  and (@from is null or t.created_at >= @from) and (@to is null or t.created_at < @to)`;

/** Null: nothing can match. */
function bindFilters(db: SqliteDatabase, params: ListTasksParams): Filters | null {
  const { session: key, search, states } = params;
  const session =
    key === undefined
      ? null
      : db
          .prepare<{ id: number }>("select id from session where tenant = ? and key = ?")
          .get(params.tenant, key)?.id;
  if (session === undefined || states?.length === 0) return null;
  return {
    tenant: params.tenant,
    agent: params.agent ?? null,
    states: states === undefined ? null : `,${states.join(",")},`,
    priority: params.priority ?? null,
    priorityMax: params.priorityMax ?? null,
    batch: params.batch ?? null,
    lane: params.lane ?? null,
    session,
    schedule: params.schedule ?? null,
    root: params.root ?? null,
    search: search ?? null,
    searchEnd: search === undefined ? null : behindPrefix(search),
    from: params.order === "completed" ? null : (params.from ?? null),
    to: params.order === "completed" ? null : (params.to ?? null),
  };
}

/**
 * An index with up to this many tasks is used at once, whatever the other filters are. With more, the one with the fewest is
 * used.
 */
const FEW = 1_000;
/** Up to this many agent queues are read one by one and merged. */
const AGENT_QUEUES_MERGED_MAX = 32;

function sourcesFor(db: SqliteDatabase, params: ListTasksParams, filters: Filters): Source[] {
  if (params.batch !== undefined) return [{ ...ofTask("task_by_batch", "t.batch = @batch"), answers: null }];
  if (params.search !== undefined) return sourcesOfSearch(db, filters);
  if (params.root !== undefined)
    return [{ ...ofTask("task_by_root", "t.root_task = @root"), answers: ["root"] }];
  if (params.session !== undefined)
    return [
      {
        ...ofTask("task_by_session", "t.session = @session and t.session is not null"),
        answers: ["session"],
      },
    ];
  if (params.schedule !== undefined)
    return [
      {
        ...ofTask("task_by_schedule", "t.schedule = @schedule and t.schedule is not null"),
        answers: ["schedule"],
      },
    ];
  const byState = sourcesOfStates(db, params);
  if (byState !== null && byState.tasks <= FEW) return byState.sources;
  const byAgentQueue = sourcesOfAgentQueues(db, params);
  if (byAgentQueue !== null && byAgentQueue.tasks <= FEW) return byAgentQueue.sources;
  const byPriority = sourcesOfPriority(params);
  if (byPriority !== null) return byPriority;
  if (byState !== null && (byAgentQueue === null || byState.tasks <= byAgentQueue.tasks))
    return byState.sources;
  return byAgentQueue?.sources ?? [FRESH, OF_TENANT];
}

/** A source for an index that has the tasks of `condition` in order of acceptance. */
function ofTask(index: string, condition: string): Omit<Source, "answers"> {
  return { entries: `task t indexed by ${index}`, by: "t.seq", condition };
}

/** The newest tasks, which are not in `task_of_line` and `task_of_tenant` yet. */
const FRESH: Source = {
  entries: "task t not indexed",
  by: "t.seq",
  condition: "t.seq > @entered",
  answers: null,
  size: (db) => db.tasksNotEntered,
};

const OF_TENANT: Source = {
  entries: "task_of_tenant x",
  by: "x.task_seq",
  condition: "x.tenant = @tenant",
  join: "cross join task t on t.seq = x.task_seq",
  answers: [],
};

/** Each state through its own index. Null: one of them has none. */
function sourcesOfStates(
  db: SqliteDatabase,
  { tenant, states }: ListTasksParams,
): { sources: Source[]; tasks: number } | null {
  if (states === undefined || states.includes("done")) return null;
  const tally = db
    .prepare<{ state: string; tasks: number }>("select state, tasks from tally where tenant = ?")
    .all(tenant);
  const held = states.filter(isHeld);
  const resting = states.filter((state) => !isHeld(state));
  const sources = resting.map(
    (state): Source =>
      state === "queued"
        ? // Those that are held rest as queued: they are few.
          {
            ...ofTask("task_queued", "t.tenant = @tenant and t.resting_state = 'queued'"),
            answers: ["states"],
          }
        : {
            ...ofTask("task_by_state", `t.tenant = @tenant and t.resting_state = '${state}'`),
            answers: ["states"],
          },
  );
  if (held.length > 0)
    sources.push({
      ...ofTask("", "t.seq in (select h.task_seq from lease h)"),
      entries: "task t not indexed",
      answers: null,
    });
  const counted = tally.filter(({ state }) => resting.includes(state as TaskState));
  return { sources, tasks: counted.reduce((sum, { tasks }) => sum + tasks, 0) };
}

function isHeld(state: TaskState): boolean {
  return (HELD_STATES as readonly TaskState[]).includes(state);
}

/** The agent queues of an agent, of a lane or of both, one by one. Null: the list filters by neither, or there are too many. */
function sourcesOfAgentQueues(
  db: SqliteDatabase,
  { tenant, agent, lane }: ListTasksParams,
): { sources: Source[]; tasks: number } | null {
  if (agent === undefined && lane === undefined) return null;
  const agentQueues = db
    .prepare<{ id: number; tasks: number }>(
      `select id, tasks from line
        where tenant = @tenant and ${agent === undefined ? "true" : "agent = @agent"} and (@lane is null or lane = @lane)
        limit +@max`,
    )
    .all({ tenant, agent, lane: lane ?? null, max: AGENT_QUEUES_MERGED_MAX + 1 });
  if (agentQueues.length > AGENT_QUEUES_MERGED_MAX) return null;
  const sources = agentQueues.map(
    ({ id }): Source => ({
      entries: "task_of_line x",
      by: "x.task_seq",
      condition: "x.line = @line",
      join: "cross join task t on t.seq = x.task_seq",
      values: { line: id },
      answers: ["agent", "lane"],
    }),
  );
  return { sources: [FRESH, ...sources], tasks: agentQueues.reduce((sum, { tasks }) => sum + tasks, 0) };
}

function sourcesOfPriority({ priority, priorityMax }: ListTasksParams): Source[] | null {
  if (priority !== undefined && priority !== 2)
    return [
      {
        ...ofTask("task_by_priority", "t.tenant = @tenant and t.priority = @priority and t.priority <> 2"),
        answers: ["priority"],
      },
    ];
  if (priorityMax === undefined || priorityMax > 0) return null;
  const answers: ListFilter[] = priorityMax === 0 ? ["priorityMax"] : [];
  return [
    { ...ofTask("task_critical", `t.tenant = @tenant and t.priority <= ${PRIORITY_CRITICAL}`), answers },
  ];
}

function sourcesOfSearch(db: SqliteDatabase, filters: Filters): Source[] {
  const ids = db
    .prepare<{ seq: number }>("select seq from task where id >= @search and id < @searchEnd limit +@max")
    .all({ search: filters["search"], searchEnd: filters["searchEnd"], max: FEW + 1 });
  const byId: Source[] =
    ids.length > FEW
      ? [FRESH, OF_TENANT]
      : [
          {
            entries: "task t not indexed",
            by: "t.seq",
            condition: "t.seq in (select value from json_each(@ids))",
            values: { ids: JSON.stringify(ids.map(({ seq }) => seq)) },
            answers: null,
          },
        ];
  return [
    ...byId,
    { ...ofTask("task_by_batch", "t.batch = @search"), answers: null },
    {
      ...ofTask(
        "task_by_key",
        "t.tenant = @tenant and t.batch is not null and json_extract(t.spec, '$.key') = @search",
      ),
      answers: ["search"],
    },
  ];
}
