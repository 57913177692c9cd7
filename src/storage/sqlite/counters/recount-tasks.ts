import type { SqliteDatabase } from "../connection/database.ts";
import type { RecountSlices } from "./recount-slices.ts";

/** Counts the tasks themselves, and checks that each is where its state says and entered for its agent and its tenant. */
export async function countAllTasks(recount: RecountSlices): Promise<void> {
  const { db, census, limit } = recount;
  const found = { queued: 0, located: 0, old: 0, ofAgent: 0, ofTenant: 0 };
  for (let more = true; more; ) {
    const from = census.upTo;
    const rows = census.advance(limit);
    add(found, locationsOf(db, from, census.upTo));
    add(found, entriesOf(db, from, census.upTo));
    more = rows === limit;
    await recount.sliceDone(rows);
  }
  recount.compare("queued tasks that are ready, parked or held", found.located, found.queued);
  recount.compare("tasks entered by agent", found.ofAgent, found.old);
  recount.compare("tasks entered by tenant", found.ofTenant, found.old);
}

/** Every entry of the ready set is a queued task. */
export async function checkReadySet(recount: RecountSlices): Promise<void> {
  let rows = 0;
  let rightRows = 0;
  await recount.eachPage<{ line: number; rank: number; task_seq: number; right: 0 | 1 }>(
    recount.limit,
    {
      sql: `select r.line, r.rank, r.task_seq,
                   exists (select 1 from task t where t.seq = r.task_seq and t.line = r.line and t.rank = r.rank
                              and t.resting_state = 'queued' and t.parked is null) as right
              from ready r where (r.line, r.rank, r.task_seq) > (?, ?, ?) order by r.line, r.rank, r.task_seq limit +?`,
      first: [-1, 0, 0],
      keyOf: ({ line, rank, task_seq }) => [line, rank, task_seq],
    },
    (page) => {
      rows += page.length;
      for (const { right } of page) rightRows += right;
    },
  );
  recount.compare("ready entries of queued tasks", rows, rightRows);
}

/** No entry of `task_of_line` names the wrong agent queue. */
export async function checkTasksOfAgentQueues(recount: RecountSlices): Promise<void> {
  let wrongRows = 0;
  await recount.eachPage<{ line: number; task_seq: number; wrong: 0 | 1 }>(
    recount.limit,
    {
      sql: `select x.line, x.task_seq,
                   exists (select 1 from task t where t.seq = x.task_seq and t.line <> x.line) as wrong
              from task_of_line x where (x.line, x.task_seq) > (?, ?) order by x.line, x.task_seq limit +?`,
      first: [-1, 0],
      keyOf: ({ line, task_seq }) => [line, task_seq],
    },
    (page) => {
      for (const { wrong } of page) wrongRows += wrong;
    },
  );
  recount.compare("tasks entered for another agent", wrongRows, 0);
}

/** A queued task is exactly one of these: ready, parked, or held by an attempt. */
function locationsOf(db: SqliteDatabase, from: number, to: number): { queued: number; located: number } {
  return db
    .prepare<{ queued: number; located: number }>(
      `select count(*) as queued,
              coalesce(sum((parked is not null)
                + exists (select 1 from ready r where r.line = t.line and r.rank = t.rank and r.task_seq = t.seq)
                + exists (select 1 from lease l where l.task_seq = t.seq)), 0) as located
         from task t not indexed where resting_state = 'queued' and seq > ? and seq <= ?`,
    )
    .get(from, to) as { queued: number; located: number };
}

interface Entries {
  readonly old: number;
  readonly ofAgent: number;
  readonly ofTenant: number;
}

function entriesOf(db: SqliteDatabase, from: number, to: number): Entries {
  return db
    .prepare<Entries>(
      `select count(*) as old,
              coalesce(sum(exists (select 1 from task_of_line x where x.line = t.line and x.task_seq = t.seq)), 0) as ofAgent,
              coalesce(sum(exists (select 1 from task_of_tenant y where y.tenant = t.tenant and y.task_seq = t.seq)), 0)
                as ofTenant
         from task t where seq > ? and seq <= ?`,
    )
    .get(from, Math.min(to, db.enteredUpTo)) as Entries;
}

function add<Name extends string>(
  sum: Record<Name, number>,
  more: Readonly<Partial<Record<Name, number>>>,
): void {
  for (const [name, count] of Object.entries(more) as [Name, number][]) sum[name] += count;
}
