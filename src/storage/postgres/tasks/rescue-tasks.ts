import { ALONE_AFTER_LOSSES } from "../../alone-queue.ts";
import type { RescuedTasks, TaskLabels } from "../../storage.ts";
import type { PostgresDatabase } from "../connection/database.ts";
import { readSql } from "../connection/sql-file.ts";
import { PREEMPT } from "./preempt-tasks.ts";
import { RELEASED_MAX } from "./settle-moves.ts";

/** Ends attempts of a dead node. Their tasks return to the queue while they have retries left, else they fail. */
export async function rescueTasks(
  db: PostgresDatabase,
  params: { node: string; limit: number; maxLost?: number },
): Promise<RescuedTasks> {
  const rows = await db.write<TaskLabels & { state: "queued" | "failed" }>({
    name: "rescue_tasks",
    text: "select * from rescue_tasks($1, $2, $3, $4)",
    values: [params.node, params.limit, params.maxLost ?? null],
  });
  if (rows.length > 0) {
    db.signal({ kind: "events" });
    db.signal({ kind: "work" });
    db.signal({ kind: "due" });
  }
  const labelsOf = (wanted: "queued" | "failed") =>
    rows.filter(({ state }) => state === wanted).map(({ tenant, agent, lane }) => ({ tenant, agent, lane }));
  return { requeued: labelsOf("queued"), failed: labelsOf("failed") };
}

export const RESCUE_FUNCTIONS = readSql(new URL("./rescue-tasks.sql", import.meta.url), {
  ALONE_AFTER_LOSSES,
  RELEASED_MAX,
  PREEMPT,
});
