import { settleBatches } from "./batches.ts";
import type { SqliteDatabase } from "./database.ts";
import type { Ledger } from "./ledger.ts";
import { RELEASED_MAX, releaseDependants } from "./release-dependants.ts";

/** What follows from the moves of a transaction: dependants hear of ends, batches let others in. */
export function settleMoves(db: SqliteDatabase, ledger: Ledger, now: number): void {
  releaseDependants(db, ledger, RELEASED_MAX, now);
  settleBatches(db, ledger, now);
}
