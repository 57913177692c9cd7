import { callbackHost } from "../../../../model/callback-host.ts";
import type { BatchEnd } from "../../../storage.ts";
import type { Transaction } from "../../connection/transaction.ts";
import { refreshReceiver } from "./receivers.ts";

/** Adds a webhook delivery, due at once, for a task with a `callbackUrl` that has just ended. */
export function addDelivery(tx: Transaction, eventSeq: number, taskSeq: number): void {
  const task = tx
    .prepare<{ tenant: string; url: string }>("select tenant, callback_url as url from task where seq = ?")
    .get(taskSeq);
  if (task === undefined) throw new Error(`task ${taskSeq} is gone`);
  const { tenant, url } = task;
  const host = callbackHost(url);
  tx.prepare(
    `insert into delivery (seq, tenant, task_seq, url, host, task_state, task_error, task_retries, task_attempts,
                           created_at, due_at)
     select @eventSeq, tenant, seq, callback_url, @host, resting_state, error, retry_count, executions, completed_at,
            completed_at
       from task where seq = @taskSeq`,
  ).run({ eventSeq, taskSeq, host });
  refreshReceiver(tx, { tenant, host });
  tx.signal("deliveries");
}

/** The same for a batch whose last task has ended. The delivery is deleted with the task `taskSeq`. */
export function addBatchDelivery(
  tx: Transaction,
  { event, tenant, taskSeq, url, end }: NewBatchDelivery,
): void {
  const host = callbackHost(url);
  tx.prepare(
    `insert into delivery (seq, tenant, task_seq, url, host, batch, created_at, due_at)
     values (@event, @tenant, @taskSeq, @url, @host, @end, @now, @now)`,
  ).run({ event, tenant, taskSeq, url, host, now: tx.now, end: JSON.stringify(end) });
  refreshReceiver(tx, { tenant, host });
  tx.signal("deliveries");
}

interface NewBatchDelivery {
  readonly event: number;
  readonly tenant: string;
  readonly taskSeq: number;
  readonly url: string;
  readonly end: BatchEnd;
}
