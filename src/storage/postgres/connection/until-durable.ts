import type { PostgresDatabase } from "./database.ts";

/** After this long a commit is on disk, whatever the settings: three times the longest `wal_writer_delay`. */
const DURABLE_AFTER_MS = 30_000;

/**
 * Resolves once starts at these times survive a crash of the database. A reader awaits it before it returns them. Claims do not
 * wait for the disk, so that starts are not delayed; a reader waits if a start is that recent. Otherwise a crash could undo a
 * start that a reader has seen, and the number of its event would be assigned again.
 */
export async function untilDurable(
  db: PostgresDatabase,
  startedAt: readonly (string | null)[],
): Promise<void> {
  const latest = Math.max(...startedAt.map((at) => (at === null ? 0 : Number(at))));
  if (latest > 0 && latest > (await db.now()) - DURABLE_AFTER_MS) await db.durable();
}
