import type { ListTasksParams } from "../../storage.ts";
import type { SqliteDatabase } from "../connection/database.ts";

/** How many of the newest tasks may be missing in `task_of_line` and `task_of_tenant`: lists read these one by one. */
export const ENTER_EVERY = 1_000;

/**
 * Inserts the newest tasks into `task_of_line` and `task_of_tenant`, and their time span into `task_span`, once there are
 * enough of them. An index would be updated with every task, and each time write a page for every agent. This writes a page for
 * every agent once per thousand tasks.
 */
export function enterTasksOfAgentQueues(db: SqliteDatabase, newest: number): void {
  if (newest - db.enteredUpTo < db.enterEvery) return;
  db.transact((tx) => {
    tx.prepare(
      `insert into task_of_line (line, task_seq)
       select line, seq from task where seq > ? and seq <= ? order by line, seq`,
    ).run(db.enteredUpTo, newest);
    tx.prepare(
      `insert into task_of_tenant (tenant, task_seq)
       select tenant, seq from task where seq > ? and seq <= ? order by tenant, seq`,
    ).run(db.enteredUpTo, newest);
    tx.prepare(
      `insert into task_span (last_seq, first_seq, first_at, last_at)
       select max(seq), min(seq), min(created_at), max(created_at) from task where seq > ? and seq <= ? having count(*) > 0`,
    ).run(db.enteredUpTo, newest);
    tx.prepare(
      `insert into high_water (name, value) values ('task_of_line', ?)
       on conflict (name) do update set value = excluded.value`,
    ).run(newest);
  });
  db.enteredUpTo = newest;
}

/**
 * The range of numbers, both ends exclusive, of the tasks that were created in a span of time. A clock may be set back, so that
 * numbers and times need not be in the same order. Therefore `task_span` has the first and the last time of each thousand
 * tasks.
 */
export function seqsOfSpan(
  db: SqliteDatabase,
  { from = 0, to = Number.MAX_SAFE_INTEGER, order }: Pick<ListTasksParams, "from" | "to" | "order">,
): { readonly above: number; readonly below: number } {
  const all = { above: 0, below: Number.MAX_SAFE_INTEGER };
  if (order === "completed" || (from === 0 && to === Number.MAX_SAFE_INTEGER)) return all;
  const row = db
    .prepare<{ first: number | null; last: number | null }>(
      `select min(first_seq) as first, max(last_seq) as last
         from (select first_seq, last_seq from task_span where last_at >= @from and first_at < @to
               union all
               select * from (select min(seq), max(seq) from task not indexed
                               where seq > @entered and created_at >= @from and created_at < @to))`,
    )
    .get({ from, to, entered: db.enteredUpTo });
  if (row === undefined || row.first === null || row.last === null) return { above: 0, below: 0 };
  return { above: row.first - 1, below: row.last + 1 };
}
