import { settleBatches } from "./batches.ts";
import type { SqliteDatabase } from "./database.ts";
import type { Ledger } from "./ledger.ts";
import { RELEASED_MAX, releaseDependants } from "./release-dependants.ts";
import { settleSessions } from "./settle-sessions.ts";

/** What follows from the moves of a transaction: dependants hear of ends, sessions and batches let others in. */
export function settleMoves(db: SqliteDatabase, ledger: Ledger, now: number): void {
  releaseDependants(db, ledger, RELEASED_MAX, now);
  settleGates(db, ledger, now);
}

/** The same where no dependants are to be told here. */
export function settleGates(db: SqliteDatabase, ledger: Ledger, now: number): void {
  settleSessions(db, ledger, now);
  settleBatches(db, ledger, now);
  // A session may have ended what others depend on.
  if (ledger.hasReleases) db.signal({ kind: "release" });
}
