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
      .flatMap((state) => listFrom(db, params, wayFor(db, params, state)))
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

function listFrom(db: SqliteDatabase, params: ListTasksParams, { index, condition }: Way): TaskRow[] {
  const conditions = ["t.tenant = @tenant", condition];
  if (params.agent !== undefined) conditions.push("t.agent = @agent");
  if (params.priority !== undefined) conditions.push("t.priority = @priority");
  if (params.batch !== undefined) conditions.push("t.batch = @batch");
  if (params.lane !== undefined) conditions.push("n.lane = @lane");
  if (params.cursor !== undefined) conditions.push("t.seq < @cursor");
  const { states: _states, ...filters } = params;
  return db
    .prepare<TaskRow>(
      `select ${TASK_COLUMNS} from ${taskTables(index)}
        where ${conditions.join(" and ")} order by t.seq desc limit @page`,
    )
    .all({ ...filters, page: params.limit + 1 });
}

/** A way into the tasks. SQLite would guess, without statistics, and sort a tenant's every task to find the newest. */
interface Way {
  readonly index:
    | "not indexed"
    | "indexed by task_by_state"
    | "indexed by task_by_agent"
    | "indexed by task_by_batch";
  readonly condition: string;
}

/** Up to so many waiting tasks, queued ones are found by what is ready; among more, the walk from the newest soon finds some. */
const READY_LISTED_MAX = 10_000;

function wayFor(db: SqliteDatabase, { agent, batch }: ListTasksParams, state: TaskState | null): Way {
  // A batch is small: whatever else is asked for is found among its tasks.
  if (batch !== undefined) return { index: "indexed by task_by_batch", condition: inState(state) };
  const walk = agent === undefined ? "not indexed" : "indexed by task_by_agent";
  if (state === null) return { index: walk, condition: "true" };
  // A held task is found by its lease, and rests as queued.
  if ((HELD_STATES as readonly TaskState[]).includes(state)) {
    return {
      index: "not indexed",
      condition: `t.seq in (select task_seq from lease where state = '${state}')`,
    };
  }
  if (state === "queued") {
    const few = waitingTasks(db) <= READY_LISTED_MAX;
    return few
      ? { index: "not indexed", condition: "t.seq in (select task_seq from ready)" }
      : { index: walk, condition: inState(state) };
  }
  return { index: state === "done" ? walk : "indexed by task_by_state", condition: inState(state) };
}

function inState(state: TaskState | null): string {
  if (state === null) return "true";
  if ((HELD_STATES as readonly TaskState[]).includes(state)) return `l.state = '${state}'`;
  return state === "queued"
    ? "t.resting_state = 'queued' and l.task_seq is null"
    : `t.resting_state = '${state}'`;
}

function waitingTasks(db: SqliteDatabase): number {
  return db.prepare<{ tasks: number | null }>("select sum(waiting) as tasks from lane").get()?.tasks ?? 0;
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
      .prepare<{ agent: string; ready: number; inflight: number }>(
        `select agent, sum(ready) as ready, sum(inflight) as inflight from line
          where tenant = ? and (ready > 0 or inflight > 0) group by agent`,
      )
      .all(params.tenant),
  );
  return {
    queued: lines.reduce((sum, { ready }) => sum + ready, 0),
    inflight: lines.reduce((sum, { inflight }) => sum + inflight, 0),
    agents: Object.fromEntries(
      lines.filter(({ ready }) => ready > 0).map(({ agent, ready }) => [agent, ready]),
    ),
  };
}
