import type { BatchEnd } from "../storage.ts";
import type { SqliteDatabase } from "./database.ts";

/** Leaves a callback to be made for a task that has one and has just ended, due at once. */
export function addDelivery(db: SqliteDatabase, eventSeq: number, taskSeq: number): void {
  db.prepare(
    `insert into delivery (seq, tenant, task_seq, url, task_state, task_error, task_retries, task_attempts, created_at,
                           due_at)
     select @eventSeq, tenant, seq, callback_url, resting_state, error, retry_count, executions, completed_at,
            completed_at
       from task where seq = @taskSeq`,
  ).run({ eventSeq, taskSeq });
  db.signal({ kind: "deliveries" });
}

/** The same for a batch of which the last task has ended; `taskSeq` is the task it goes with. */
export function addBatchDelivery(
  db: SqliteDatabase,
  { event, taskSeq, url, end }: { event: number; taskSeq: number; url: string; end: BatchEnd },
): void {
  db.prepare(
    `insert into delivery (seq, tenant, task_seq, url, batch, created_at, due_at)
     select @event, tenant, seq, @url, @end, @now, @now from task where seq = @taskSeq`,
  ).run({ event, taskSeq, url, now: end.completedAt, end: JSON.stringify(end) });
  db.signal({ kind: "deliveries" });
}
