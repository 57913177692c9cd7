import { Client } from "pg";
import { readMigrations } from "../../src/storage/migrations.ts";

const MIGRATIONS = new URL("../../src/storage/postgres/migrations/", import.meta.url);

/**
 * A whole database as SQL: the migrations that made its tables, word for word, and every row. The words are kept with
 * the rows so that a migration that is changed later does not change what this one did. Functions are left out: each
 * version of the program brings its own. Others may write meanwhile; it is of one moment.
 */
export async function dumpPostgres(url: string): Promise<string> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    await client.query("begin isolation level repeatable read read only");
    const names = await tables(client);
    const parts = [
      "create schema rota;",
      "set search_path = rota;",
      "create table schema_version (version integer primary key, name text not null);",
      ...readMigrations(MIGRATIONS).map(({ name, sql }) => `-- ${name}\n${sql}`),
      // Some of them leave rows of their own.
      `truncate ${names.join(", ")};`,
    ];
    for (const name of names) parts.push(...(await rows(client, name)));
    return [...parts, ...(await sequences(client)), ""].join("\n");
  } finally {
    await client.end();
  }
}

/** In the order in which they were made, so that what refers to another comes after it. */
async function tables(client: Client): Promise<string[]> {
  const { rows: found } = await client.query<{ relname: string }>(
    "select relname from pg_class where relnamespace = 'rota'::regnamespace and relkind = 'r' order by oid",
  );
  return found.map(({ relname }) => relname);
}

async function rows(client: Client, table: string): Promise<string[]> {
  const { rows: columns } = await client.query<{ attname: string }>(
    `select attname from pg_attribute
      where attrelid = $1::regclass and attnum > 0 and not attisdropped and attgenerated = '' order by attnum`,
    [`rota.${table}`],
  );
  const names = columns.map(({ attname }) => `"${attname}"`);
  const quoted = names.map((name) => `quote_nullable(${name}::text)`).join(", ");
  const { rows: found } = await client.query<{ line: string }>(
    `select concat_ws(', ', ${quoted}) as line from rota.${table}`,
  );
  const into = `insert into ${table} (${names.join(", ")}) overriding system value values`;
  return found.map(({ line }) => `${into} (${line});`);
}

async function sequences(client: Client): Promise<string[]> {
  const { rows: found } = await client.query<{ name: string; value: string | null; start: string }>(
    `select sequencename as name, last_value as value, start_value as start from pg_sequences where schemaname = 'rota'`,
  );
  return found.map(
    ({ name, value, start }) => `select setval('${name}', ${value ?? start}, ${value !== null});`,
  );
}

/** Makes a database of a dump; the one that is given is empty. */
export async function loadPostgres(url: string, dump: string): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    // The dump has what triggers wrote.
    await client.query("set session_replication_role = replica");
    await client.query(dump);
  } finally {
    await client.end();
  }
}
