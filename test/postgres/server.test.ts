import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { Client } from "pg";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { type PostgresServer, startPostgres } from "./server.ts";

// These tests are about starting a server of our own, so they do so also where ROTA_TEST_POSTGRES_URL is set.

async function connect(url: string): Promise<Client> {
  const client = new Client({ connectionString: url });
  await client.connect();
  return client;
}

/** Resolves when the server cuts the connection, which is how a client learns that it has ended. */
function connectionLost(client: Client): Promise<void> {
  return new Promise((resolve) => {
    client.on("error", () => {});
    client.once("end", resolve);
  });
}

describe("startPostgres", () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres({ durable: true });
  });
  afterAll(() => server?.stop());

  test("waits for the disk when it is to be durable", async () => {
    const client = await connect(server.url);
    const { rows } = await client.query(
      "SELECT current_setting('fsync') AS fsync, current_setting('synchronous_commit') AS commit",
    );
    await client.end();
    expect(rows).toEqual([{ fsync: "on", commit: "on" }]);
  });

  test("refuses a connection without the password", async () => {
    const url = new URL(server.url);
    url.password = "wrong";
    await expect(connect(url.href)).rejects.toThrow("password authentication failed");
  });

  test("keeps port and data over a restart, and cuts the connections", async () => {
    const before = await connect(server.url);
    const lost = connectionLost(before);
    await before.query("CREATE TABLE kept AS SELECT 7682 AS port");
    const pidBefore = server.pid;

    await server.restart();
    await lost;
    expect(server.pid).not.toBe(pidBefore);
    const after = await connect(server.url);
    expect((await after.query("SELECT port FROM kept")).rows).toEqual([{ port: 7682 }]);
    await after.end();
  });

  test("keeps over a crash what waited for the disk, and loses what did not", async () => {
    // Otherwise the server would write by itself, a moment later, what no client waits for.
    const forgetful = await startPostgres({ durable: true, settings: { wal_writer_delay: "10s" } });
    onTestFinished(() => forgetful.stop());
    const before = await connect(forgetful.url);
    const lost = connectionLost(before);
    await before.query("CREATE TABLE kept (waited bool)");
    await before.query("INSERT INTO kept VALUES (true)");
    await before.query("SET synchronous_commit = off");
    await before.query("INSERT INTO kept VALUES (false)");

    await forgetful.crash();
    await lost;
    const after = await connect(forgetful.url);
    expect((await after.query("SELECT waited FROM kept")).rows).toEqual([{ waited: true }]);
    await after.end();
  });

  test("stops its server, also when asked twice", async () => {
    const other = await startPostgres({ durable: false });
    await Promise.all([other.stop(), other.stop()]);
    await other.stop();
    await expect(connect(other.url)).rejects.toThrow("ECONNREFUSED");
  });

  test("leaves no server behind when the process that started it is killed", async () => {
    const script = `
      import { startPostgres } from ${JSON.stringify(new URL("./server.ts", import.meta.url).href)};
      console.log((await startPostgres({ durable: false })).url);
    `;
    const owner = spawn(process.execPath, ["--input-type=module", "--eval", script], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const [url] = (await once(createInterface({ input: owner.stdout }), "line")) as [string];
    const client = await connect(url);
    const lost = connectionLost(client);

    owner.kill("SIGKILL");
    await lost;
    await expect(connect(url)).rejects.toThrow();
  });
});
