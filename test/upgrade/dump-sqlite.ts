import Sqlite from "better-sqlite3";

/** A whole database as SQL: what made its tables, and every row. Others may write meanwhile; it is of one moment. */
export function dumpSqlite(file: string): string {
  const db = new Sqlite(file, { readonly: true });
  try {
    return db.transaction(() => [...statements(db)].join("\n"))();
  } finally {
    db.close();
  }
}

function* statements(db: Sqlite.Database): Generator<string> {
  const objects = db
    .prepare<[], { type: string; name: string; sql: string }>(
      "select type, name, sql from sqlite_schema where sql is not null and name not like 'sqlite\\_%' escape '\\' order by rowid",
    )
    .all();
  const tables = objects.filter(({ type }) => type === "table");
  for (const { sql } of tables) yield `${sql};`;
  for (const { name } of tables) yield* rows(db, name);
  yield "delete from sqlite_sequence;";
  yield* rows(db, "sqlite_sequence");
  // Last, as rows are cheaper to insert without them.
  for (const { type, sql } of objects) if (type !== "table") yield `${sql};`;
}

function* rows(db: Sqlite.Database, table: string): Generator<string> {
  const columns = db
    .prepare<[string], { name: string }>("select name from pragma_table_xinfo(?) where hidden = 0")
    .all(table)
    .map(({ name }) => `"${name}"`);
  const values = db
    .prepare<[], string>(
      `select ${columns.map((name) => `quote(${name})`).join(" || ', ' || ")} from ${table}`,
    )
    .pluck()
    .all();
  for (const row of values) yield `insert into ${table} (${columns.join(", ")}) values (${row});`;
}

/** Makes a database of a dump. */
export function loadSqlite(file: string, dump: string): void {
  const db = new Sqlite(file);
  // All at once: each row by itself would wait for the disk.
  db.transaction(() => db.exec(dump))();
  db.close();
}
