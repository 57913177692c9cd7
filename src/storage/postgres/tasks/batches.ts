import type { BatchRecord, BatchTaskRecord } from "../../storage.ts";
import type { PostgresDatabase } from "../connection/database.ts";
import { readSql } from "../connection/sql-file.ts";
import { isOf } from "./read-tasks.ts";

export async function getBatch(
  db: PostgresDatabase,
  params: { tenant: string; id: string },
): Promise<BatchRecord | null> {
  const [row] = await db.readDurably<{
    id: string;
    parallelism: number | null;
    created_at: string;
    completed_at: string | null;
  }>({
    name: "get_batch",
    text: "select id, parallelism, created_at, completed_at from batch where id = $2 and tenant = $1",
    values: [params.tenant, params.id],
  });
  if (row === undefined) return null;
  const { id, parallelism, created_at: createdAt, completed_at: completedAt } = row;
  return {
    id,
    parallelism,
    createdAt: Number(createdAt),
    completedAt: completedAt === null ? null : Number(completedAt),
  };
}

/** Without specs and results: those of a whole batch may need more memory than a process has. */
export async function batchTasks(
  db: PostgresDatabase,
  { tenant, batch, limit }: { tenant: string; batch: string; limit: number },
): Promise<BatchTaskRecord[]> {
  const rows = await db.readDurably<BatchTaskRecord>({
    name: "batch_tasks",
    text: `select t.id, t.agent, coalesce(l.state, t.resting_state) as state, t.error, readable_json(t.spec) ->> 'key' as key,
                  coalesce(readable_json(t.spec) -> 'dependsOn', '[]') as "dependsOn"
             from task t left join lease l on l.task_seq = t.seq
            where t.batch = $2 and ${isOf("t", "$1")} order by t.seq limit $3`,
    values: [tenant, batch, limit],
  });
  return rows;
}

/**
 * What parks a task `t` that enters the queue: its batch, if that limits parallelism, else its concurrency key. Whether the batch
 * has room, or the key is free, is decided once the operation has moved all its tasks. A subquery of one value: for `exists` the
 * planner may read all batches.
 */
export function parkedBy(t: string): string {
  return `case when ${t}.batch is not null and (select b.parallelism from batch b where b.id = ${t}.batch) is not null
               then 'batch' when ${t}.concurrency_key is not null then 'asking' end`;
}

export const BATCH_FUNCTIONS = readSql(new URL("./batches.sql", import.meta.url));
