import { Client } from "pg";
import { afterAll, expect, test } from "vitest";
import { createTestDatabase } from "./database.ts";

const database = await createTestDatabase();
afterAll(() => database.drop());

async function query(url: string, statement: string): Promise<unknown[]> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(statement)).rows;
  } finally {
    await client.end();
  }
}

test("a test database is empty and speaks UTF-8", async () => {
  expect(await query(database.url, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'")).toEqual(
    [],
  );
  expect(await query(database.url, "SHOW server_encoding")).toEqual([{ server_encoding: "UTF8" }]);
});

test("two test databases share nothing", async () => {
  const other = await createTestDatabase();
  try {
    await query(other.url, "CREATE TABLE mine (id integer)");
    expect(await query(database.url, "SELECT to_regclass('mine') AS found")).toEqual([{ found: null }]);
  } finally {
    await other.drop();
  }
});

test("dropping a database cuts the connections that are still open", async () => {
  const doomed = await createTestDatabase();
  const client = new Client({ connectionString: doomed.url });
  const cut = new Promise((resolve) => client.on("error", resolve));
  await client.connect();
  await doomed.drop();
  expect(await cut).toBeInstanceOf(Error);
});
