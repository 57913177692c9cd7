import { Client } from "pg";
import { describe, expect, onTestFinished, test } from "vitest";
import { createTestDatabase } from "../../../test/postgres/database.ts";
import { allEvents, settle, submit } from "../../../test/postgres/several-nodes.ts";
import { idsOf, LANE, TENANT } from "../conformance/world.ts";
import { readMigrations } from "../migrations.ts";
import { FUNCTION_SCHEMA } from "./connection/functions.ts";
import { migrateSchema } from "./connection/migrate.ts";
import { openPostgres } from "./connection/open.ts";

const MIGRATIONS = readMigrations(new URL("./migrations/", import.meta.url));

/** A database as a version of Rota with this many migrations left it. */
async function olderDatabase(version: number, rows: string) {
  const database = await createTestDatabase();
  const admin = new Client({ connectionString: database.url });
  await admin.connect();
  onTestFinished(async () => {
    await admin.end();
    await database.drop();
  });
  await migrateSchema(admin, MIGRATIONS.slice(0, version));
  await admin.query(`set search_path = rota; ${rows}`);
  return { url: database.url, admin };
}

async function open(url: string) {
  const storage = await openPostgres({ url });
  onTestFinished(() => storage.close());
  return storage;
}

describe("a database from before batches had rows", () => {
  // One task runs, and a critical and two others wait; of two batches, one is over.
  const ROWS = `
    insert into lane (name, strategy, waiting, inflight) values ('${LANE}', 'fair-fifo', 3, 1);
    insert into line (lane, tenant, agent, waiting, ready, inflight, head_rank, head_seq, last_served, startable, ahead)
    values ('${LANE}', '${TENANT}', 'a', 3, 3, 1, 0, 4, 9, true, true);
    insert into task (seq, id, tenant, agent, line, priority, rank, resting_state, position, created_at,
                      max_retries_if_lost, completed_at, batch, spec)
    select seq, id, '${TENANT}', 'a', (select id from line), priority, priority, state, 1, seq, 0,
           case when state = 'failed' then 100 + seq end, batch, '{}'
      from (values (1, 'over-1', 2, 'failed', 'over'), (2, 'over-2', 2, 'failed', 'over'), (3, 'runs', 2, 'queued', 'open'),
                   (4, 'urgent', 0, 'queued', null), (5, 'low', 3, 'queued', 'open'), (6, 'high', 1, 'queued', null))
             as t(seq, id, priority, state, batch);
    insert into ready (line, rank, task_seq) select line, rank, seq from task where seq > 3;
    insert into tally (tenant, state, tasks)
    select '${TENANT}', s, case s when 'queued' then 4 when 'failed' then 2 else 0 end
      from unnest(array['waiting_dependency', 'delayed', 'queued', 'done', 'failed', 'cancelled', 'rejected']) s;
    insert into node (id, beat_at) values ('old', 0);
    insert into lease (task_seq, token, node, line, state, attempt, started_at)
    select 3, 9, 'old', id, 'running', 1, 50 from line;
    select setval('task_seq', 6), setval('event_seq', 9);`;

  test("is brought up to date with every counter right, and its batches as far as they were", async () => {
    const { url } = await olderDatabase(5, ROWS);
    const storage = await open(url);
    expect(await storage.counters.recountAll()).toEqual([]);
    const batch = (id: string) => storage.tasks.getBatch({ tenant: TENANT, id });
    expect(await batch("over")).toEqual({ id: "over", parallelism: null, createdAt: 1, completedAt: 102 });
    expect(await batch("open")).toEqual({ id: "open", parallelism: null, createdAt: 3, completedAt: null });
  });

  test("claims what waited in its old order, also beside what comes in now", async () => {
    const { url } = await olderDatabase(5, ROWS);
    const storage = await open(url);
    await storage.nodes.register({ node: "new" });
    await submit(storage, [{ id: "normal", agent: "a" }]);
    const step = { node: "new", finishes: [], progress: [], claims: [{ lane: LANE, limit: 9 }] };
    const { claimed } = await storage.tasks.finishAndClaim(step);
    expect(idsOf(claimed)).toEqual(["urgent", "high", "normal", "low"]);

    await storage.tasks.cancel({ tenant: TENANT, ids: ["runs"], error: null });
    await storage.tasks.finishAndClaim({ ...step, finishes: settle(claimed) });
    const completed = (await allEvents(storage)).filter(({ type }) => type === "batch.completed");
    expect(completed.map(({ batch, data }) => [batch, data?.counts])).toEqual([
      ["open", { cancelled: 1, done: 1 }],
    ]);
    expect(await storage.counters.recountAll()).toEqual([]);
  });

  test("is closed to processes that know nothing of them", async () => {
    const { url, admin } = await olderDatabase(5, "create schema rota_fn_0123456789ab");
    await open(url);
    const { rows } = await admin.query(
      "select nspname from pg_namespace where nspname like 'rota%' order by 1",
    );
    expect(rows.map(({ nspname }) => nspname)).toEqual(["rota", FUNCTION_SCHEMA]);
  });
});

describe("a database from before schedules", () => {
  // One task runs.
  const ROWS = `
    insert into lane (name, strategy, inflight) values ('${LANE}', 'fair-fifo', 1);
    insert into line (lane, tenant, agent, inflight, last_served) values ('${LANE}', '${TENANT}', 'a', 1, 9);
    insert into task (seq, id, tenant, agent, line, priority, rank, resting_state, position, created_at,
                      max_retries_if_lost, spec)
    select 1, 'runs', '${TENANT}', 'a', id, 2, 3, 'queued', 1, 1, 0, '{}' from line;
    insert into tally (tenant, state, tasks)
    select '${TENANT}', s, case s when 'queued' then 1 else 0 end
      from unnest(array['waiting_dependency', 'delayed', 'queued', 'done', 'failed', 'cancelled', 'rejected']) s;
    insert into node (id, beat_at) values ('old', 0);
    insert into lease (task_seq, token, node, line, lane, state, attempt, started_at)
    select 1, 9, 'old', id, '${LANE}', 'running', 1, 50 from line;
    select setval('task_seq', 1), setval('event_seq', 9);`;

  test("keeps what it had, which is of no schedule", async () => {
    const { url } = await olderDatabase(7, ROWS);
    const storage = await open(url);
    const finishes = [{ seq: 1, token: 9, settlement: { to: "done", result: null } as const }];
    await storage.tasks.finishAndClaim({ node: "old", finishes, progress: [], claims: [] });
    const task = await storage.tasks.get({ tenant: TENANT, id: "runs" });
    expect(task).toMatchObject({ state: "done", schedule: null });
    expect(await storage.schedules.nextDueAt()).toBeNull();
    expect(await storage.notifications.range()).toEqual({ oldest: 1, newest: 0 });
    expect(await storage.counters.recountAll()).toEqual([]);
  });

  test("is closed to processes that know nothing of them", async () => {
    const { url, admin } = await olderDatabase(7, "create schema rota_fn_0123456789ab");
    await open(url);
    const { rows } = await admin.query(
      "select nspname from pg_namespace where nspname like 'rota%' order by 1",
    );
    expect(rows.map(({ nspname }) => nspname)).toEqual(["rota", FUNCTION_SCHEMA]);
  });
});

describe("a database from before what executors log was kept", () => {
  test("is closed to processes that would delete tasks and leave that", async () => {
    const { url, admin } = await olderDatabase(22, "create schema rota_fn_0123456789ab");
    await open(url);
    const { rows } = await admin.query(
      "select nspname from pg_namespace where nspname like 'rota%' order by 1",
    );
    expect(rows.map(({ nspname }) => nspname)).toEqual(["rota", FUNCTION_SCHEMA]);
  });
});

test("admin keys of other tenants become tenant-admin keys, and the audit log names each", async () => {
  const before = MIGRATIONS.findIndex(({ name }) => name.endsWith("tenant-admins.sql"));
  const { url } = await olderDatabase(
    before,
    `insert into tenant (id, name, created_at, updated_at) values ('acme', 'acme', 0, 0);
     insert into api_key (id, tenant, name, role, hash, created_at)
     values ('k1', 'default', 'root', 'admin', '1', 0), ('k2', 'acme', 'owner', 'admin', '2', 0),
            ('k3', 'acme', 'users', 'operator', '3', 0)`,
  );
  const storage = await open(url);
  const roles = async (tenant: string) =>
    (await storage.keys.list({ tenant })).map(({ id, role }) => [id, role]);
  expect(await roles("default")).toEqual([["k1", "admin"]]);
  expect(await roles("acme")).toEqual([
    ["k2", "tenant-admin"],
    ["k3", "operator"],
  ]);
  for (const tenant of ["default", "acme"]) {
    expect((await storage.audit.list({ tenant, limit: 9 })).entries).toMatchObject([
      { route: "upgrade: admin becomes tenant-admin", subject: "k2" },
    ]);
  }
});

test("tasks that were rejected before say which queue was full", async () => {
  const before = MIGRATIONS.findIndex(({ name }) => name.endsWith("full-queue.sql"));
  const { url, admin } = await olderDatabase(
    before,
    `insert into lane (name, strategy) values ('${LANE}', 'fair-fifo');
     insert into line (lane, tenant, agent, last_served) values ('${LANE}', '${TENANT}', 'a', 9);
     insert into task (seq, id, tenant, agent, line, priority, rank, resting_state, position, created_at, completed_at,
                       max_retries_if_lost, spec, error)
     select n, q, '${TENANT}', 'a', id, 2, 3, case q when 'none' then 'failed' else 'rejected' end, 0, 1, 1, 0, '{}',
            'rejected: ' || q || ' queue full'
       from line, unnest(array['agent', 'global', 'server', 'none']) with ordinality u(q, n)`,
  );
  await open(url);
  const { rows } = await admin.query("select id, full_queue from task order by seq");
  expect(rows.map(({ id, full_queue }) => [id, full_queue])).toEqual([
    ["agent", "agent"],
    ["global", "global"],
    ["server", "server"],
    ["none", null],
  ]);
});
