import type { CancelledTask } from "../../storage.ts";
import type { SqliteDatabase } from "../connection/database.ts";
import { cancelAll } from "./steps/cancel-all.ts";

export function cancelTasks(
  db: SqliteDatabase,
  params: { tenant: string; ids: readonly string[]; error: string | null },
): Promise<CancelledTask[]> {
  return db.transactDurably((tx) => cancelAll(tx, params));
}
