import { PRIORITY_CRITICAL } from "../../../model/priority.ts";
import { NOT_POLLING_MS } from "../../../model/worker.ts";
import { preemptionError } from "../../preemption-error.ts";
import { canWorkerRun, isAlone, isForWorkers } from "../connection/abilities.ts";
import type { PostgresDatabase } from "../connection/database.ts";
import { readSql } from "../connection/sql-file.ts";
import { agentLimitOf } from "../counters/counters.ts";
import { RELEASED_MAX } from "../tasks/settle-moves.ts";

/** Pre-empts running tasks of workers for critical ones that find no free slot. */
export async function preemptForWorkers(
  db: PostgresDatabase,
  { limit }: { limit: number },
): Promise<{ preempted: number }> {
  const [row] = await db.write<{ tokens: string[] }>({
    name: "preempt_for_workers",
    text: "select preempt_for_workers($1, $2) as tokens",
    values: [limit],
  });
  const tokens = (row?.tokens ?? []).map(Number);
  if (tokens.length > 0) {
    db.signal({ kind: "events" });
    db.signal({ kind: "fenced", tokens, reason: "preempted" });
    db.signal({ kind: "work" });
  }
  return { preempted: tokens.length };
}

export const PREEMPT_FOR_WORKERS_FUNCTIONS = readSql(new URL("./preempt-for-workers.sql", import.meta.url), {
  AGENT_LIMIT: agentLimitOf("n", "l.per_agent"),
  PRIORITY_CRITICAL,
  NOT_POLLING_MS,
  IS_ALONE: isAlone("n"),
  IS_FOR_WORKERS: isForWorkers("n"),
  CAN_WORKER_RUN: canWorkerRun("n", "w.agents"),
  PREEMPTION_ERROR: preemptionError("' || v_critical.id || '"),
  RELEASED_MAX,
});
