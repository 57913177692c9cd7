import { IDEMPOTENCY_MS } from "../../storage.ts";
import type { PostgresDatabase } from "../connection/database.ts";

/** The idempotency keys among these that have a task. */
export async function keptKeys(
  db: PostgresDatabase,
  { tenant, keys }: { tenant: string; keys: readonly string[] },
): Promise<string[]> {
  const rows = await db.write<{ key: string }>({
    name: "kept_keys",
    text: `select k.key from idempotency_key k cross join lateral (select 1 from task where seq = k.task_seq offset 0) t
            where k.tenant = $2 and k.key = any ($3)
              and k.created_at > coalesce($1::bigint, floor(extract(epoch from clock_timestamp()) * 1000)::bigint) - ${IDEMPOTENCY_MS}`,
    values: [tenant, keys],
  });
  const kept = new Set(rows.map(({ key }) => key));
  return keys.filter((key) => kept.has(key));
}
