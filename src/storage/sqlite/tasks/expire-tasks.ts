import type { TaskLabels } from "../../storage.ts";
import type { SqliteDatabase } from "../connection/database.ts";
import { expireOverdue } from "./steps/expire-overdue.ts";

/** Fails waiting tasks whose deadline has passed. */
export async function expireTasks(
  db: SqliteDatabase,
  params: { limit: number },
): Promise<{ expired: TaskLabels[] }> {
  return db.transactDurably((tx) => {
    const expired = expireOverdue(tx, params.limit);
    if (expired.length > 0) tx.signal("events");
    return { expired };
  });
}
