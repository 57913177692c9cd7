import type { SqliteDatabase } from "./database.ts";

/** How many of the newest tasks may be missing in `task_of_line`: a list by agent looks through them one by one. */
export const ENTER_EVERY = 1_000;

/**
 * Enters the newest tasks into `task_of_line`, once there are enough of them. An index would be entered with every task
 * and write a page for every agent each time; this writes a page for every agent and a thousand tasks.
 */
export function enterTasksOfLines(db: SqliteDatabase, newest: number): void {
  if (newest - db.enteredUpTo < db.enterEvery) return;
  db.write(() => {
    db.prepare(
      `insert into task_of_line (line, task_seq)
       select line, seq from task where seq > ? and seq <= ? order by line, seq`,
    ).run(db.enteredUpTo, newest);
    db.prepare(
      `insert into high_water (name, value) values ('task_of_line', ?)
       on conflict (name) do update set value = excluded.value`,
    ).run(newest);
  });
  db.enteredUpTo = newest;
}
