import type { SqliteDatabase } from "../connection/database.ts";
import type { Ledger } from "../counters/ledger.ts";
import { settleSessions } from "../sessions/settle-sessions.ts";
import { completeBatches } from "./batches.ts";
import { settlePlaces } from "./concurrency-keys.ts";
import { RELEASED_MAX, releaseDependants } from "./release-dependants.ts";

/**
 * Does the deferred work of a transaction: passes ends on to dependants, `limit` of them at most, and fills freed slots of
 * sessions and batches and freed concurrency keys. Returns to how many dependants it passed an end.
 */
export function settleMoves(db: SqliteDatabase, ledger: Ledger, now: number, limit = RELEASED_MAX): number {
  let told = 0;
  do {
    told += releaseDependants(db, ledger, limit - told, now);
    // Tasks that a session ends as stale may have dependants.
    settleSessions(db, ledger, now);
  } while (ledger.hasReleases && told < limit);
  settlePlaces(db, ledger);
  completeBatches(db, ledger, now);
  if (ledger.hasReleases) db.signal({ kind: "release" });
  return told;
}
