import Sqlite from "better-sqlite3";
import { expect, test } from "vitest";
import { readMigrations } from "../../migrations.ts";
import { migrate } from "../connection/migrate.ts";

test("admin keys of other tenants become tenant-admin keys, and the audit log names each", () => {
  const migrations = readMigrations(new URL("../migrations/", import.meta.url));
  const before = migrations.findIndex(({ name }) => name.endsWith("tenant-admins.sql"));
  const db = new Sqlite(":memory:");
  migrate(db, migrations.slice(0, before));
  db.exec(`
    insert into tenant (id, name, disabled, created_at, updated_at) values ('acme', 'acme', 0, 0, 0);
    insert into api_key (id, tenant, name, role, hash, created_at)
    values ('k1', 'default', 'root', 'admin', '1', 0), ('k2', 'acme', 'owner', 'admin', '2', 0),
           ('k3', 'acme', 'users', 'operator', '3', 0)`);
  migrate(db, migrations);
  expect(db.prepare("select id, role from api_key order by id").raw().all()).toEqual([
    ["k1", "admin"],
    ["k2", "tenant-admin"],
    ["k3", "operator"],
  ]);
  const rows = db.prepare("select tenant, route, subject from audit_entry order by tenant").raw().all();
  const route = "upgrade: admin becomes tenant-admin";
  expect(rows).toEqual([
    ["acme", route, "k2"],
    ["default", route, "k2"],
  ]);
});
