import type { CounterFault } from "../../storage.ts";
import type { SqliteDatabase } from "../connection/database.ts";
import { countStored, isAnyKept } from "./steps/count-stored.ts";

/** Counts everything a second time, while the triggers keep both counts up to date. A difference at the end is a fault. */
export async function recountStored(
  db: SqliteDatabase,
  params: { readonly limit: number; readonly onSlice: (tasks: number) => Promise<void> },
): Promise<CounterFault[]> {
  if (!isAnyKept(db)) return [];
  db.transact((tx) => {
    tx.prepare("delete from stored_bytes where is_recount = 1").run();
    tx.prepare("insert into stored_bytes (tenant, is_recount) select tenant, 1 from stored_bytes").run();
  });
  try {
    while (db.transact((tx) => countStored(tx, params.limit)).more) await params.onSlice(params.limit);
    return db
      .prepare<CounterFault>(
        `select 'stored bytes of ' || k.tenant as counter, k.bytes as stored, r.bytes as counted
           from stored_bytes k join stored_bytes r on r.tenant = k.tenant and r.is_recount = 1
          where k.is_recount = 0 and k.bytes <> r.bytes order by k.tenant`,
      )
      .all();
  } finally {
    db.transact((tx) => tx.prepare("delete from stored_bytes where is_recount = 1").run());
  }
}
