import type { SqliteDatabase } from "../connection/database.ts";

/** Passes ends and retries on to the remaining dependants; see `processReleases`. */
export async function release(db: SqliteDatabase, params: { limit: number }): Promise<{ more: boolean }> {
  return db.transactDurably((tx) => {
    const { ledger } = tx;
    ledger.hasReleases = true;
    const notified = tx.settle(params.limit);
    tx.save();
    if (notified > 0) tx.signal("events");
    return { more: ledger.hasReleases };
  });
}
