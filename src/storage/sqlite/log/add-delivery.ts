import { callbackHost } from "../../../model/callback-host.ts";
import type { BatchEnd } from "../../storage.ts";
import type { SqliteDatabase } from "../connection/database.ts";
import { refreshReceiver } from "./receivers.ts";

/** Adds a webhook delivery, due at once, for a task with a `callbackUrl` that has just ended. */
export function addDelivery(db: SqliteDatabase, eventSeq: number, taskSeq: number): void {
  const task = db
    .prepare<{ tenant: string; url: string; now: number }>(
      "select tenant, callback_url as url, completed_at as now from task where seq = ?",
    )
    .get(taskSeq);
  if (task === undefined) throw new Error(`task ${taskSeq} is gone`);
  const { tenant, url, now } = task;
  const host = callbackHost(url);
  db.prepare(
    `insert into delivery (seq, tenant, task_seq, url, host, task_state, task_error, task_retries, task_attempts,
                           created_at, due_at)
     select @eventSeq, tenant, seq, callback_url, @host, resting_state, error, retry_count, executions, completed_at,
            completed_at
       from task where seq = @taskSeq`,
  ).run({ eventSeq, taskSeq, host });
  refreshReceiver(db, { tenant, host }, now);
  db.signal({ kind: "deliveries" });
}

/** The same for a batch whose last task has ended. The delivery is deleted with the task `taskSeq`. */
export function addBatchDelivery(
  db: SqliteDatabase,
  { event, tenant, taskSeq, url, end }: NewBatchDelivery,
): void {
  const host = callbackHost(url);
  const now = end.completedAt;
  db.prepare(
    `insert into delivery (seq, tenant, task_seq, url, host, batch, created_at, due_at)
     values (@event, @tenant, @taskSeq, @url, @host, @end, @now, @now)`,
  ).run({ event, tenant, taskSeq, url, host, now, end: JSON.stringify(end) });
  refreshReceiver(db, { tenant, host }, now);
  db.signal({ kind: "deliveries" });
}

interface NewBatchDelivery {
  readonly event: number;
  readonly tenant: string;
  readonly taskSeq: number;
  readonly url: string;
  readonly end: BatchEnd;
}
