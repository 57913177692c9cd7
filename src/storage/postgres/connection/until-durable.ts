import type { PostgresDatabase } from "./database.ts";

/** After this long a commit is on the disk whatever the settings: three times the longest `wal_writer_delay`. */
const DURABLE_AFTER_MS = 30_000;

/**
 * Resolves once starts of these moments, which somebody is about to be told of, survive a crash of the database. Claims do
 * not wait for the disk, so that a start is not delayed by it; a reader does, when what it has read is as young as that.
 * Without this a start could be untold, and the number of its event be given out again to something else.
 */
export async function untilDurable(
  db: PostgresDatabase,
  startedAt: readonly (string | null)[],
): Promise<void> {
  const latest = Math.max(...startedAt.map((at) => (at === null ? 0 : Number(at))));
  if (latest > 0 && latest > (await db.now()) - DURABLE_AFTER_MS) await db.durable();
}
