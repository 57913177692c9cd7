import type { SqliteDatabase } from "../connection/database.ts";
import { enterQueue, QUEUED_COLUMNS, type QueuedTask } from "./steps/enter-queue.ts";

/** Queues delayed tasks whose `runAt` or retry time has come. */
export async function promoteDue(
  db: SqliteDatabase,
  params: { limit: number },
): Promise<{ promoted: number }> {
  return db.transact((tx) => {
    const due = tx
      .prepare<QueuedTask>(
        `select ${QUEUED_COLUMNS} from task where resting_state = 'delayed' and run_at <= ? order by run_at, seq limit +?`,
      )
      .all(tx.now, params.limit);
    const queue = tx.prepare(
      "update task set resting_state = 'queued' where seq = ? and resting_state = 'delayed'",
    );
    for (const task of due) {
      // A debounced message may have been queued already by a later task of its session in this loop.
      if (queue.run(task.seq).changes === 0) continue;
      enterQueue(tx, task);
      const { tenant } = tx.ledger.agentQueue(task.line);
      tx.ledger.count(tenant, "delayed", -1);
      tx.ledger.count(tenant, "queued", 1);
    }
    // Events, because a stale task of a session may have ended.
    if (due.length > 0) tx.signal("work", "events");
    return { promoted: due.length };
  });
}

/** The earliest time at which a delayed task may start or a waiting one is overdue. */
export async function nextDueAt(db: SqliteDatabase): Promise<number | null> {
  const row = db
    .prepare<{ run_at: number | null; deadline: number | null }>(
      `select (select min(run_at) from task where resting_state = 'delayed') as run_at,
              (select t.deadline from task t
                where t.deadline is not null and t.completed_at is null
                  and not exists (select 1 from lease l where l.task_seq = t.seq)
                order by t.deadline limit 1) as deadline`,
    )
    .get();
  const moments = [row?.run_at ?? null, row?.deadline ?? null].filter((moment) => moment !== null);
  return moments.length === 0 ? null : Math.min(...moments);
}
