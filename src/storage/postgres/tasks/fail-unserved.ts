import type { TaskLabels } from "../../storage.ts";
import type { PostgresDatabase } from "../connection/database.ts";

/** Fails queued tasks of unserved agents that no live node has been able to execute for `afterMs`. */
export async function failUnserved(
  db: PostgresDatabase,
  { afterMs, limit }: { afterMs: number; limit: number },
): Promise<{ failed: TaskLabels[]; nextAt: number | null }> {
  // Usually no agent queue is unserved. Then the write lock is not taken.
  const some = await db.read({
    name: "has_unserved",
    text: "select 1 from line where standing = 2 and waiting > 0 limit 1",
    values: [],
  });
  if (some.length === 0) return { failed: [], nextAt: null };
  const rows = await db.write<TaskLabels & { next_at: string | null }>({
    name: "fail_unserved",
    text: "select * from fail_unserved($1, $2, $3)",
    values: [afterMs, limit],
  });
  const failed = rows.filter(({ tenant }) => tenant !== null);
  if (failed.length > 0) {
    db.signal({ kind: "events" });
    db.signal({ kind: "work" });
  }
  const nextAt = rows.find(({ tenant }) => tenant === null)?.next_at ?? null;
  return {
    failed: failed.map(({ tenant, agent, lane }) => ({ tenant, agent, lane })),
    nextAt: nextAt === null ? null : Number(nextAt),
  };
}
