import type { TaskState } from "../../../../model/task-state.ts";
import { namedDependency } from "../../../dependency-error.ts";
import type { RetriedTask, RetryTaskParams } from "../../../storage.ts";
import type { Transaction } from "../../connection/transaction.ts";
import { countBounded } from "./count-bounded.ts";
import {
  addComeBack,
  ENDED_COLUMNS,
  type EndedTask,
  findBlocking,
  isOverdue,
  requeueTask,
} from "./requeue-task.ts";

/** Puts a failed or cancelled task back into the queue. */
export function retryNow(tx: Transaction, params: RetryTaskParams): RetriedTask {
  const task = tx
    .prepare<EndedTask & { held: TaskState | null }>(
      `select ${ENDED_COLUMNS}, l.state as held
         from task t left join lease l on l.task_seq = t.seq where t.tenant = ? and t.id = ?`,
    )
    .get(params.tenant, params.id);
  if (task === undefined) return { found: false };
  const state = task.held ?? task.resting_state;
  if (state !== "failed" && state !== "cancelled") return { found: true, was: state };
  if (isOverdue(task, tx.now)) return { found: true, was: "overdue" };
  const by = findBlocking(tx, task);
  if (by !== undefined) return { found: true, was: "blocked", by };
  const retried = retry(tx, task, params.dependants === true);
  if (params.bounds !== undefined) countBounded(tx, params.bounds, [task.seq]);
  return retried;
}

function retry(tx: Transaction, task: EndedTask, dependants: boolean): RetriedTask {
  const requeued = requeueTask(tx, task);
  const { seq, id, created_at: createdAt, run_at: runAt } = task;
  if (dependants && task.has_dependants === 1) {
    addComeBack(tx, seq, { retried: id, named: namedDependency(task.error) });
  }
  return {
    found: true,
    was: null,
    task: { seq, id, createdAt, runAt, ...requeued, rejection: null, repeats: null },
  };
}
