import type { Ledger } from "../counters/ledger.ts";

/** Counts a task out of its batch, if it has one: as one that ended, or that gives its place up for a while. */
export function leaveBatch(
  ledger: Ledger,
  id: string | null,
  { ended, wasActive = true }: { ended: boolean; wasActive?: boolean },
): void {
  const batch = ledger.batches.of({ batch: id });
  if (batch === undefined) return;
  if (ended) batch.open -= 1;
  if (wasActive && batch.parallelism !== null) batch.active -= 1;
}
