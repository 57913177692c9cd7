import { once } from "node:events";
import { connect, createServer } from "node:net";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { createTestDatabase, type TestDatabase } from "../postgres/database.ts";
import { findFreePort } from "../postgres/server.ts";
import { eventually, runRota } from "./server-process.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database?.drop());

/** The URL of the database at another port, where no server listens until `start` is called. */
async function reachableLater() {
  const url = new URL(database.url);
  const { hostname, port } = url;
  url.port = String(await findFreePort());
  const start = async () => {
    const proxy = createServer((client) => {
      const server = connect(Number(port), hostname);
      for (const [one, other] of [
        [client, server],
        [server, client],
      ] as const) {
        one.pipe(other);
        one.on("error", () => other.destroy());
      }
    });
    proxy.listen(Number(url.port), "127.0.0.1");
    await once(proxy, "listening");
    onTestFinished(() => void proxy.close());
  };
  return { url: url.href, start };
}

/** Listens at the address of a database and closes each connection, until the server has tried so many times. */
async function turnedAway(url: string, count: number): Promise<void> {
  let come = 0;
  const door = createServer((client) => {
    come += 1;
    client.destroy();
  });
  door.listen(Number(new URL(url).port), "127.0.0.1");
  await once(door, "listening");
  await eventually(() => come >= count, "further tries");
  door.close();
  await once(door, "close");
}

function serve(storage: string, environment: Record<string, string> = {}) {
  return runRota(["serve", "--port", "0", "--storage", storage], { environment });
}

/** How often the log says that it waits. */
function waits(server: ReturnType<typeof serve>): number {
  return server.stderr().split("not up yet").length - 1;
}

describe("a PostgreSQL that is not up yet", () => {
  test("is waited for, and the log says so once", async () => {
    const { url, start } = await reachableLater();
    const server = serve(url);
    await eventually(() => waits(server) > 0, "the log to say that it waits");
    expect(server.stderr()).toContain("ECONNREFUSED");
    await turnedAway(url, 2);
    await start();
    await eventually(() => server.stdout().includes("Rota is ready"), "the server to be ready");
    expect(waits(server)).toBe(1);
    server.kill("SIGTERM");
    expect(await server.ended).toEqual({ code: 0, signal: null });
  });

  test.each([
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const)("is not waited for any longer after %s", async (signal, code) => {
    const { url } = await reachableLater();
    const server = serve(url);
    await eventually(() => waits(server) > 0, "the log to say that it waits");
    const since = performance.now();
    server.kill(signal);
    expect(await server.ended).toEqual({ code, signal: null });
    expect(performance.now() - since).toBeLessThan(2_000);
  });

  test.each(["0", "0.5"])("is given up after %s seconds if the configuration says so", async (seconds) => {
    const { url } = await reachableLater();
    const server = serve(url, { ROTA_STORAGE_WAIT_SEC: seconds });
    expect(await server.ended).toEqual({ code: 1, signal: null });
    expect(server.stderr()).toMatch(
      /Rota cannot start: PostgreSQL: .*ECONNREFUSED.*: check that it runs, and the host and port in `storage`\n/,
    );
    expect(waits(server)).toBe(seconds === "0" ? 0 : 1);
  });
});

describe("a PostgreSQL that is up", () => {
  test.each([
    [
      "a wrong password",
      (url: URL) => {
        url.password = "wrong";
      },
      /^Rota cannot start: PostgreSQL: password authentication failed for user "\w+": check the user and the password in `storage`\n$/,
    ],
    [
      "a database that does not exist",
      (url: URL) => {
        url.pathname = "/no_such_database";
      },
      /^Rota cannot start: PostgreSQL: database "no_such_database" does not exist: create it, or name another one in `storage`\n$/,
    ],
    [
      "a certificate file that does not exist",
      (url: URL) => {
        url.searchParams.set("sslrootcert", "/no/such.pem");
      },
      /^Rota cannot start: PostgreSQL: ENOENT: no such file or directory, open '\/no\/such\.pem': correct the parameters of `storage`\n$/,
    ],
  ])("is not waited for with %s", async (_what, spoil, sentence) => {
    const url = new URL(database.url);
    spoil(url);
    const server = serve(url.href);
    expect(await server.ended).toEqual({ code: 1, signal: null });
    expect(server.stderr()).toMatch(sentence);
  });
});
