import { IDEMPOTENCY_MS } from "../../storage.ts";
import type { SqliteDatabase } from "../connection/database.ts";

/** The idempotency keys among these that have a task. */
export async function keptKeys(
  db: SqliteDatabase,
  { tenant, keys }: { tenant: string; keys: readonly string[] },
): Promise<string[]> {
  return db.read(() => {
    const since = db.clock.now() - IDEMPOTENCY_MS;
    const find = db.prepare(
      `select 1 from idempotency_key k join task t on t.seq = k.task_seq
        where k.tenant = ? and k.key = ? and k.created_at > ?`,
    );
    return keys.filter((key) => find.get(tenant, key, since) !== undefined);
  });
}
