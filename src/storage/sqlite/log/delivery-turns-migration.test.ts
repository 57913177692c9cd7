import Sqlite from "better-sqlite3";
import { expect, test } from "vitest";
import { callbackHost } from "../../../model/callback-host.ts";
import { readMigrations } from "../../migrations.ts";
import { migrate } from "../connection/migrate.ts";

const URLS = [
  "http://hooks.example/a:b",
  "https://hooks.example:8443",
  "https://HOOKS.Example./?a=b",
  "http://hooks.example?a/b#c",
  "http://hooks.example#a",
  "http://hooks.example\\a",
  "http://127.0.0.1:9867/hook",
  "http://[2001:db8::1]:80/",
  `http://${"long.".repeat(400)}example/`,
];

test("deliveries of before are read their host off the URL, and those that are pending have their turn", () => {
  const migrations = readMigrations(new URL("../migrations/", import.meta.url));
  const index = migrations.findIndex(({ name }) => name.endsWith("delivery-turns.sql"));
  const db = new Sqlite(":memory:");
  migrate(db, migrations.slice(0, index));
  db.exec("insert into tenant (id, name, disabled, created_at, updated_at) values ('off', 'off', 1, 0, 0)");
  const add = db.prepare(
    `insert into delivery (seq, tenant, task_seq, url, task_state, task_retries, task_attempts, created_at, status, due_at)
     values (?, ?, 1, ?, 'done', 0, 1, 7, ?, ?)`,
  );
  for (const [index, url] of URLS.entries()) add.run(index + 1, "on", url, "pending", 100 + index);
  add.run(50, "on", "https://over.example/", "delivered", null);
  add.run(51, "off", "https://waits.example/", "pending", 200);
  migrate(db, migrations);

  const hosts = db
    .prepare("select host from delivery where tenant = 'on' and seq < 50 order by seq")
    .pluck()
    .all();
  expect(hosts).toEqual(URLS.map(callbackHost));
  const receivers = db.prepare("select tenant, host, turn, proven from receiver order by turn, host").all();
  const expected = [...new Set(hosts)].map((host) => ({
    tenant: "on",
    host,
    turn: (100 + hosts.indexOf(host)) * 1_000,
    proven: 0,
  }));
  expect(receivers).toEqual([
    ...expected,
    { tenant: "off", host: "waits.example", turn: 200_000, proven: 0 },
  ]);
  expect(db.prepare("select tenant, proven, turn from delivery_turn").all()).toEqual([
    { tenant: "on", proven: 0, turn: 100_000 },
  ]);
});
