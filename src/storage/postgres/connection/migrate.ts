import pg, { type ClientBase, type PoolConfig } from "pg";
import { RotaError } from "../../../model/errors.ts";
import { type Migration, newerSchemaError, readMigrations } from "../../migrations.ts";
import { toOpenError } from "./errors.ts";
import { installFunctions } from "./functions.ts";

/** Held while a node checks or changes the schema, so that nodes that start together do it one after the other. */
const MIGRATION_LOCK = 7683;

/** Brings the schema and the functions of a database up to date, on a connection of its own. */
export async function migrateDatabase(config: PoolConfig): Promise<void> {
  const client = newClient(config);
  client.on("error", () => undefined);
  try {
    await client.connect();
    await migrate(client, readMigrations(new URL("../migrations/", import.meta.url)));
  } catch (error) {
    throw toOpenError(error);
  } finally {
    await client.end().catch(() => undefined);
  }
}

/** The library reads the files that the URL names, such as certificates, when a client is created. */
function newClient(config: PoolConfig): pg.Client {
  try {
    return new pg.Client(config);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new RotaError(
      "storage_unavailable",
      `PostgreSQL: ${reason}: correct the parameters of \`storage\``,
      {
        cause: error,
      },
    );
  }
}

async function migrate(client: ClientBase, migrations: readonly Migration[]): Promise<void> {
  await checkEncoding(client);
  // Migrating a large table takes long, and another node may be doing it before us.
  await client.query("set statement_timeout = 0; set lock_timeout = 0");
  await client.query("select pg_advisory_lock($1)", [MIGRATION_LOCK]);
  try {
    await migrateSchema(client, migrations);
    await installFunctions(client);
  } finally {
    await client.query("select pg_advisory_unlock($1)", [MIGRATION_LOCK]);
  }
}

/** Brings the schema alone up to date, as far as these migrations go. */
export async function migrateSchema(client: ClientBase, migrations: readonly Migration[]): Promise<void> {
  await client.query("create schema if not exists rota");
  await client.query(
    "create table if not exists rota.schema_version (version integer primary key, name text not null)",
  );
  const { rows } = await client.query<{ version: number | null }>(
    "select max(version) as version from rota.schema_version",
  );
  const version = rows[0]?.version ?? 0;
  if (version > migrations.length) throw newerSchemaError(version, migrations.length);
  for (const migration of migrations.slice(version)) await applyMigration(client, migration);
}

async function applyMigration(client: ClientBase, migration: Migration): Promise<void> {
  await client.query("begin");
  try {
    await client.query("set local search_path = rota");
    await client.query(migration.sql);
    await client.query("insert into rota.schema_version (version, name) values ($1, $2)", [
      migration.version,
      migration.name,
    ]);
    await client.query("commit");
  } catch (error) {
    await client.query("rollback");
    throw error;
  }
}

/** In any other encoding, Rota could accept text that the database cannot store. */
async function checkEncoding(client: ClientBase): Promise<void> {
  const { rows } = await client.query<{ server_encoding: string }>("show server_encoding");
  const encoding = rows[0]?.server_encoding;
  if (encoding === "UTF8" || encoding === "SQL_ASCII") return;
  throw new RotaError(
    "storage_unavailable",
    `the database has the encoding ${encoding}, Rota needs UTF8: create it with "create database … encoding 'UTF8' template template0"`,
  );
}
