import type { TaskState } from "../../../../model/task-state.ts";
import type { BatchEnd, NewBatch } from "../../../storage.ts";
import type { Transaction } from "../../connection/transaction.ts";
import type { BatchRow } from "../../counters/batch-ledger.ts";
import { addBatchDelivery } from "../../log/steps/add-delivery.ts";

/** Inserts a batch before its tasks. One that exists already stays as it is. */
export function addBatch(tx: Transaction, { id, tenant, parallelism, callbackUrl }: NewBatch): void {
  tx.prepare(
    `insert into batch (id, tenant, parallelism, callback_url, created_at) values (?, ?, ?, ?, ?)
     on conflict (id) do nothing`,
  ).run(id, tenant, parallelism, callbackUrl, tx.now);
}

/** Deletes a batch without tasks: its last task was deleted, or all its tasks were repeats of earlier ones. */
export function forgetEmptyBatch(tx: Transaction, id: string): void {
  tx.prepare("delete from batch where id = @id and not exists (select 1 from task where batch = @id)").run({
    id,
  });
}

/** Fills the free slots of batches with parked tasks. */
export function fillBatches(tx: Transaction): void {
  for (const batch of tx.ledger.batches.touched()) admitParked(tx, batch);
}

/** Completes batches whose last task has ended: adds the event and the webhook delivery. */
export function completeBatches(tx: Transaction): void {
  const completed: { batch: BatchRow; last: LastTask }[] = [];
  for (const batch of tx.ledger.batches.touched()) {
    if (batch.open > 0 || batch.completed_at !== null) continue;
    const last = lastTask(tx, batch);
    if (last !== undefined) completed.push({ batch, last });
  }
  completed.sort((a, b) => a.last.seq - b.last.seq);
  for (const { batch, last } of completed) complete(tx, batch, last);
}

function admitParked(tx: Transaction, batch: BatchRow): void {
  if (batch.parallelism === null || batch.active >= batch.parallelism) return;
  const parked = tx
    .prepare<{ seq: number; line: number; rank: number; batch: string; concurrency_key: string | null }>(
      `select seq, line, rank, batch, concurrency_key from task
        where batch = ? and parked = 'batch' order by rank, seq limit +?`,
    )
    .all(batch.id, batch.parallelism - batch.active);
  for (const task of parked) {
    tx.prepare("update task set parked = null where seq = ?").run(task.seq);
    batch.active += 1;
    tx.ledger.askForKey(task);
  }
  if (parked.length > 0) tx.signal("work");
}

/** The last accepted task of a batch: the event and the webhook delivery belong to it. */
interface LastTask {
  readonly seq: number;
  readonly state: TaskState;
}

function lastTask(tx: Transaction, { id }: BatchRow): LastTask | undefined {
  return tx
    .prepare<LastTask>(
      "select seq, resting_state as state from task where batch = ? order by seq desc limit 1",
    )
    .get(id);
}

function complete(tx: Transaction, batch: BatchRow, last: LastTask): void {
  const { now } = tx;
  const { id, tenant, parallelism, created_at: createdAt, callback_url: url } = batch;
  batch.completed_at = now;
  const counts = countStates(tx, id);
  const event = tx.ledger.events.add({
    type: "batch.completed",
    at: now,
    tenant,
    taskSeq: last.seq,
    data: { state: last.state, counts },
  });
  tx.signal("events");
  const end: BatchEnd = { id, parallelism, createdAt, completedAt: now, counts };
  if (url !== null) addBatchDelivery(tx, { event, tenant, taskSeq: last.seq, url, end });
}

function countStates(tx: Transaction, id: string): Partial<Record<TaskState, number>> {
  const rows = tx
    .prepare<{ state: TaskState; tasks: number }>(
      "select resting_state as state, count(*) as tasks from task where batch = ? group by resting_state",
    )
    .all(id);
  return Object.fromEntries(rows.map(({ state, tasks }) => [state, tasks]));
}
