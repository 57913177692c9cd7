import type Sqlite from "better-sqlite3";
import type { Transaction } from "../connection/transaction.ts";

/**
 * Creates the table of ready tasks, in order: those that are queued, not parked, and not held by an attempt. It is in memory:
 * only one process writes to the file, so no other needs to see it, and on disk its rows, clustered by agent, would cost every
 * transaction more pages than all others together. It takes part in transactions like any other table. Rows are inserted and
 * deleted, never changed.
 *
 * A second table counts the parked tasks of each agent queue. Its trigger covers updates only: no task is parked when it is
 * inserted or deleted.
 */
export function createReadySet(db: Sqlite.Database): void {
  db.exec(`
    create temp table ready (
      line      integer not null,
      rank      integer not null,
      task_seq  integer not null,
      primary key (line, rank, task_seq)
    ) strict, without rowid;
    ${FILL} order by t.line, t.rank, t.seq;

    create temp table parked_of_line (
      line   integer primary key,
      tasks  integer not null
    ) strict;
    insert into parked_of_line (line, tasks)
    select line, count(*) from task indexed by task_parked where parked is not null group by line;
    create temp trigger parked_counted after update of parked, line on main.task
      when (old.parked is null) <> (new.parked is null) or (new.parked is not null and old.line <> new.line)
    begin
      update parked_of_line set tasks = tasks - 1 where line = old.line and old.parked is not null;
      insert into parked_of_line (line, tasks) select new.line, 1 where new.parked is not null
          on conflict (line) do update set tasks = tasks + 1;
    end;
  `);
}

/** Inserts the ready tasks of one lane, after the caller has deleted its entries. */
export function fillReadySet(tx: Transaction, lane: string): void {
  tx.prepare(`${FILL} and t.line in (select id from line where lane = ?)`).run(lane);
}

const FILL = `
  insert into ready (line, rank, task_seq)
  select t.line, t.rank, t.seq from task t indexed by task_queued
   where t.resting_state = 'queued' and t.parked is null and not exists (select 1 from lease l where l.task_seq = t.seq)`;
