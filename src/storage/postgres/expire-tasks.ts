import type { PostgresDatabase } from "./database.ts";

/** Fails waiting tasks whose deadline has passed. */
export async function expireTasks(
  db: PostgresDatabase,
  params: { limit: number },
): Promise<{ expired: number }> {
  const [row] = await db.write<{ expired: number }>({
    name: "expire_tasks",
    text: "select expire_overdue(enter($1), $2) as expired",
    values: [params.limit],
  });
  const expired = row?.expired ?? 0;
  if (expired > 0) db.signal({ kind: "events" });
  return { expired };
}
