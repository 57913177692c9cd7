import type { TaskRecord } from "../../model/task-record.ts";
import { HELD_STATES, type TaskState } from "../../model/task-state.ts";
import type { ListTasksParams, QueueDepth } from "../storage.ts";
import type { PostgresDatabase } from "./database.ts";
import { TASK_COLUMNS, TASK_TABLES, type TaskRow, toTaskRecords } from "./task-row.ts";
import { untilDurable } from "./until-durable.ts";

/**
 * Whether a row of `task` that is looked up by its id is of this tenant. An expression: while there are few tasks, the planner
 * would as soon walk all those of the tenant.
 */
export function isOf(t: string, tenant: string): string {
  return `${t}.tenant || '' = ${tenant}`;
}

export async function getTask(
  db: PostgresDatabase,
  params: { tenant: string; id: string },
): Promise<TaskRecord | null> {
  const rows = await db.read<TaskRow>({
    name: "get_task",
    text: `select ${TASK_COLUMNS} from ${TASK_TABLES} where t.id = $2 and ${isOf("t", "$1")}`,
    values: [params.tenant, params.id],
  });
  await untilDurable(
    db,
    rows.map(({ held_since }) => held_since),
  );
  const [task] = await toTaskRecords(db, rows);
  return task ?? null;
}

/** Newest first. Each state is read through its own index and the pages are merged, so that rare states stay cheap. */
export async function listTasks(
  db: PostgresDatabase,
  params: ListTasksParams,
): Promise<{ tasks: TaskRecord[]; nextCursor: number | null }> {
  const sources = new Set(params.states?.map(stateCondition) ?? ["true"]);
  const { text, values } = listQuery(params, [...sources]);
  // Which filters are set shapes the text, so there are too many of them to name: few are ever used.
  const rows = await db.read<TaskRow>({ text, values });
  const page = rows.slice(0, params.limit);
  await untilDurable(
    db,
    page.map(({ held_since }) => held_since),
  );
  const last = page.at(-1);
  return {
    tasks: await toTaskRecords(db, page),
    nextCursor: rows.length > params.limit && last !== undefined ? Number(last.seq) : null,
  };
}

function listQuery(params: ListTasksParams, sources: readonly string[]): { text: string; values: unknown[] } {
  const values: unknown[] = [params.tenant, params.limit + 1];
  const conditions = ["t.tenant = $1"];
  const filter = (condition: string, value: unknown, end = "") => {
    if (value === undefined) return;
    values.push(value);
    conditions.push(`${condition} $${values.length}${end}`);
  };
  filter("t.agent =", params.agent);
  filter("t.priority =", params.priority);
  filter("t.priority <=", params.priorityMax);
  filter("t.batch =", params.batch);
  filter("n.lane =", params.lane);
  filter("t.session + 0 = (select s.id from session s where s.tenant = $1 and s.key =", params.session, ")");
  filter("t.schedule + 0 =", params.schedule);
  filter("t.seq <", params.cursor);
  const pages = sources.map(
    (source) =>
      `(select ${TASK_COLUMNS} from ${TASK_TABLES} where ${[...conditions, source].join(" and ")}
         order by t.seq desc limit $2)`,
  );
  return { text: `select * from (${pages.join(" union all ")}) pages order by seq desc limit $2`, values };
}

function stateCondition(state: TaskState): string {
  // A held task is found by its lease, and rests as queued.
  if ((HELD_STATES as readonly TaskState[]).includes(state)) return `l.state = '${state}'`;
  if (state === "queued") return "t.resting_state = 'queued' and l.task_seq is null";
  return state === "done" ? "t.resting_state = 'done'" : `t.listed_state = '${state}'`;
}

export async function countTasks(
  db: PostgresDatabase,
  params: { tenant: string },
): Promise<Partial<Record<TaskState, number>>> {
  const rows = await db.read<{ state: TaskState; tasks: string }>({
    name: "count_tasks",
    text: `with held as (select l.state, count(*) as tasks from lease l join line n on n.id = l.line
                          where n.tenant = $1 group by l.state)
           select state, tasks - case when state = 'queued' then (select coalesce(sum(tasks), 0) from held) else 0 end
                    as tasks
             from tally where tenant = $1
           union all select state, tasks from held`,
    values: [params.tenant],
  });
  return Object.fromEntries(
    rows.filter(({ tasks }) => tasks !== "0").map(({ state, tasks }) => [state, Number(tasks)]),
  );
}

export async function queueDepth(db: PostgresDatabase, params: { tenant: string }): Promise<QueueDepth> {
  const agents = await db.read<{ agent: string; queued: string; ready: string; inflight: string }>({
    name: "queue_depth",
    text: `select agent, sum(waiting - exempt) as queued, sum(ready + parked) as ready, sum(inflight) as inflight from line
            where tenant = $1 and (waiting > 0 or inflight > 0) group by agent`,
    values: [params.tenant],
  });
  return {
    queued: agents.reduce((sum, { queued }) => sum + Number(queued), 0),
    inflight: agents.reduce((sum, { inflight }) => sum + Number(inflight), 0),
    agents: Object.fromEntries(
      agents.filter(({ queued }) => queued !== "0").map(({ agent, queued }) => [agent, Number(queued)]),
    ),
    ready: Object.fromEntries(
      agents.filter(({ ready }) => ready !== "0").map(({ agent, ready }) => [agent, Number(ready)]),
    ),
  };
}
