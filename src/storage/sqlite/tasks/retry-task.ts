import type { TaskState } from "../../../model/task-state.ts";
import { namedDependency } from "../../dependency-error.ts";
import type { RetriedTask, RetryTaskParams } from "../../storage.ts";
import type { SqliteDatabase } from "../connection/database.ts";
import { Ledger } from "../counters/ledger.ts";
import { preemptTasks } from "./preempt-tasks.ts";
import {
  addComeBack,
  ENDED_COLUMNS,
  type EndedTask,
  findBlocking,
  isOverdue,
  requeueTask,
} from "./requeue-task.ts";
import { settleMoves } from "./settle-moves.ts";

/** Puts a failed or cancelled task back into the queue. */
export async function retryTask(db: SqliteDatabase, params: RetryTaskParams): Promise<RetriedTask> {
  const retried = db.write((now) => retryNow(db, params, now));
  await db.durable();
  return retried;
}

/** The same within a transaction. */
export function retryNow(db: SqliteDatabase, params: RetryTaskParams, now: number): RetriedTask {
  const task = db
    .prepare<EndedTask & { held: TaskState | null }>(
      `select ${ENDED_COLUMNS}, l.state as held
         from task t left join lease l on l.task_seq = t.seq where t.tenant = ? and t.id = ?`,
    )
    .get(params.tenant, params.id);
  if (task === undefined) return { found: false };
  const state = task.held ?? task.resting_state;
  if (state !== "failed" && state !== "cancelled") return { found: true, was: state };
  if (isOverdue(task, now)) return { found: true, was: "overdue" };
  const by = findBlocking(db, task);
  if (by !== undefined) return { found: true, was: "blocked", by };
  return retry(db, task, params.dependants === true, now);
}

function retry(db: SqliteDatabase, task: EndedTask, dependants: boolean, now: number): RetriedTask {
  const ledger = new Ledger(db);
  const requeued = requeueTask(db, ledger, task, now);
  const { seq, id, created_at: createdAt, run_at: runAt } = task;
  if (dependants && task.has_dependants === 1) {
    addComeBack(db, ledger, seq, { retried: id, named: namedDependency(task.error) });
  }
  settleMoves(db, ledger, now);
  preemptTasks(db, ledger, now);
  ledger.save();
  return {
    found: true,
    was: null,
    task: { seq, id, createdAt, runAt, ...requeued, rejection: null, repeats: null },
  };
}
