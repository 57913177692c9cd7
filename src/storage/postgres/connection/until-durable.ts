import type { PostgresDatabase } from "./database.ts";

/** After this long a commit is on disk, whatever the settings: three times the longest `wal_writer_delay`. */
const DURABLE_AFTER_MS = 30_000;

/**
 * When a task `t` with lease `l` last started or ended, as far as it is known; null: it never started. If its last attempt has
 * ended but the task has not, the time is not stored: a time in the far future stands for it.
 */
export const CHANGED_AT =
  "coalesce(l.started_at, t.completed_at, case when t.executions > 0 then 9000000000000000 end)";

/**
 * Resolves once starts and ends at these times survive a crash of the database. A reader awaits it before it returns them.
 * Starts and ends do not wait for the disk under the write lock; a reader waits if one is that recent. Otherwise a crash could
 * undo what a reader has seen, and the number of its event would be assigned again.
 */
export async function untilDurable(
  db: PostgresDatabase,
  changedAt: readonly (string | null)[],
): Promise<void> {
  const latest = Math.max(...changedAt.map((at) => (at === null ? 0 : Number(at))));
  if (latest > 0) await db.flushIfAfter(latest, DURABLE_AFTER_MS);
}
