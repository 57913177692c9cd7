import { type BoundsUsed, SUBMIT_MINUTES, type SubmitBounds } from "../../storage.ts";
import type { PostgresDatabase } from "../connection/database.ts";
import { BOUND_EXCEEDED } from "../connection/errors.ts";
import { readSql } from "../connection/sql-file.ts";

/** Whether the task of a row `b` has not ended. One lookup by its key for each row. */
const IS_OPEN = `(select t.resting_state in ('waiting_dependency', 'delayed', 'queued') from task t where t.seq = b.task_seq)`;

export async function boundsUsed(db: PostgresDatabase, bounds: SubmitBounds): Promise<BoundsUsed> {
  const { tenant, owner, maxSubmitsPerHour, maxOpenTasks, descendants } = bounds;
  const since = Math.floor((await db.now()) / 60_000) - SUBMIT_MINUTES;
  const [row] = await db.readDurably<{ minutes: BoundsUsed["minutes"]; open: string; descendants: string }>({
    name: "bounds_used",
    text: `select (select coalesce(json_agg(json_build_object('minute', minute, 'submits', submits) order by minute), '[]')
                     from bounded_minute where tenant = $1 and owner = $2 and minute > $3::bigint) as minutes,
                  (select count(*) from bounded_task b where b.tenant = $1 and b.owner = $2 and ${IS_OPEN}) as open,
                  (select count(*) from task where root_task = $4 and tenant || '' = $1) as descendants`,
    values: [tenant, owner, since, descendants?.root ?? null],
  });
  return {
    minutes: maxSubmitsPerHour === null ? [] : (row?.minutes ?? []),
    open: maxOpenTasks === null ? 0 : Number(row?.open ?? 0),
    descendants: descendants === null ? 0 : Number(row?.descendants ?? 0),
  };
}

export const BOUND_FUNCTIONS = readSql(new URL("./submit-bounds.sql", import.meta.url), {
  SUBMIT_MINUTES,
  BOUND_EXCEEDED,
  IS_OPEN,
});
