import type { TaskPlace } from "../storage.ts";
import type { PostgresDatabase } from "./database.ts";

/** Fails waiting tasks whose deadline has passed. */
export async function expireTasks(
  db: PostgresDatabase,
  params: { limit: number },
): Promise<{ expired: TaskPlace[] }> {
  const expired = await db.write<TaskPlace>({
    name: "expire_tasks",
    text: "select * from expire_overdue(enter($1), $2)",
    values: [params.limit],
  });
  if (expired.length > 0) db.signal({ kind: "events" });
  return { expired };
}
