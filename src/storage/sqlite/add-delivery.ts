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
