import { AGENT_MEMORY_MS } from "../../storage.ts";
import type { SqliteDatabase } from "./database.ts";
import { abilitiesChanged } from "./steps/change-abilities.ts";

/** Deletes agents that no node has named for `AGENT_MEMORY_MS`. */
export function forgetAgents(db: SqliteDatabase): void {
  db.transact((tx) => {
    const forgotten = tx.prepare("delete from agent_seen where at <= ?").run(tx.now - AGENT_MEMORY_MS);
    const ofWorkers = tx.prepare("delete from worker_agent_seen where at <= ?").run(tx.now - AGENT_MEMORY_MS);
    if (forgotten.changes + ofWorkers.changes > 0) abilitiesChanged(tx, { lessServed: true });
  });
}
