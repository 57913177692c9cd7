import type { RetriedTask, RetryTaskParams } from "../../storage.ts";
import type { SqliteDatabase } from "../connection/database.ts";
import { retryNow } from "./steps/retry-now.ts";

export function retryTask(db: SqliteDatabase, params: RetryTaskParams): Promise<RetriedTask> {
  return db.transactDurably((tx) => retryNow(tx, params));
}
