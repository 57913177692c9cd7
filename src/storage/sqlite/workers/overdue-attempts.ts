import type { OverdueAttempt } from "../../storage.ts";
import type { SqliteDatabase } from "../connection/database.ts";
import { TASK_COLUMNS, type TaskRow, taskTables, toTaskRecord } from "../tasks/task-row.ts";

/** When an attempt `a` is overdue; null: never. */
export const DUE_AT = `min(coalesce(a.unnamed_until, ${Number.MAX_SAFE_INTEGER}), coalesce(a.times_out_at, ${Number.MAX_SAFE_INTEGER}),
  coalesce(a.deadline, ${Number.MAX_SAFE_INTEGER}))`;

interface OverdueRow extends TaskRow {
  readonly worker: string;
  readonly token: number;
  readonly reason: OverdueAttempt["reason"];
}

/** Held attempts of workers that take too long, the longest overdue first. */
export async function overdueAttempts(
  db: SqliteDatabase,
  { limit }: { limit: number },
): Promise<OverdueAttempt[]> {
  const rows = db
    .prepare<OverdueRow>(
      `select ${TASK_COLUMNS}, a.worker, a.token,
              case when a.deadline <= @now then 'deadline' when a.times_out_at <= @now then 'timeout' else 'unnamed' end as reason
         from worker_attempt a cross join ${taskTables()}
        where t.seq = a.task_seq and l.token = a.token and ${DUE_AT} <= @now order by ${DUE_AT}, t.seq limit +@limit`,
    )
    .all({ now: db.now(), limit });
  return rows.map(({ worker, token, reason, ...row }) => ({
    ...{ worker, token, reason },
    seq: row.seq,
    task: toTaskRecord(db, row),
  }));
}
