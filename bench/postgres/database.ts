import { randomBytes } from "node:crypto";
import { Client } from "pg";
import type { EmptyStorage } from "../empty-storage.ts";

/** Makes an empty database on the server. */
export async function createDatabase(serverUrl: string): Promise<EmptyStorage> {
  const name = `rota_bench_${randomBytes(8).toString("hex")}`;
  await execute(serverUrl, `create database ${name} template template0`);
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  return {
    url: url.href,
    settle: () => execute(serverUrl, "checkpoint"),
    remove: () => execute(serverUrl, `drop database if exists ${name} with (force)`),
  };
}

export async function connect(url: string): Promise<Client> {
  const client = new Client({ connectionString: url });
  await client.connect();
  return client;
}

async function execute(url: string, statement: string): Promise<void> {
  const client = await connect(url);
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}
