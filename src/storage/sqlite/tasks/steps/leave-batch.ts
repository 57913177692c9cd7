import type { Transaction } from "../../connection/transaction.ts";

/** Updates the counters of a task's batch, if it has one: the task ended, or gives up its slot for a while. */
export function leaveBatch(
  { ledger }: Transaction,
  id: string | null,
  { ended, wasActive = true }: { ended: boolean; wasActive?: boolean },
): void {
  const batch = ledger.batches.of({ batch: id });
  if (batch === undefined) return;
  if (ended) batch.open -= 1;
  if (wasActive && batch.parallelism !== null) batch.active -= 1;
}
