import type { TaskState } from "../../../model/task-state.ts";
import type { BlockingDependency, RetriedTask, RetryTaskParams } from "../../storage.ts";
import type { PostgresDatabase } from "../connection/database.ts";
import { orBoundExceeded } from "../connection/errors.ts";
import { readSql } from "../connection/sql-file.ts";
import { PREEMPT } from "./preempt-tasks.ts";
import { isOf } from "./read-tasks.ts";
import { isOverdue } from "./requeue-task.ts";
import { RELEASED_MAX } from "./settle-moves.ts";

/** Puts a failed or cancelled task back into the queue. */
export async function retryTask(db: PostgresDatabase, params: RetryTaskParams): Promise<RetriedTask> {
  const { tenant, id, dependants = false, bounds } = params;
  const [row] = await db
    .write<{
      was: TaskState | "overdue" | "blocked" | null;
      by_id: string | null;
      by_state: BlockingDependency["state"] | null;
      seq: string;
      state: "queued" | "delayed" | "waiting_dependency";
      position: number;
      created_at: string;
      run_at: string | null;
      deadline: string | null;
      unserved: boolean;
    }>({
      name: "retry_task",
      text: "select * from retry_task($1, $2, $3, $4, $5)",
      values: [tenant, id, dependants, bounds === undefined ? null : JSON.stringify(bounds)],
    })
    .catch((error) => {
      throw orBoundExceeded(error);
    });
  if (row === undefined) return { found: false };
  if (row.was === "overdue") return { found: true, was: row.was };
  if (row.was === "blocked") {
    const { by_id: by, by_state: state } = row;
    return { found: true, was: row.was, by: by === null || state === null ? null : { id: by, state } };
  }
  if (row.was !== null) return { found: true, was: row.was };
  db.signal({ kind: "events" });
  db.signal({ kind: "work" });
  // Dependants that come back with it may have deadlines.
  if (row.deadline !== null || row.state === "delayed" || dependants) db.signal({ kind: "due" });
  return {
    found: true,
    was: null,
    task: {
      seq: Number(row.seq),
      id,
      state: row.state,
      position: row.position,
      createdAt: Number(row.created_at),
      runAt: row.run_at === null ? null : Number(row.run_at),
      deadline: row.deadline === null ? null : Number(row.deadline),
      rejection: null,
      repeats: null,
      ...(row.unserved ? { unserved: true as const } : {}),
    },
  };
}

export const RETRY_FUNCTIONS = readSql(new URL("./retry-task.sql", import.meta.url), {
  IS_OF_TENANT: isOf("t", "p_tenant"),
  IS_OVERDUE: isOverdue("v_task", "v_now"),
  RELEASED_MAX,
  PREEMPT,
});
