import type { TaskLabels } from "../../storage.ts";
import type { SqliteDatabase } from "../connection/database.ts";
import { Ledger, placeOf } from "../counters/ledger.ts";
import { endWaitingTask, WAITING_COLUMNS, type WaitingTask } from "./end-waiting-task.ts";
import { preemptTasks } from "./preempt-tasks.ts";
import { settleMoves } from "./settle-moves.ts";

/** Fails waiting tasks whose deadline has passed. */
export async function expireTasks(
  db: SqliteDatabase,
  params: { limit: number },
): Promise<{ expired: TaskLabels[] }> {
  const expired = db.write((now) => {
    const ledger = new Ledger(db);
    const overdue = expireOverdue(db, ledger, params.limit, now);
    settleMoves(db, ledger, now);
    preemptTasks(db, ledger, now);
    ledger.save();
    if (overdue.length > 0) db.signal({ kind: "events" });
    return overdue;
  });
  await db.durable();
  return { expired };
}

/** The same inside a transaction. Running tasks are skipped: the node that runs them ends them. */
export function expireOverdue(db: SqliteDatabase, ledger: Ledger, limit: number, now: number): TaskLabels[] {
  const overdue = db
    .prepare<WaitingTask>(
      `select ${WAITING_COLUMNS} from task t
        where t.deadline is not null and t.completed_at is null and t.deadline <= ? and not exists (select 1 from lease l where l.task_seq = t.seq)
        order by t.deadline, t.seq limit +?`,
    )
    .all(now, limit);
  for (const task of overdue) {
    endWaitingTask(db, ledger, task, { state: "failed", error: "deadline exceeded while queued", now });
  }
  return overdue.map(({ line }) => placeOf(ledger.line(line)));
}
