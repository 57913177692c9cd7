import Sqlite from "better-sqlite3";
import { expect, test } from "vitest";
import { readMigrations } from "../../migrations.ts";
import { migrate } from "../connection/migrate.ts";

test("tasks that were rejected before say which queue was full", () => {
  const migrations = readMigrations(new URL("../migrations/", import.meta.url));
  const before = migrations.findIndex(({ name }) => name.endsWith("full-queue.sql"));
  const db = new Sqlite(":memory:");
  migrate(db, migrations.slice(0, before));
  db.exec(`
    insert into lane (name, strategy) values ('main', 'fair-fifo');
    insert into line (lane, tenant, agent, last_served) values ('main', 'default', 'a', 9);`);
  const insert = db.prepare(`
    insert into task (seq, id, tenant, agent, line, priority, rank, resting_state, position, created_at, completed_at,
                      max_retries_if_lost, spec, error)
    select @seq, @id, 'default', 'a', id, 2, 3, @state, 0, 1, 1, 0, '{}', 'rejected: ' || @id || ' queue full' from line`);
  for (const [index, id] of ["agent", "global", "server", "none"].entries())
    insert.run({ seq: index + 1, id, state: id === "none" ? "failed" : "rejected" });
  migrate(db, migrations);
  expect(db.prepare("select id, full_queue from task order by seq").raw().all()).toEqual([
    ["agent", "agent"],
    ["global", "global"],
    ["server", "server"],
    ["none", null],
  ]);
});
