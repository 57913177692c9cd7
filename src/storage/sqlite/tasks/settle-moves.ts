import type { SqliteDatabase } from "../connection/database.ts";
import type { Ledger } from "../counters/ledger.ts";
import { settleSessions } from "../sessions/settle-sessions.ts";
import { completeBatches } from "./batches.ts";
import { settlePlaces } from "./concurrency-keys.ts";
import { RELEASED_MAX, releaseDependants } from "./release-dependants.ts";

/**
 * What follows from the moves of a transaction: dependants hear of ends, `limit` of them at most, sessions, batches and
 * keys let others in. Answers how many heard.
 */
export function settleMoves(db: SqliteDatabase, ledger: Ledger, now: number, limit = RELEASED_MAX): number {
  let told = 0;
  do {
    told += releaseDependants(db, ledger, limit - told, now);
    // Others may depend on what a session ends as stale.
    settleSessions(db, ledger, now);
  } while (ledger.hasReleases && told < limit);
  settlePlaces(db, ledger);
  completeBatches(db, ledger, now);
  if (ledger.hasReleases) db.signal({ kind: "release" });
  return told;
}
