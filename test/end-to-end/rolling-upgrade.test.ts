import { appendFileSync, cpSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { openPostgres } from "../../src/storage/postgres/connection/open.ts";
import { VERSION } from "../../src/version.ts";
import { type DatabaseCopies, prepareDatabaseCopies } from "../postgres/database-copies.ts";
import { serve } from "../support/http-server.ts";
import { startAgentProgram } from "./agent-program.ts";
import { eventually, newFolder, type ServerProcess, startServer } from "./server-process.ts";

const ROOT = join(import.meta.dirname, "..", "..");
/** In order after any version that this program has. */
const NEXT_VERSION = "99.0.0";
const POSTGRES = join("src", "storage", "postgres");

const copies: DatabaseCopies = await prepareDatabaseCopies(async (url) =>
  (await openPostgres({ url })).close(),
);
afterAll(() => copies.drop());

/**
 * A copy of this program as its next version: it installs other functions in the database and, with `migration`, changes the
 * schema first. Returns its main file.
 */
function makeNextVersion({ migration }: { migration?: string } = {}): string {
  const folder = newFolder();
  cpSync(join(ROOT, "src"), join(folder, "src"), {
    recursive: true,
    filter: (path) => !path.endsWith(".test.ts"),
  });
  symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
  const manifest = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  writeFileSync(join(folder, "package.json"), JSON.stringify({ ...manifest, version: NEXT_VERSION }));
  appendFileSync(join(folder, POSTGRES, "tasks", "exchange.sql"), "\n-- Of the next version.\n");
  if (migration !== undefined) {
    const migrations = join(folder, POSTGRES, "migrations");
    const number = readdirSync(migrations).length + 1;
    writeFileSync(join(migrations, `${String(number).padStart(3, "0")}-next.sql`), migration);
  }
  return join(folder, "src", "cli", "main.ts");
}

/** As migrations do after which the functions of earlier versions would write what is no longer valid. */
const CLOSING_MIGRATION = `
select pg_advisory_xact_lock(7682);
do $$
declare
  v_schema text;
begin
  for v_schema in select nspname from pg_namespace where nspname like 'rota\\_fn\\_%' loop
    execute format('drop schema %I cascade', v_schema);
  end loop;
end $$;
alter table task add column of_the_next_version integer not null default 0;`;

function environmentFor(url: string, slots: number): Record<string, string> {
  return {
    ROTA_AGENTS: JSON.stringify({ worker: { executor: { type: "http", url } } }),
    ROTA_SCHEDULER_WORKER_COUNT: String(slots),
    ROTA_SCHEDULER_MAX_INFLIGHT: "10",
    ROTA_SCHEDULER_MAX_PER_AGENT: "1000",
    ROTA_SHUTDOWN_GRACE_SEC: "0",
    ROTA_UI_ENABLED: "false",
  };
}

async function submit(server: ServerProcess, input: object): Promise<string> {
  const { status, body } = await server.ask("/tasks", { json: { agentId: "worker", ...input } });
  expect([status, body]).toMatchObject([202, {}]);
  return body.taskId;
}

async function doctorFinds(server: ServerProcess): Promise<unknown[]> {
  const { body } = await server.ask("/v1/doctor");
  return body.checks.filter(({ ok }: { ok: boolean }) => !ok);
}

const UNFINISHED = "waiting_dependency,delayed,queued,assigned,running";

async function allEnded(server: ServerProcess): Promise<boolean> {
  return (await server.ask(`/tasks?state=${UNFINISHED}&limit=1`)).body.count === 0;
}

test("three nodes of two versions run every task once, within the limit over all of them", {
  timeout: 90_000,
}, async () => {
  const { url: storage } = await copies.copy();
  const calls = new Map<string, number>();
  let running = 0;
  let most = 0;
  const url = await serve((_request, response, body) => {
    const { taskId } = JSON.parse(body);
    calls.set(taskId, (calls.get(taskId) ?? 0) + 1);
    most = Math.max(most, ++running);
    setTimeout(() => {
      running -= 1;
      response.setHeader("content-type", "application/json").end("1");
    }, 5);
  });
  // Two nodes cannot take the whole limit of ten, so that the third gets a part of it as well.
  const environment = environmentFor(url, 4);
  const servers = [await startServer({ storage, environment }), await startServer({ storage, environment })];
  const ids: string[] = [];
  const submitMany = async (count: number) => {
    const submitted = Array.from({ length: count }, (_, n) => {
      const server = servers[n % servers.length] as ServerProcess;
      // Those with a retry may be claimed ahead.
      return submit(server, n % 2 === 0 ? { payload: n } : { payload: n, retryPolicy: { maxRetries: 1 } });
    });
    ids.push(...(await Promise.all(submitted)));
  };
  await submitMany(120);
  const [next] = await Promise.all([
    startServer({ storage, environment, main: makeNextVersion() }),
    submitMany(120),
  ]);
  servers.push(next);
  await submitMany(240);
  await eventually(() => allEnded(next), "every task to end");

  expect([...calls.keys()].sort()).toEqual([...ids].sort());
  expect(new Set(calls.values())).toEqual(new Set([1]));
  expect(most).toBeLessThanOrEqual(10);
  const { nodes } = (await next.ask("/v1/nodes")).body;
  const versions = nodes.map(({ version }: { version: string }) => version);
  expect(versions.sort()).toEqual([VERSION, VERSION, NEXT_VERSION]);
  const { tasks } = (await next.ask("/tasks?state=done&limit=500")).body;
  const ran = tasks.map(({ attempts }: { attempts: { node: string }[] }) => attempts.at(-1)?.node);
  expect(new Set(ran).size).toBe(3);
  for (const server of servers) expect(await doctorFinds(server)).toEqual([]);
});

// The leases of the nodes that can no longer write have to run out first, which takes 15 seconds.
test("a migration that closes the database to the version before loses nothing that it had accepted", {
  timeout: 120_000,
}, async () => {
  const { url: storage } = await copies.copy();
  const program = await startAgentProgram();
  const environment = environmentFor(program.url, 3);
  const leaving = await startServer({ storage, environment });
  const staying = await startServer({ storage, environment });
  const again: string[] = [];
  const once: string[] = [];
  for (let n = 0; n < 3; n += 1) {
    again.push(await submit(n % 2 === 0 ? leaving : staying, { instruction: `${n}` }));
    once.push(await submit(n % 2 === 0 ? staying : leaving, { payload: n }));
  }
  await eventually(() => program.holding().length === 6, "all slots to be taken");
  const waiting: string[] = [];
  for (let n = 0; n < 6; n += 1) waiting.push(await submit(leaving, { payload: `waits ${n}` }));

  const main = makeNextVersion({ migration: CLOSING_MIGRATION });
  const next = await startServer({ storage, environment, main });
  for (const server of [leaving, staying]) {
    expect(await server.ask("/tasks", { json: { agentId: "worker", payload: "late" } })).toMatchObject({
      status: 503,
      body: {
        code: "storage_unavailable",
        error: "a later version of Rota has migrated the database: update this node",
      },
    });
    await eventually(async () => (await server.ask("/ready")).status === 503, "the node not to be ready");
  }
  waiting.push(await submit(next, { payload: "of the next version" }));
  leaving.kill("SIGTERM");
  await leaving.ended;
  const replaced = await startServer({ storage, environment, main });
  program.release();
  await eventually(() => allEnded(replaced), "every task to end", 60_000);

  for (const id of [...again, ...waiting])
    expect((await next.ask(`/tasks/${id}`)).body).toMatchObject({ state: "done", result: { did: id } });
  // What may not run twice was lost with its node, whose call may have been answered.
  for (const id of once)
    expect((await replaced.ask(`/tasks/${id}`)).body).toMatchObject({
      state: "failed",
      error: "worker lost",
      attempts: [{ outcome: "lost" }],
    });
  for (const server of [next, replaced]) expect(await doctorFinds(server)).toEqual([]);
});
