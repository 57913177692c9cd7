import type Sqlite from "better-sqlite3";
import { type Migration, newerSchemaError } from "../../migrations.ts";

/** Brings the schema up to date. Because of the process lock, no other process migrates at the same time. */
export function migrate(db: Sqlite.Database, migrations: readonly Migration[]): void {
  db.exec(
    "create table if not exists schema_version (version integer primary key, name text not null) strict",
  );
  const current = db
    .prepare<[], { version: number }>("select max(version) as version from schema_version")
    .get();
  const version = current?.version ?? 0;
  if (version > migrations.length) throw newerSchemaError(version, migrations.length);
  const remember = db.prepare("insert into schema_version (version, name) values (?, ?)");
  for (const migration of migrations.slice(version)) {
    db.transaction(() => {
      db.exec(migration.sql);
      remember.run(migration.version, migration.name);
    }).immediate();
  }
}
