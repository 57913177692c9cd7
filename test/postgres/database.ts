import { randomBytes } from "node:crypto";
import { Client } from "pg";
import { inject } from "vitest";

export interface TestDatabase {
  url: string;
  /** Removes the database, cutting the connections that are still open. */
  drop(): Promise<void>;
}

/**
 * Makes a fresh, empty database on the test run's PostgreSQL: one for each test file.
 *
 * @example
 * const database = await createTestDatabase();
 * afterAll(() => database.drop());
 */
export async function createTestDatabase(): Promise<TestDatabase> {
  const serverUrl = await knock();
  const name = `rota_test_${randomBytes(8).toString("hex")}`;
  // template0 takes no connections, so that files creating theirs at the same time never disturb each other.
  await execute(serverUrl, `CREATE DATABASE ${name} TEMPLATE template0`);
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  return {
    url: url.href,
    drop: () => execute(serverUrl, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`),
  };
}

async function knock(): Promise<string> {
  const response = await fetch(inject("postgresDoor"));
  const answer = await response.text();
  if (!response.ok) throw new Error(answer);
  return answer;
}

async function execute(url: string, statement: string): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}
