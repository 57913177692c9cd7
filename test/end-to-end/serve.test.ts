import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { serve } from "../support/http-server.ts";
import { startAgentProgram } from "./agent-program.ts";
import {
  eventually,
  newFolder,
  npmStart,
  runRota,
  type ServerProcess,
  startServer,
} from "./server-process.ts";

const PAGE = { headers: { accept: "text/html" }, redirect: "manual" } as const;

test("serves the dashboard, which in a clone it builds by itself, and never before it is ready", async () => {
  const server = await startServer();
  expect((await server.ask("/", PAGE)).headers.get("location")).toBe("/ui/");
  const first = await server.ask("/ui/", PAGE);
  expect([first.status, first.headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"]);
  await eventually(
    async () => (await server.ask("/ui/tasks", PAGE)).body.includes('<div id="root">'),
    "the dashboard",
  );
});

test("serves none where it is switched off, and below a path if configured", async () => {
  const off = await startServer({ environment: { ROTA_UI_ENABLED: "false" } });
  expect(off.stdout()).not.toContain("dashboard");
  expect((await off.ask("/ui/", PAGE)).status).toBe(404);
  expect((await off.ask("/", PAGE)).status).toBe(200);
  const below = await startServer({ environment: { ROTA_SERVER_BASE_PATH: "/rota" } });
  expect(below.stdout()).toContain(`dashboard at ${below.url}/rota/ui/`);
  expect((await below.ask("/rota/health")).status).toBe(200);
});

test("says in one line where it is, does what it is asked and stops on a signal", async () => {
  const server = await startServer();
  expect(server.stdout()).toMatch(
    /^Rota is ready at http:\/\/127\.0\.0\.1:\d+ \(storage sqlite::memory:\), dashboard at http:\/\/127\.0\.0\.1:\d+\/ui\/\n$/,
  );

  const { status, body } = await server.ask("/tasks", { json: { message: "hello" } });
  expect(status).toBe(202);
  await eventually(
    async () => (await server.ask(`/v1/tasks/${body.taskId}`)).body.state === "done",
    "the task",
  );
  expect((await server.ask(`/tasks/${body.taskId}`)).body.result).toBe("hello");

  server.kill("SIGTERM");
  expect(await server.ended).toEqual({ code: 0, signal: null });
  expect(server.stdout().split("\n")).toHaveLength(2);
  const log = server
    .stderr()
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(log.map(({ level, msg }) => [level, msg])).toEqual([
    ["info", "stopping"],
    ["info", "stopped"],
  ]);
});

test.each([
  ["::1", "[::1]"],
  ["localhost", "localhost"],
])("listens on %s when asked to", async (host, shown) => {
  const server = await startServer({ args: ["--host", host] });
  expect(new URL(server.url).hostname).toBe(shown);
  expect((await server.ask("/ready")).status).toBe(200);
});

test("reads rota.config.json where it is started, and variables and flags over it", async () => {
  const folder = newFolder();
  writeFileSync(
    join(folder, "rota.config.json"),
    JSON.stringify({ storage: "sqlite:file.db", scheduler: { maxPerAgent: 3, enabled: false } }),
  );
  const server = await startServer({
    folder,
    environment: { ROTA_SCHEDULER_ENABLED: "true", ROTA_SCHEDULER_MAX_INFLITE: "5" },
    storage: "sqlite:flag.db",
  });
  expect(server.stdout()).toContain("(storage sqlite:flag.db)");
  expect((await server.ask("/tasks", { json: { payload: 1 } })).status).toBe(202);
  expect(server.stderr()).toContain("did you mean ROTA_SCHEDULER_MAX_INFLIGHT?");
});

function logOf(server: ServerProcess): { level: string; msg: string; [field: string]: unknown }[] {
  return server
    .stderr()
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));
}

test("is where ROTA_PORT, ROTA_HOST and ROTA_STORAGE say, and names a variable that means nothing once", async () => {
  const { url } = await startServer();
  const { port } = new URL(url);
  const environment = { ROTA_PORT: port, ROTA_HOST: "127.0.0.1", ROTA_STORAGE: "sqlite::memory:" };
  const taken = runRota(["serve"], { environment: { ...environment, ROTA_LOGLEVEL: "warn" } });
  expect(await taken.ended).toEqual({ code: 1, signal: null });
  expect(taken.stderr()).toContain(`port ${port} of 127.0.0.1 is taken`);
  expect(
    taken.stderr().match(/ROTA_LOGLEVEL is not an option of Rota .* did you mean ROTA_LOG_LEVEL\?/g),
  ).toHaveLength(1);
});

test("the log has a line for each attempt that failed", async () => {
  const program = await serve((_, response) => response.writeHead(500).end("out of paper"));
  const agents = { printer: { executor: { type: "http", url: program } } };
  const server = await startServer({ environment: { ROTA_AGENTS: JSON.stringify(agents) } });
  const json = { agentId: "printer", payload: 1, retryPolicy: { maxRetries: 1, backoffMs: 1 } };
  const { body } = await server.ask("/tasks", { json });
  await eventually(
    async () => (await server.ask(`/tasks/${body.taskId}`)).body.state === "failed",
    "the task",
  );
  const error = expect.stringContaining("500");
  const fields = { level: "warn", taskId: body.taskId, agentId: "printer", error };
  expect(logOf(server)).toEqual([
    expect.objectContaining({
      ...fields,
      attempt: 1,
      msg: "an attempt failed; the task is tried again",
      retryAt: expect.stringMatching(/^\d{4}-.*Z$/),
    }),
    expect.objectContaining({ ...fields, attempt: 2, msg: "an attempt failed, and with it the task" }),
  ]);
});

test.each([
  ["--log-level", { args: ["--log-level", "error"] }],
  ["ROTA_LOG_LEVEL", { environment: { ROTA_LOG_LEVEL: "error" } }],
])("%s says how much the log says", async (_, params) => {
  const server = await startServer(params);
  server.kill("SIGTERM");
  await server.ended;
  expect(server.stderr()).toBe("");
});

test("SIGUSR1 opens no port for a debugger: it does nothing, and the log says so", async () => {
  const server = await startServer();
  server.kill("SIGUSR1");
  await eventually(() => server.stderr().includes("SIGUSR1"), "a line of the log");
  expect(logOf(server).map(({ level, msg }) => [level, msg])).toEqual([
    ["info", "SIGUSR1 has no effect; send SIGHUP to reload the configuration"],
  ]);
  expect((await server.ask("/ready")).status).toBe(200);
});

describe("what stops it from starting is said in a sentence:", () => {
  async function refusal(args: readonly string[], folder = newFolder(), code = 1): Promise<string> {
    const process = runRota(["serve", ...args], { folder });
    expect(await process.ended).toEqual({ code, signal: null });
    expect(process.stdout()).toBe("");
    expect(process.stderr()).not.toMatch(/^\s+at /m);
    return process.stderr();
  }

  test("a port that is taken", async () => {
    const { url } = await startServer();
    const { port } = new URL(url);
    expect(await refusal(["--port", port, "--storage", "sqlite::memory:"])).toBe(
      `Rota cannot start: port ${port} of 127.0.0.1 is taken: stop the program that uses it, or choose another port with --port\n`,
    );
  });

  test("a port that is taken, and no database is left behind", async () => {
    const { url } = await startServer();
    const folder = newFolder();
    await refusal(["--port", new URL(url).port, "--storage", "sqlite:other.db"], folder);
    expect(readdirSync(folder)).toEqual([]);
  });

  test("another Rota on the same file, which goes on undisturbed", async () => {
    const file = join(newFolder(), "rota.db");
    const first = await startServer({ storage: `sqlite:${file}` });
    expect(await refusal(["--port", "0", "--storage", `sqlite:${file}`])).toBe(
      `Rota cannot start: another Rota process is using ${file}: stop it first, give this one a file of its own, or use PostgreSQL to run several\n`,
    );
    expect((await first.ask("/tasks", { json: { payload: 1 } })).status).toBe(202);
  });

  test("a database that cannot be opened", async () => {
    const folder = newFolder();
    mkdirSync(join(folder, "rota.db"));
    expect(await refusal(["--port", "0"], folder)).toBe(
      "Rota cannot start: cannot open the database rota.db: files in this folder cannot be written, or it is not a file\n",
    );
    expect(await refusal(["--port", "0", "--storage", "sqlite:no/rota.db"])).toBe(
      "Rota cannot start: cannot open the database no/rota.db: there is no folder no\n",
    );
  });

  test("a PostgreSQL that is not there, without its password", async () => {
    const folder = newFolder();
    writeFileSync(join(folder, "rota.config.json"), JSON.stringify({ storageWaitSec: 0 }));
    const storage = "postgres://rota:secret@127.0.0.1:1/rota";
    const sentence = await refusal(["--port", "0", "--storage", storage], folder);
    expect(sentence).toMatch(/^Rota cannot start: .*127\.0\.0\.1:1.*\n$/);
    expect(sentence).not.toContain("secret");
  });

  test("a host name that has no address", async () => {
    expect(await refusal(["--host", "no-such-host.invalid", "--port", "0"])).toBe(
      "Rota cannot start: the name no-such-host.invalid has no address: write an IP address, or a name that this machine can resolve, with --host\n",
    );
  });

  test("an address that others could reach, before there is a key", async () => {
    const sentence =
      "Rota cannot start: 0.0.0.0 is reachable from other machines, so an API key is required and no valid one exists: ";
    expect(await refusal(["--host", "0.0.0.0", "--port", "0"])).toBe(
      `${sentence}create one with\n  rota keys create --role admin --name me --storage sqlite:rota.db\n`,
    );
    expect(await refusal(["--host", "0.0.0.0", "--port", "0", "--storage", "sqlite::memory:"])).toBe(
      `${sentence}a storage in memory has no keys when it starts, so choose another with --storage, like sqlite:rota.db\n`,
    );
  });

  test("everything that is wrong with the configuration", async () => {
    const folder = newFolder();
    writeFileSync(join(folder, "mine.json"), '{"schduler":{},"storage":"rota.db"}');
    expect(await refusal(["--config", "mine.json", "--port", "high"], folder)).toBe(
      [
        "Rota cannot start: the configuration has 3 faults:",
        '- `server.port` must be an integer from 0 to 65535, not "high" (--port)',
        '- `storage` must be "sqlite:rota.db", "sqlite::memory:" or "postgres://user:password@host:5432/database" (mine.json)',
        "- unknown option `schduler`: did you mean `scheduler`? (mine.json)",
        "",
      ].join("\n"),
    );
  });

  test("a flag that does not exist", async () => {
    expect(await refusal(["--prot", "1"], newFolder(), 2)).toContain(
      "error: unknown option '--prot'\n(Did you mean --port?)",
    );
  });
});

test.each([
  [["--version"], /^\d+\.\d+\.\d+\n$/],
  [["--help"], /^Usage: rota .*serve \[options\]/s],
  [["serve", "--help"], /^Usage: rota serve .*--port .*--host .*--storage .*--config /s],
])("rota %s prints its text and exits with 0", async (args, answer) => {
  const process = runRota(args);
  expect(await process.ended).toEqual({ code: 0, signal: null });
  expect(process.stdout()).toMatch(answer);
});

describe("npm start", () => {
  /** With one task under way, so that there is something to wait for. */
  async function startBusy() {
    const program = await startAgentProgram();
    const agents = { worker: { executor: { type: "http", url: program.url } } };
    const server = await npmStart(["--port", "0", "--storage", "sqlite::memory:"], {
      environment: { ROTA_AGENTS: JSON.stringify(agents) },
    });
    await server.ask("/tasks", { json: { agentId: "worker", payload: 1 } });
    await eventually(() => program.holding().length === 1, "the task to be under way");
    return { server, program };
  }

  async function drains(server: ServerProcess): Promise<void> {
    await eventually(async () => (await server.ask("/ready")).status === 503, "the server to drain");
  }

  test.each(["SIGTERM", "SIGINT"] as const)(
    "hands its flags on, and %s to npm reaches the server",
    async (signal) => {
      const { server, program } = await startBusy();
      server.kill(signal);
      await drains(server);
      program.release();
      expect(await server.ended).toEqual({ code: 0, signal: null });
      expect(server.stderr()).toContain('"msg":"stopped"');
      await expect(server.ask("/ready")).rejects.toThrow("fetch failed");
    },
  );

  test("takes Ctrl-C in a terminal, which reaches npm and the server, for one signal", async () => {
    const { server, program } = await startBusy();
    server.killGroup("SIGINT");
    await drains(server);
    // By then npm, too, has handed it on.
    for (let n = 0; n < 50; n++) expect((await server.ask("/ready")).status).toBe(503);
    program.release();
    expect(await server.ended).toEqual({ code: 0, signal: null });
  });

  test("ends at once with a second signal, and the server with it", async () => {
    const { server } = await startBusy();
    server.kill("SIGTERM");
    await drains(server);
    let hasEnded = false;
    void server.ended.then(() => {
      hasEnded = true;
    });
    // What comes right after the first is taken for its echo.
    await eventually(() => {
      server.kill("SIGTERM");
      return hasEnded;
    }, "npm to end");
    // A signal that comes when the server has ended is npm's own, and to a shell the same.
    expect([
      { code: 143, signal: null },
      { code: null, signal: "SIGTERM" },
    ]).toContainEqual(await server.ended);
    await expect(server.ask("/ready")).rejects.toThrow("fetch failed");
  });
});
