import type { RescuedTasks, TaskPlace } from "../storage.ts";
import type { SqliteDatabase } from "./database.ts";
import { endTask, returnTask } from "./end-attempt.ts";
import type { Lease } from "./lease.ts";
import { Ledger, placeOf } from "./ledger.ts";
import { preemptTasks } from "./preempt-tasks.ts";
import { settleMoves } from "./settle-moves.ts";

const WORKER_LOST = "worker lost";

/** Takes back attempts of a node that is dead: to the queue while the task has retries left, else it fails. */
export async function rescueTasks(
  db: SqliteDatabase,
  params: { node: string; limit: number },
): Promise<RescuedTasks> {
  const rescued = db.write((now) => {
    const leases = db
      .prepare<Lease & { rescuable: 0 | 1 }>(
        `select l.*, t.retry_count < t.max_retries_if_lost as rescuable
           from lease l join task t on t.seq = l.task_seq
          where l.node = ? and exists (select 1 from node where id = ? and dead = 1)
          order by l.task_seq limit +?`,
      )
      .all(params.node, params.node, params.limit);
    const ledger = new Ledger(db);
    const removeLease = db.prepare("delete from lease where task_seq = ?");
    const requeued: TaskPlace[] = [];
    const failed: TaskPlace[] = [];
    for (const lease of leases) {
      removeLease.run(lease.task_seq);
      const end = { outcome: "lost", error: WORKER_LOST, now } as const;
      if (lease.rescuable === 1) {
        returnTask(db, ledger, lease, { ...end, to: "queued", counted: true, runAt: now });
        requeued.push(placeOf(ledger.line(lease.line)));
      } else {
        endTask(db, ledger, lease, { ...end, state: "failed", result: null });
        failed.push(placeOf(ledger.line(lease.line)));
      }
    }
    settleMoves(db, ledger, now);
    preemptTasks(db, ledger, now);
    ledger.save();
    if (leases.length > 0) {
      db.signal({ kind: "events" });
      db.signal({ kind: "work" });
      db.signal({ kind: "due" });
    }
    return { requeued, failed };
  });
  await db.durable();
  return rescued;
}
