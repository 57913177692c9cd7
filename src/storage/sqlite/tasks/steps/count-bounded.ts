import { boundExceeded, type ExceededBound, SUBMIT_MINUTES, type SubmitBounds } from "../../../storage.ts";
import type { Transaction } from "../../connection/transaction.ts";

const MINUTE_MS = 60_000;

/** Counts new and retried tasks for their owner. Throws if that exceeds a bound, which rolls the transaction back. */
export function countBounded(tx: Transaction, bounds: SubmitBounds, seqs: readonly number[]): void {
  if (seqs.length === 0) return;
  const exceeded =
    submitsExceeded(tx, bounds, seqs.length) ??
    openExceeded(tx, bounds, seqs) ??
    descendantsExceeded(tx, bounds, seqs.length);
  if (exceeded !== null) throw boundExceeded(exceeded, tx.now);
}

function submitsExceeded(
  tx: Transaction,
  { tenant, owner, maxSubmitsPerHour: max }: SubmitBounds,
  count: number,
): ExceededBound | null {
  if (max === null) return null;
  const minute = Math.floor(tx.now / MINUTE_MS);
  tx.prepare(
    `insert into bounded_minute (tenant, owner, minute, submits) values (?, ?, ?, ?)
     on conflict (tenant, owner, minute) do update set submits = submits + excluded.submits`,
  ).run(tenant, owner, minute, count);
  const minutes = tx
    .prepare<{ minute: number; submits: number }>(
      "select minute, submits from bounded_minute where tenant = ? and owner = ? and minute > ? order by minute",
    )
    .all(tenant, owner, minute - SUBMIT_MINUTES);
  const sum = minutes.reduce((total, { submits }) => total + submits, 0);
  if (sum <= max) return null;
  let left = sum;
  const last = minutes.find(({ submits }) => {
    left -= submits;
    return left <= max;
  });
  const retryAt = ((last?.minute ?? minute) + SUBMIT_MINUTES) * MINUTE_MS;
  return { bound: "maxSubmitsPerHour", max, used: sum - count, retryAt };
}

function openExceeded(
  tx: Transaction,
  { tenant, owner, maxOpenTasks: max }: SubmitBounds,
  seqs: readonly number[],
): ExceededBound | null {
  if (max === null) return null;
  const add = tx.prepare(
    // A retried task may be counted still.
    "insert into bounded_task (tenant, owner, task_seq, at) values (?, ?, ?, ?) on conflict do nothing",
  );
  for (const seq of seqs) add.run(tenant, owner, seq, tx.now);
  tx.prepare(
    `delete from bounded_task where tenant = ? and owner = ?
        and not exists (select 1 from task t where t.seq = task_seq and t.resting_state in ('waiting_dependency', 'delayed', 'queued'))`,
  ).run(tenant, owner);
  const open =
    tx
      .prepare<{ n: number }>("select count(*) as n from bounded_task where tenant = ? and owner = ?")
      .get(tenant, owner)?.n ?? 0;
  return open <= max ? null : { bound: "maxOpenTasks", max, used: open - seqs.length, retryAt: null };
}

function descendantsExceeded(
  tx: Transaction,
  { tenant, descendants }: SubmitBounds,
  count: number,
): ExceededBound | null {
  if (descendants === null) return null;
  const { root, max } = descendants;
  const below =
    tx
      .prepare<{ n: number }>(
        "select count(*) as n from task indexed by task_by_root where root_task = ? and tenant = ?",
      )
      .get(root, tenant)?.n ?? 0;
  return below <= max ? null : { bound: "maxDescendants", max, used: below - count, retryAt: null };
}
