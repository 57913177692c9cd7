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
      .flatMap((state) => listFrom(db, params, state))
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

function listFrom(db: SqliteDatabase, params: ListTasksParams, state: TaskState | null): TaskRow[] {
  const conditions = ["t.tenant = @tenant", stateCondition(state)];
  if (params.agent !== undefined) conditions.push("t.agent = @agent");
  if (params.priority !== undefined) conditions.push("t.priority = @priority");
  if (params.lane !== undefined) conditions.push("n.lane = @lane");
  if (params.cursor !== undefined) conditions.push("t.seq < @cursor");
  const { states: _states, ...filters } = params;
  return db
    .prepare<TaskRow>(
      `select ${TASK_COLUMNS} from ${taskTables(indexFor(state, params.agent))}
        where ${conditions.join(" and ")} order by t.seq desc limit @page`,
    )
    .all({ ...filters, page: params.limit + 1 });
}

function stateCondition(state: TaskState | null): string {
  if (state === null) return "true";
  // A held task is found by its lease, and rests as queued.
  if (isHeld(state)) return `t.seq in (select task_seq from lease where state = '${state}')`;
  return state === "queued"
    ? "t.resting_state = 'queued' and l.task_seq is null"
    : `t.resting_state = '${state}'`;
}

/** Named, because SQLite would guess, without statistics, and sort a tenant's every task to find the newest. */
function indexFor(state: TaskState | null, agent: string | undefined): string {
  const isRare = state !== null && state !== "queued" && state !== "done" && !isHeld(state);
  if (isRare) return "indexed by task_by_state";
  // By their number: from the newest on, or just those that are held.
  return agent === undefined || (state !== null && isHeld(state))
    ? "not indexed"
    : "indexed by task_by_agent";
}

function isHeld(state: TaskState): boolean {
  return (HELD_STATES as readonly TaskState[]).includes(state);
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
