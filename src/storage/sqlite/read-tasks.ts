import type { TaskRecord } from "../../model/task-record.ts";
import { HELD_STATES, type TaskState } from "../../model/task-state.ts";
import type { ListTasksParams, QueueDepth } from "../storage.ts";
import type { SqliteDatabase } from "./database.ts";
import { TASK_COLUMNS, type TaskRow, taskTables, toTaskRecord } from "./task-row.ts";

export async function getTask(
  db: SqliteDatabase,
  params: { tenant: string; id: string },
): Promise<TaskRecord | null> {
  return db.read(() => {
    const row = db
      .prepare<TaskRow>(`select ${TASK_COLUMNS} from ${taskTables()} where t.tenant = ? and t.id = ?`)
      .get(params.tenant, params.id);
    return row === undefined ? null : toTaskRecord(db, row);
  });
}

/** Newest first. Each state is read through its own index and the pages are merged, so that rare states stay cheap. */
export async function listTasks(
  db: SqliteDatabase,
  params: ListTasksParams,
): Promise<{ tasks: TaskRecord[]; nextCursor: number | null }> {
  const states = new Set<TaskState | null>(params.states ?? [null]);
  return db.read(() => {
    const rows = [...states]
      .flatMap((state) => waysFor(db, params, state))
      .flatMap((way) => listFrom(db, params, way))
      .sort((a, b) => b.seq - a.seq)
      .slice(0, params.limit + 1);
    const page = rows.slice(0, params.limit);
    const last = page.at(-1);
    return {
      tasks: page.map((row) => toTaskRecord(db, row)),
      nextCursor: rows.length > params.limit && last !== undefined ? last.seq : null,
    };
  });
}

/**
 * A way into the tasks. SQLite would guess, without statistics, and sort a tenant's every task to find the newest.
 * `by`: the table and column that lead, newest first.
 */
interface Way {
  readonly tables: string;
  readonly by: "t.seq" | "x.task_seq";
  readonly condition: string;
  /** What `@line` and `@entered` in it stand for. */
  readonly values?: Readonly<Record<string, number>>;
}

function listFrom(db: SqliteDatabase, params: ListTasksParams, way: Way): TaskRow[] {
  const conditions = ["t.tenant = @tenant", way.condition];
  if (params.agent !== undefined) conditions.push("t.agent = @agent");
  if (params.priority !== undefined) conditions.push("t.priority = @priority");
  if (params.priorityMax !== undefined) conditions.push("t.priority <= @priorityMax");
  if (params.batch !== undefined) conditions.push("t.batch = @batch");
  if (params.lane !== undefined) conditions.push("n.lane = @lane");
  if (params.session !== undefined) conditions.push(`t.session = ${SESSION}`);
  if (params.schedule !== undefined) conditions.push("t.schedule = @schedule");
  if (params.cursor !== undefined) conditions.push(`${way.by} < @cursor`);
  const { states: _states, ...filters } = params;
  return db
    .prepare<TaskRow>(
      `select ${TASK_COLUMNS} from ${way.tables}
        where ${conditions.join(" and ")} order by ${way.by} desc limit +@page`,
    )
    .all({ ...filters, ...way.values, page: params.limit + 1 });
}

function waysFor(db: SqliteDatabase, params: ListTasksParams, state: TaskState | null): Way[] {
  const inThatState = inState(state);
  // A batch is small: whatever else is asked for is found among its tasks.
  if (params.batch !== undefined) return [way("indexed by task_by_batch", inThatState)];
  if (params.schedule !== undefined) return [way("indexed by task_by_schedule", inThatState)];
  // Of one session, whatever else is asked for.
  if (params.session !== undefined) {
    return [way("indexed by task_by_session", `t.session is not null and ${inThatState}`)];
  }
  // A held task is found by its lease, and rests as queued.
  if (state !== null && (HELD_STATES as readonly TaskState[]).includes(state)) {
    return [way("not indexed", `t.seq in (select task_seq from lease where state = '${state}')`)];
  }
  if (state !== null && state !== "done" && state !== "queued") {
    return [way("indexed by task_by_state", inThatState)];
  }
  if (params.agent !== undefined) {
    return waysOfAgent(db, { tenant: params.tenant, agent: params.agent }, state);
  }
  return [way(state === "queued" ? "indexed by task_queued" : "not indexed", inThatState)];
}

const SESSION = "(select id from session where tenant = @tenant and key = @session)";

function way(index: string, condition: string): Way {
  return { tables: taskTables(index), by: "t.seq", condition };
}

/** Up to so many, an agent's queued tasks are found by what is ready; among more, the walk from the newest soon finds some. */
const READY_LISTED_MAX = 10_000;

/** The newest tasks have not been entered anywhere: of those all are looked at. The others are listed line by line. */
function waysOfAgent(
  db: SqliteDatabase,
  agent: { tenant: string; agent: string },
  state: TaskState | null,
): Way[] {
  const condition = inState(state);
  const lines = db
    .prepare<{ id: number; ready: number }>(
      "select id, ready from line where tenant = @tenant and agent = @agent",
    )
    .all(agent);
  if (state === "queued" && lines.every(({ ready }) => ready <= READY_LISTED_MAX)) {
    return lines.flatMap(({ id }) => [
      {
        ...way("not indexed", "t.seq in (select task_seq from ready where line = @line)"),
        values: { line: id },
      },
      { ...way("indexed by task_parked", "t.line = @line and t.parked is not null"), values: { line: id } },
    ]);
  }
  return [
    {
      ...way("not indexed", `t.seq > @entered and ${condition}`),
      values: { entered: db.enteredUpTo },
    },
    ...lines.map(
      ({ id }): Way => ({
        tables: `task_of_line x cross join ${taskTables("on t.seq = x.task_seq")}`,
        by: "x.task_seq",
        condition: `x.line = @line and ${condition}`,
        values: { line: id },
      }),
    ),
  ];
}

function inState(state: TaskState | null): string {
  if (state === null) return "true";
  if ((HELD_STATES as readonly TaskState[]).includes(state)) return `l.state = '${state}'`;
  return state === "queued"
    ? "t.resting_state = 'queued' and l.task_seq is null"
    : `t.resting_state = '${state}'`;
}

export async function countTasks(
  db: SqliteDatabase,
  params: { tenant: string },
): Promise<Partial<Record<TaskState, number>>> {
  const [resting, held] = await db.read(() => [
    db
      .prepare<StateCount>("select state, tasks from tally where tenant = ? and tasks > 0")
      .all(params.tenant),
    db
      .prepare<StateCount>(
        `select l.state, count(*) as tasks from lease l join line n on n.id = l.line where n.tenant = ? group by l.state`,
      )
      .all(params.tenant),
  ]);
  const counts: Partial<Record<TaskState, number>> = {};
  for (const { state, tasks } of resting) counts[state] = tasks;
  for (const { state, tasks } of held) {
    counts[state] = tasks;
    counts.queued = (counts.queued ?? 0) - tasks;
  }
  if (counts.queued === 0) delete counts.queued;
  return counts;
}

interface StateCount {
  readonly state: TaskState;
  readonly tasks: number;
}

export async function queueDepth(db: SqliteDatabase, params: { tenant: string }): Promise<QueueDepth> {
  const lines = await db.read(() =>
    db
      .prepare<{ agent: string; queued: number; ready: number; inflight: number }>(
        `select agent, sum(waiting - exempt) as queued, sum(ready) as ready, sum(inflight) as inflight
           from (select agent, waiting, exempt, ready, inflight from line
                  where tenant = @tenant and (waiting > 0 or inflight > 0)
                 union all
                 select agent, 0, 0, 1, 0 from task indexed by task_parked where parked is not null and tenant = @tenant)
          group by agent`,
      )
      .all(params),
  );
  return {
    queued: lines.reduce((sum, { queued }) => sum + queued, 0),
    inflight: lines.reduce((sum, { inflight }) => sum + inflight, 0),
    agents: Object.fromEntries(
      lines.filter(({ queued }) => queued > 0).map(({ agent, queued }) => [agent, queued]),
    ),
    ready: Object.fromEntries(
      lines.filter(({ ready }) => ready > 0).map(({ agent, ready }) => [agent, ready]),
    ),
  };
}
