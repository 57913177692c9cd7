import { Client } from "pg";
import { onTestFinished } from "vitest";
import { createTestDatabase } from "./database.ts";

export interface RestorableDatabase {
  readonly url: string;
  /** Keeps the database as it is now. Cuts all connections, which may come back at once. */
  keep(): Promise<void>;
  /** Restores what was kept, while connections use it. `meddle` changes the restored data before a connection reads it. */
  restore(meddle?: (url: string) => Promise<void>): Promise<void>;
}

/** A database that can be restored while processes use it, as from a backup or by a fail-over to a replica that lagged. */
export async function createRestorableDatabase(): Promise<RestorableDatabase> {
  const database = await createTestDatabase();
  const address = new URL(database.url);
  const name = address.pathname.slice(1);
  const kept = `${name}_kept`;
  const next = `${name}_next`;
  address.pathname = "/postgres";
  const admin = new Client({ connectionString: address.href });
  await admin.connect();
  onTestFinished(async () => {
    for (const each of [kept, next]) await admin.query(`drop database if exists ${each} with (force)`);
    await admin.end();
    await database.drop();
  });

  async function shut(): Promise<void> {
    await admin.query(`alter database ${name} allow_connections false`);
    await admin.query("select pg_terminate_backend(pid) from pg_stat_activity where datname = $1", [name]);
    // A terminated backend takes a moment to end.
    for (let tries = 0; tries < 500; tries += 1) {
      const { rowCount } = await admin.query("select 1 from pg_stat_activity where datname = $1", [name]);
      if (rowCount === 0) return;
    }
    throw new Error(`${name} is still used.`);
  }

  return {
    url: database.url,
    async keep() {
      await shut();
      await admin.query(`create database ${kept} template ${name}`);
      await admin.query(`alter database ${name} allow_connections true`);
    },
    async restore(meddle) {
      await admin.query(`create database ${next} template ${kept}`);
      const url = new URL(database.url);
      url.pathname = `/${next}`;
      await meddle?.(url.href);
      await shut();
      await admin.query(`drop database ${name} with (force)`);
      await admin.query(`alter database ${next} rename to ${name}`);
    },
  };
}
