import type { TaskRecord } from "../../../model/task-record.ts";
import type { TaskState } from "../../../model/task-state.ts";
import type { GetTaskParams, QueueDepth, TaskStatus, TreeTask } from "../../storage.ts";
import type { PostgresDatabase } from "../connection/database.ts";
import { TASK_COLUMNS, TASK_TABLES, type TaskRow, toTaskRecords } from "./task-row.ts";

/**
 * Whether a row of `task` that is looked up by its id belongs to this tenant. An expression, because the planner might otherwise
 * read all tasks of the tenant while there are few.
 */
export function isOf(t: string, tenant: string): string {
  return `${t}.tenant || '' = ${tenant}`;
}

/** PostgreSQL knows `octet_length` without reading the text. */
const BYTES = "(octet_length(t.spec) + coalesce(octet_length(t.result), 0))";

export async function getTask(
  db: PostgresDatabase,
  { tenant, id, bytesMax }: GetTaskParams,
): Promise<TaskRecord | null> {
  const rows = await db.readDurably<TaskRow>({
    name: "get_task",
    text: `select ${TASK_COLUMNS} from ${TASK_TABLES}
            where t.id = $2 and ${isOf("t", "$1")} and ($3::integer is null or ${BYTES} <= $3)`,
    values: [tenant, id, bytesMax ?? null],
  });
  const [task] = await toTaskRecords(db, rows);
  return task ?? null;
}

export async function taskStatus(
  db: PostgresDatabase,
  params: { tenant: string; id: string },
): Promise<TaskStatus | null> {
  const [row] = await db.readDurably<TaskStatus>({
    name: "task_status",
    text: `select t.agent, coalesce(l.state, t.resting_state) as state, ${BYTES} as bytes
             from task t left join lease l on l.task_seq = t.seq where t.id = $2 and ${isOf("t", "$1")}`,
    values: [params.tenant, params.id],
  });
  return row ?? null;
}

export async function heldTask(
  db: PostgresDatabase,
  { tenant, id, token }: { tenant: string; id: string; token: number },
): Promise<TaskRecord | null> {
  const rows = await db.readDurably<TaskRow>({
    name: "held_task",
    text: `select ${TASK_COLUMNS} from ${TASK_TABLES} where t.id = $2 and ${isOf("t", "$1")} and l.token + 0 = $3::bigint`,
    values: [tenant, id, token],
  });
  const [task] = await toTaskRecords(db, rows);
  return task ?? null;
}

export async function taskTree(
  db: PostgresDatabase,
  { tenant, root, after, limit }: { tenant: string; root: string; after: number; limit: number },
): Promise<TreeTask[]> {
  const rows = await db.readDurably<Omit<TreeTask, "seq"> & { readonly seq: string }>({
    name: "task_tree",
    text: `select t.seq, t.id, t.parent_task as parent,
                  coalesce((select l.state from lease l where l.task_seq = t.seq), t.resting_state) as state
             from task t
            where (t.root_task, t.seq) > ($2, $3::bigint) and t.root_task = $2 and ${isOf("t", "$1")}
            order by t.root_task, t.seq limit $4`,
    values: [tenant, root, after, limit],
  });
  return rows.map((row) => ({ ...row, seq: Number(row.seq) }));
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
