import type Sqlite from "better-sqlite3";
import type { SqliteDatabase } from "../connection/database.ts";

/**
 * Makes the table of what could start right now, in order, from the tasks that are queued, not parked, and that no
 * attempt holds. It lies in memory: one process writes to the file, so that nobody else needs to see it, and its rows,
 * clustered by agent, would cost every transaction more pages than all others together. It takes part in transactions
 * like any other table. Rows come and go and are never changed.
 *
 * Beside it lies how many tasks of each agent queue are parked. No task is inserted or deleted while it is.
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

/** Fills in what is ready in one lane, of which nothing is there. */
export function fillReadySet(db: SqliteDatabase, lane: string): void {
  db.prepare(`${FILL} and t.line in (select id from line where lane = ?)`).run(lane);
}

const FILL = `
  insert into ready (line, rank, task_seq)
  select t.line, t.rank, t.seq from task t indexed by task_queued
   where t.resting_state = 'queued' and t.parked is null and not exists (select 1 from lease l where l.task_seq = t.seq)`;
