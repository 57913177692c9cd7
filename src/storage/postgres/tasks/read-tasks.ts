import type { TaskRecord } from "../../../model/task-record.ts";
import type { TaskState } from "../../../model/task-state.ts";
import type { QueueDepth } from "../../storage.ts";
import type { PostgresDatabase } from "../connection/database.ts";
import { TASK_COLUMNS, TASK_TABLES, type TaskRow, toTaskRecords } from "./task-row.ts";

/**
 * Whether a row of `task` that is looked up by its id belongs to this tenant. An expression, because the planner might otherwise
 * read all tasks of the tenant while there are few.
 */
export function isOf(t: string, tenant: string): string {
  return `${t}.tenant || '' = ${tenant}`;
}

export async function getTask(
  db: PostgresDatabase,
  params: { tenant: string; id: string },
): Promise<TaskRecord | null> {
  const rows = await db.readDurably<TaskRow>({
    name: "get_task",
    text: `select ${TASK_COLUMNS} from ${TASK_TABLES} where t.id = $2 and ${isOf("t", "$1")}`,
    values: [params.tenant, params.id],
  });
  const [task] = await toTaskRecords(db, rows);
  return task ?? null;
}

export async function countTasks(
  db: PostgresDatabase,
  params: { tenant: string },
): Promise<Partial<Record<TaskState, number>>> {
  const rows = await db.readDurably<{ state: TaskState; tasks: string }>({
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
  const agents = await db.readDurably<{ agent: string; queued: string; ready: string; inflight: string }>({
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
