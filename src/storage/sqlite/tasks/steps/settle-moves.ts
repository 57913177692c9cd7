import type { Transaction } from "../../connection/transaction.ts";
import { settleSessions } from "../../sessions/steps/settle-sessions.ts";
import { settleBatchesAndKeys } from "./concurrency-keys.ts";
import { processReleases, RELEASED_MAX } from "./process-releases.ts";
import { completeBatches } from "./settle-batches.ts";

/**
 * Does the deferred work of a transaction: passes ends on to dependants, `limit` of them at most, and fills freed slots of
 * sessions and batches and freed concurrency keys. Returns to how many dependants it passed an end.
 */
export function settleMoves(tx: Transaction, limit = RELEASED_MAX): number {
  let notified = 0;
  do {
    notified += processReleases(tx, limit - notified);
    // Tasks that a session ends as stale may have dependants.
    settleSessions(tx);
  } while (tx.ledger.hasReleases && notified < limit);
  settleBatchesAndKeys(tx);
  completeBatches(tx);
  if (tx.ledger.hasReleases) tx.signal("release");
  return notified;
}
