import type { BatchRecord, BatchTaskRecord } from "../../storage.ts";
import type { SqliteDatabase } from "../connection/database.ts";
import type { BatchRow } from "../counters/batch-ledger.ts";

export async function getBatch(
  db: SqliteDatabase,
  params: { tenant: string; id: string },
): Promise<BatchRecord | null> {
  return db.read(() => {
    const batch = db
      .prepare<BatchRow>("select * from batch where tenant = ? and id = ?")
      .get(params.tenant, params.id);
    if (batch === undefined) return null;
    const { id, parallelism, created_at: createdAt, completed_at: completedAt } = batch;
    return { id, parallelism, createdAt, completedAt };
  });
}

/** Without specs and results: those of a whole batch can take more memory than the process has. */
export async function batchTasks(
  db: SqliteDatabase,
  { tenant, batch, limit }: { tenant: string; batch: string; limit: number },
): Promise<BatchTaskRecord[]> {
  return db.read(() =>
    db
      .prepare<Omit<BatchTaskRecord, "dependsOn"> & { depends_on: string | null }>(
        `select t.id, t.agent, coalesce(l.state, t.resting_state) as state, t.error, t.spec ->> '$.key' as key,
                t.spec -> '$.dependsOn' as depends_on
           from task t indexed by task_by_batch left join lease l on l.task_seq = t.seq
          where t.batch = ? and t.tenant = ? order by t.seq limit +?`,
      )
      .all(batch, tenant, limit)
      .map(({ depends_on: dependsOn, ...task }) => ({
        ...task,
        dependsOn: dependsOn === null ? [] : JSON.parse(dependsOn),
      })),
  );
}
