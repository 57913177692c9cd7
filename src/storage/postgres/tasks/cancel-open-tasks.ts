import type { EndedTask } from "../../storage.ts";
import type { PostgresDatabase } from "../connection/database.ts";
import { readSql } from "../connection/sql-file.ts";

/** What `cancel_open_tasks` returns, as JSON. */
export interface CancelledJson {
  readonly id: string;
  readonly token: number | null;
  readonly agent: string;
  readonly lane: string;
}

export function toEndedTask({ id, token, agent, lane }: CancelledJson): EndedTask {
  return { id, found: true, was: null, token, agent, lane };
}

/** Notifies the nodes of cancelled tasks. */
export function signalCancelled(db: PostgresDatabase, cancelled: readonly CancelledJson[]): void {
  if (cancelled.length === 0) return;
  const tokens = cancelled.flatMap(({ token }) => token ?? []);
  db.signal({ kind: "events" });
  // A slot of a lane, a session or a batch, an agent's limit or a lane's total may have become free.
  db.signal({ kind: "work" });
  if (tokens.length > 0) db.signal({ kind: "fenced", tokens, reason: "cancelled" });
}

export const CANCEL_OPEN_FUNCTIONS = readSql(new URL("./cancel-open-tasks.sql", import.meta.url));
