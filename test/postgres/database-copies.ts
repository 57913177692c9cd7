import { Client } from "pg";
import { createTestDatabase, type TestDatabase } from "./database.ts";

export interface DatabaseCopies {
  /** Makes a database of its own that looks as `prepare` has left the first one. */
  copy(): Promise<TestDatabase>;
  /** Removes all that are left. */
  drop(): Promise<void>;
}

/**
 * Prepares one database and copies it as often as wanted: for test files that need a fresh one in each test, where
 * preparing it every time would take longer than the tests.
 *
 * @example
 * const copies = await prepareDatabaseCopies(async (url) => (await openPostgres({ url })).close());
 * afterAll(() => copies.drop());
 */
export async function prepareDatabaseCopies(
  prepare: (url: string) => Promise<void>,
): Promise<DatabaseCopies> {
  const original = await createTestDatabase();
  await prepare(original.url);
  const serverUrl = new URL(original.url);
  const template = serverUrl.pathname.slice(1);
  serverUrl.pathname = "/postgres";
  const server = new Client({ connectionString: serverUrl.href });
  await server.connect();

  let made = 0;
  const left = new Set<string>();
  const dropOne = async (name: string) => {
    await server.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
    left.delete(name);
  };
  return {
    async copy() {
      made += 1;
      const name = `${template}_${made}`;
      left.add(name);
      // Copies the files; the other way reads and logs them page by page.
      await server.query(`CREATE DATABASE ${name} TEMPLATE ${template} STRATEGY file_copy`);
      const url = new URL(original.url);
      url.pathname = `/${name}`;
      return { url: url.href, drop: () => dropOne(name) };
    },
    async drop() {
      for (const name of left) await dropOne(name);
      await server.end();
      await original.drop();
    },
  };
}
