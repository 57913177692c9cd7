import type { PostgresDatabase } from "./database.ts";

/**
 * When a task `t` with lease `l` last started or ended, else when it was accepted. If its last attempt has ended but the task has
 * not, the time is not stored: a time in the far future stands for it.
 */
export const CHANGED_AT =
  "coalesce(l.started_at, t.completed_at, case when t.executions > 0 then 9000000000000000 else t.created_at end)";

/**
 * Resolves once what was committed at these times survives a crash of the database. A reader awaits it before it returns what it
 * read. Commits do not wait for the disk under the write lock, so a reader may see one before it is flushed. A crash could undo
 * it, and the number of its event would be assigned again.
 */
export async function untilDurable(
  db: PostgresDatabase,
  changedAt: readonly (string | null)[],
): Promise<void> {
  const latest = Math.max(...changedAt.map((at) => (at === null ? 0 : Number(at))));
  if (latest > 0) await db.durableSince(latest);
}
