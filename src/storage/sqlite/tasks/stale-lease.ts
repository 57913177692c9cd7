import type { SqliteDatabase } from "../connection/database.ts";
import type { Transaction } from "../connection/transaction.ts";

/** A lease in the cache was lost in the table. */
export class StaleLeaseError extends Error {}

/** The same as `db.transact`, for work that ends attempts. If a lease was stale, the rollback has cleared the cache. */
export function transactEnds<Result>(db: SqliteDatabase, work: (tx: Transaction) => Result): Result {
  try {
    return db.transact(work);
  } catch (error) {
    if (!(error instanceof StaleLeaseError)) throw error;
    return db.transact(work);
  }
}
