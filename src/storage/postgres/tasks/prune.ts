import type { PostgresDatabase } from "../connection/database.ts";
import { readSql } from "../connection/sql-file.ts";
import { recordSpans } from "./list-tasks.ts";

/**
 * Deletes a slice of what has expired. The log is the list of what to delete: walking it from its start finds the tasks that
 * ended before the cutoff. So there is no index on the end of tasks, which every finish would have to maintain.
 */
export async function prune(
  db: PostgresDatabase,
  params: { retentionMs: number; rejectedMax: number; limit: number },
): Promise<{ tasks: number; more: boolean }> {
  const [row] = await db.write<{ tasks: number; more: boolean }>({
    name: "prune",
    text: "select * from prune($1, $2, $3, $4)",
    values: [params.retentionMs, params.rejectedMax, params.limit],
  });
  await recordSpans(db);
  return row ?? { tasks: 0, more: false };
}

/** Whether a task that has not ended depends on task `t`. `offset 0`: looks up its dependants, rather than reading all tasks. */
const IS_WAITED_FOR = `exists (select 1 from dependency d
                                cross join lateral (select completed_at from task where seq = d.child_seq offset 0) c
                                where d.parent_seq = t.seq and c.completed_at is null offset 0)`;

/** Whether the batch of task `t` has not ended, or its end has not expired. */
const IS_KEPT_BY_BATCH = `(select b.completed_at is null or b.completed_at between p_cutoff and p_latest
                             from batch b where b.id = t.batch) is true`;

export const PRUNE_FUNCTIONS = readSql(new URL("./prune.sql", import.meta.url), {
  IS_WAITED_FOR,
  IS_KEPT_BY_BATCH,
});
