import { measureDrain } from "../drain.ts";
import { type NewStorage, postgresStorage, sqliteStorage } from "../empty-storage.ts";
import { type Figure, figure, shareOf } from "../figure.ts";
import { inTurns } from "../in-turns.ts";
import type { Setting } from "../job.ts";

export function sessionsOnSqlite(setting: Setting): Promise<Figure[]> {
  return sessions(sqliteStorage(setting), setting, "SQLite");
}

export function sessionsOnPostgres(setting: Setting): Promise<Figure[]> {
  return sessions(postgresStorage(setting), setting, "PostgreSQL");
}

/** What it costs to keep conversations in order: the same tasks with and without them. */
async function sessions(
  newStorage: NewStorage,
  { turns, sizes }: Setting,
  storage: string,
): Promise<Figure[]> {
  const tasks = sizes.sessions;
  const drain = await inTurns(turns, {
    none: () => measureDrain(newStorage, { tasks }),
    each: () => measureDrain(newStorage, { tasks, sessions: "each" }),
    one: () => measureDrain(newStorage, { tasks, sessions: "one" }),
  });
  const count = tasks.toLocaleString("en");
  const goal = { atLeast: 0.7 };
  return [
    figure(`drain, ${count} tasks, ${storage}`, "tasks/s", drain.none),
    figure(`drain, ${count} sessions of 1, ${storage}`, "tasks/s", drain.each),
    figure(`drain, 1 session of ${count}, ${storage}`, "tasks/s", drain.one),
    shareOf(`${count} sessions / none, ${storage}`, { of: drain.each, against: drain.none, goal }),
    shareOf(`1 session / none, ${storage}`, { of: drain.one, against: drain.none, goal }),
  ];
}
