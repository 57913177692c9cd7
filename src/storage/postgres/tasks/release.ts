import { RELEASES_LOOKED_AT } from "../../shared-releases.ts";
import type { PostgresDatabase } from "../connection/database.ts";
import { readSql } from "../connection/sql-file.ts";
import { parkedBy } from "./batches.ts";
import { parentOf } from "./parent-of.ts";
import { PREEMPT } from "./preempt-tasks.ts";

/** Notifies the dependants that are left; see `RELEASED_MAX` in settle-moves.ts. */
export async function release(db: PostgresDatabase, params: { limit: number }): Promise<{ more: boolean }> {
  const [row] = await db.write<{ released: boolean; more: boolean }>({
    name: "release",
    text: "select * from release($1, $2)",
    values: [params.limit],
  });
  if (row === undefined || !row.released) return { more: false };
  signalReleased(db);
  db.signal({ kind: "events" });
  return { more: row.more };
}

/** Some dependants may be ready, delayed or ended now. */
export function signalReleased(db: PostgresDatabase): void {
  db.signal({ kind: "work" });
  db.signal({ kind: "due" });
  db.signal({ kind: "deliveries" });
}

export const RELEASE_FUNCTIONS = readSql(new URL("./release.sql", import.meta.url), {
  PARKED_BY: parkedBy("t"),
  LOOKED_AT_MAX: RELEASES_LOOKED_AT,
  PREEMPT,
  PARENT_SEQ: parentOf("asked.id", "asked.tenant", "p.seq"),
});
