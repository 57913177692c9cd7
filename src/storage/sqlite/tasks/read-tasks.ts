import type { TaskRecord } from "../../../model/task-record.ts";
import type { TaskState } from "../../../model/task-state.ts";
import type { GetTaskParams, QueueDepth, TaskStatus, TreeTask } from "../../storage.ts";
import type { SqliteDatabase } from "../connection/database.ts";
import { TASK_COLUMNS, type TaskRow, taskTables, toTaskRecord } from "./task-row.ts";

/** SQLite knows `octet_length` without reading the text. */
const BYTES = "(octet_length(t.spec) + coalesce(octet_length(t.result), 0))";

export async function getTask(
  db: SqliteDatabase,
  { tenant, id, bytesMax }: GetTaskParams,
): Promise<TaskRecord | null> {
  return db.read(() => {
    const row = db
      .prepare<TaskRow>(
        `select ${TASK_COLUMNS} from ${taskTables()}
          where t.tenant = @tenant and t.id = @id and (@bytesMax is null or ${BYTES} <= @bytesMax)`,
      )
      .get({ tenant, id, bytesMax: bytesMax ?? null });
    return row === undefined ? null : toTaskRecord(db, row);
  });
}

export async function taskStatus(
  db: SqliteDatabase,
  params: { tenant: string; id: string },
): Promise<TaskStatus | null> {
  return db.read(
    () =>
      db
        .prepare<TaskStatus>(
          `select t.agent, coalesce(l.state, t.resting_state) as state, ${BYTES} as bytes
             from task t left join lease l on l.task_seq = t.seq where t.tenant = ? and t.id = ?`,
        )
        .get(params.tenant, params.id) ?? null,
  );
}

export async function heldTask(
  db: SqliteDatabase,
  { tenant, id, token }: { tenant: string; id: string; token: number },
): Promise<TaskRecord | null> {
  return db.read(() => {
    const row = db
      .prepare<TaskRow>(
        `select ${TASK_COLUMNS} from ${taskTables()} where t.tenant = ? and t.id = ? and l.token = ?`,
      )
      .get(tenant, id, token);
    return row === undefined ? null : toTaskRecord(db, row);
  });
}

export async function taskTree(
  db: SqliteDatabase,
  params: { tenant: string; root: string; after: number; limit: number },
): Promise<TreeTask[]> {
  return db.read(() =>
    db
      .prepare<TreeTask>(
        `select t.seq, t.id, t.parent_task as parent, coalesce(l.state, t.resting_state) as state
           from task t indexed by task_by_root left join lease l on l.task_seq = t.seq
          where t.root_task = @root and t.seq > @after and t.tenant = @tenant order by t.seq limit +@limit`,
      )
      .all(params),
  );
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
  const agentQueues = await db.read(() =>
    db
      .prepare<{ agent: string; queued: number; ready: number; inflight: number }>(
        `select n.agent, sum(n.waiting - n.exempt) as queued, sum(n.ready + coalesce(p.tasks, 0)) as ready,
                sum(n.inflight) as inflight
           from line n left join parked_of_line p on p.line = n.id
          where n.tenant = @tenant and (n.waiting > 0 or n.inflight > 0) group by n.agent`,
      )
      .all(params),
  );
  return {
    queued: agentQueues.reduce((sum, { queued }) => sum + queued, 0),
    inflight: agentQueues.reduce((sum, { inflight }) => sum + inflight, 0),
    agents: Object.fromEntries(
      agentQueues.filter(({ queued }) => queued > 0).map(({ agent, queued }) => [agent, queued]),
    ),
    ready: Object.fromEntries(
      agentQueues.filter(({ ready }) => ready > 0).map(({ agent, ready }) => [agent, ready]),
    ),
  };
}
