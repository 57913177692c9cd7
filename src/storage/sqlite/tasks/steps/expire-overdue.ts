import type { TaskLabels } from "../../../storage.ts";
import type { Transaction } from "../../connection/transaction.ts";
import { labelsOf } from "../../counters/ledger.ts";
import { endWaitingTask, WAITING_COLUMNS, type WaitingTask } from "./end-waiting-task.ts";

/** Whether the deadline of a waiting task `t` has passed. */
export function isOverdue(now: string): string {
  return `t.deadline is not null and t.completed_at is null and t.deadline <= ${now}
          and not exists (select 1 from lease l where l.task_seq = t.seq)`;
}

/** Fails waiting tasks whose deadline has passed. Running tasks are skipped: the node that runs them ends them. */
export function expireOverdue(tx: Transaction, limit: number): TaskLabels[] {
  const overdue = tx
    .prepare<WaitingTask>(
      `select ${WAITING_COLUMNS} from task t
        where ${isOverdue("?")}
        order by t.deadline, t.seq limit +?`,
    )
    .all(tx.now, limit);
  for (const task of overdue) {
    endWaitingTask(tx, task, { state: "failed", error: "deadline exceeded while queued" });
  }
  return overdue.map(({ line }) => labelsOf(tx.ledger.agentQueue(line)));
}
