import { type BoundsUsed, SUBMIT_MINUTES, type SubmitBounds } from "../../storage.ts";
import type { SqliteDatabase } from "../connection/database.ts";

const MINUTE_MS = 60_000;

export async function boundsUsed(db: SqliteDatabase, bounds: SubmitBounds): Promise<BoundsUsed> {
  const { tenant, owner, maxSubmitsPerHour, maxOpenTasks, descendants } = bounds;
  return db.read(() => ({
    minutes:
      maxSubmitsPerHour === null
        ? []
        : db
            .prepare<{ minute: number; submits: number }>(
              "select minute, submits from bounded_minute where tenant = ? and owner = ? and minute > ? order by minute",
            )
            .all(tenant, owner, Math.floor(db.now() / MINUTE_MS) - SUBMIT_MINUTES),
    open:
      maxOpenTasks === null
        ? 0
        : count(
            db,
            `select count(*) as n from bounded_task b join task t on t.seq = b.task_seq
              where b.tenant = ? and b.owner = ? and t.resting_state in ('waiting_dependency', 'delayed', 'queued')`,
            [tenant, owner],
          ),
    descendants:
      descendants === null
        ? 0
        : count(
            db,
            "select count(*) as n from task indexed by task_by_root where root_task = ? and tenant = ?",
            [descendants.root, tenant],
          ),
  }));
}

function count(db: SqliteDatabase, query: string, values: readonly string[]): number {
  return db.prepare<{ n: number }>(query).get(...values)?.n ?? 0;
}
