import { randomUUID } from "node:crypto";
import { Client } from "pg";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { Rota } from "../src/interface/rota.ts";
import { createRota } from "../src/rota.ts";
import { newDefinition } from "../src/storage/conformance/schedules/schedule-world.ts";
import { newTask, ROOMY, ROOMY_SHARES } from "../src/storage/conformance/world.ts";
import { openPostgres } from "../src/storage/postgres/connection/open.ts";
import type { FinishedAndClaimed, NewTask, Storage } from "../src/storage/storage.ts";
import { type PostgresServer, startPostgres } from "./postgres/server.ts";
import { RecordingLog } from "./support/recording-log.ts";

/** Where nothing else waits. */
const TENANT = "apart";
const LANE = "apart";
const SESSION = "apart";

const BOUNDS = { total: null, perAgent: null, perTenant: null, strategy: "fair-fifo", agingMs: 0 } as const;

let server: PostgresServer;
beforeAll(async () => {
  // By default PostgreSQL writes commits that no client waits for a fifth of a second later, which would hide a missing flush.
  server = await startPostgres({ durable: true, settings: { wal_writer_delay: "10s" } });
});
afterAll(() => server?.stop());

/** Not started, so that no later write takes to the disk what a response should have waited for. */
async function open({ url } = server): Promise<Rota> {
  const rota = await createRota({ storage: url, log: new RecordingLog() });
  onTestFinished(() => rota.stop({ graceMs: 0 }));
  return rota;
}

/** What a client got as a response, and how it reads that afterwards. */
type Deed = (rota: Rota) => Promise<(later: Rota) => Promise<unknown>>;

const submitted = async (rota: Rota) => (await rota.tasks.submit({ payload: "kept" })).taskId;
const shows = (taskId: string) => async (later: Rota) => (await later.tasks.get(taskId)).state;

const DEEDS: Readonly<Record<string, { readonly deed: Deed; readonly found: unknown }>> = {
  "an accepted task": {
    deed: async (rota) => shows(await submitted(rota)),
    found: "queued",
  },
  "an accepted task with an idempotency key": {
    deed: async (rota) =>
      shows((await rota.tasks.submit({ payload: "kept", idempotencyKey: "once" })).taskId),
    found: "queued",
  },
  "an accepted batch": {
    deed: async (rota) => {
      const { batchId } = await rota.tasks.submitBatch({ tasks: [{ payload: 1 }, { payload: 2 }] });
      return async (later) => (await later.tasks.list({ batchId })).count;
    },
    found: 2,
  },
  "an accepted message": {
    deed: async (rota) => shows((await rota.sessions.send("kept", { message: "hello" })).taskId ?? ""),
    found: "delayed",
  },
  "a cancelled task": {
    deed: async (rota) => {
      const taskId = await submitted(rota);
      await rota.tasks.cancel(taskId);
      return shows(taskId);
    },
    found: "cancelled",
  },
  "a retried task": {
    deed: async (rota) => {
      const taskId = await submitted(rota);
      await rota.tasks.cancel(taskId);
      await rota.tasks.retry(taskId);
      return shows(taskId);
    },
    found: "queued",
  },
  "a created schedule": {
    deed: async (rota) => {
      const input = { name: "kept", schedule: "every day at 09:00", message: "hello" };
      const { id } = (await rota.schedules.create(input)).scheduled_task;
      return async (later) => (await later.schedules.get(id)).name;
    },
    found: "kept",
  },
};

describe("a crash of PostgreSQL right after the response keeps", () => {
  test.each(Object.entries(DEEDS))("%s", async (_what, { deed, found }) => {
    const look = await deed(await open());
    await server.crash();
    expect(await look(await open())).toEqual(found);
  });

  test("the result of a task that a caller was shown", async () => {
    const rota = await open();
    rota.agent("worker", () => "kept");
    await rota.start();
    const { taskId } = await rota.tasks.submit({ agentId: "worker", payload: "kept" });
    await rota.tasks.wait(taskId);
    await server.crash();
    expect(await (await open()).tasks.get(taskId)).toMatchObject({ state: "done", result: "kept" });
  });

  /** How a caller learns that a task has ended. The end itself does not wait for the disk. */
  const WAYS: Readonly<
    Record<
      string,
      (storage: Storage, known: { id: string; ended: FinishedAndClaimed }) => Promise<unknown> | undefined
    >
  > = {
    "the node that ended it": (_storage, { ended }) => ended.durable,
    "a caller that gets the task": (storage, { id }) => storage.tasks.get({ tenant: TENANT, id }),
    "a list": (storage) => storage.tasks.list({ tenant: TENANT, limit: 1 }),
    "a list of rows": (storage) => storage.tasks.listRows({ tenant: TENANT, limit: 1 }),
    "the log": (storage) => storage.events.read({ after: 0, limit: 10_000, bytesMax: 1_000_000 }),
    "a page of events": (storage) => storage.events.page({ tenant: TENANT, limit: 100, bytesMax: 100_000 }),
  };

  test.each(Object.entries(WAYS))("an end that was reported to %s", async (_way, report) => {
    const storage = await openPostgres({ url: server.url });
    const { id, ended } = await endTask(storage);
    await report(storage, { id, ended });
    await server.crash();
    await storage.close();
    const later = await openPostgres({ url: server.url });
    expect(await later.tasks.get({ tenant: TENANT, id })).toMatchObject({ state: "done", result: 1 });
    await later.close();
  });

  test("a task that its insert started, once the insert has returned", async () => {
    const storage = await openPostgres({ url: server.url });
    const node = randomUUID();
    const id = randomUUID();
    await storage.lanes.configure({ lanes: [{ name: LANE, ...BOUNDS }] });
    await storage.nodes.register({ node });
    const started: string[] = [];
    await storage.tasks.insert({
      tasks: [newTask({ id, tenant: TENANT, lane: LANE })],
      limits: ROOMY,
      claim: {
        node,
        claims: [{ lane: LANE, limit: 1 }],
        onClaimed: ({ claimed }) => started.push(...claimed.map(({ task }) => task.id)),
      },
    });
    await server.crash();
    await storage.close();
    expect(started).toEqual([id]);
    const later = await openPostgres({ url: server.url });
    expect(await later.tasks.get({ tenant: TENANT, id })).toMatchObject({ state: "running" });
    await later.close();
  });

  /** Everything else that shows an end, or that a task was accepted. */
  const ANSWERS: Readonly<Record<string, (storage: Storage, known: Known) => Promise<unknown>>> = {
    "a batch": (storage, { batch }) => storage.tasks.getBatch({ tenant: TENANT, id: batch }),
    "the tasks of a batch": (storage, { batch }) =>
      storage.tasks.batchTasks({ tenant: TENANT, batch, limit: 1 }),
    "numbers of tasks": (storage) => storage.tasks.counts({ tenant: TENANT }),
    "a queue's depth": (storage) => storage.tasks.queueDepth({ tenant: TENANT }),
    "what waits": (storage) => storage.tasks.waiting({ tenant: TENANT }),
    "why a task waits": (storage, { id }) => storage.tasks.situation({ tenant: TENANT, id }),
    "a list of deliveries": (storage) => storage.deliveries.list({ tenant: TENANT, limit: 10 }),
    "deliveries to send": (storage) =>
      storage.deliveries.claim({ shares: ROOMY_SHARES, held: [], holdMs: 60_000 }),
    "a session": (storage) => storage.sessions.get({ tenant: TENANT, key: SESSION }),
    "a list of sessions": (storage) => storage.sessions.list({ tenant: TENANT, limit: 10 }),
    // Ten times `wal_writer_delay` ago: it took its time under the write lock, and then needed a while to commit.
    "an end that took long to commit": async (storage, { id, end }) => {
      await end({ agoMs: 110_000 });
      await storage.tasks.get({ tenant: TENANT, id });
    },
    "a schedule": (storage, { schedule }) => storage.schedules.get({ tenant: TENANT, id: schedule }),
    "a list of schedules": (storage) => storage.schedules.list({ tenant: TENANT, limit: 10 }),
    "a cancel that comes too late": (storage, { id }) =>
      storage.tasks.cancel({ tenant: TENANT, ids: [id], error: null }),
    "a retry of a task that is done": (storage, { id }) => storage.tasks.retry({ tenant: TENANT, id }),
    "the answer to an insert that is repeated": (storage, { task }) =>
      storage.tasks.insert({ tasks: [task], limits: ROOMY }),
    "the answer to an insert with a key that is repeated": (storage, { keyed }) =>
      storage.tasks.insert({ tasks: [{ ...keyed, id: randomUUID() }], limits: ROOMY }),
  };

  interface Known {
    readonly id: string;
    readonly batch: string;
    readonly schedule: number;
    /** Writes the end of the task again, which may not be on the disk then. */
    end(params: { agoMs: number }): Promise<unknown>;
    readonly task: NewTask;
    readonly keyed: NewTask;
  }

  test.each(Object.entries(ANSWERS))("what is in %s", async (_what, ask) => {
    const storage = await openPostgres({ url: server.url });
    const admin = new Client({ connectionString: server.url });
    await admin.connect();
    onTestFinished(async () => {
      await storage.close();
      await admin.end();
    });
    const [node, id, batch] = [randomUUID(), randomUUID(), randomUUID()];
    await storage.lanes.configure({ lanes: [LANE, "elsewhere"].map((name) => ({ name, ...BOUNDS })) });
    await storage.nodes.register({ node });
    // Nodes that earlier tests left are no more, so that this one is alone.
    await admin.query("update rota.node set dead = true where id <> $1", [node]);
    await storage.nodes.heartbeat({ node });
    const task = newTask({
      id,
      tenant: TENANT,
      lane: LANE,
      batch,
      session: { key: SESSION, maxConcurrent: 1 },
      callbackUrl: "https://receiver.test/",
    });
    const idempotency = { key: randomUUID(), hash: "same" };
    const keyed = newTask({ tenant: TENANT, lane: "elsewhere", idempotency });
    const batches = [{ id: batch, tenant: TENANT, parallelism: null, callbackUrl: null }];
    await storage.tasks.insert({ tasks: [task], batches, limits: ROOMY });
    await storage.tasks.insert({ tasks: [keyed], limits: ROOMY });
    const { id: schedule } = await storage.schedules.create({
      tenant: TENANT,
      definition: newDefinition(),
      status: "paused",
      nextFireAt: null,
      source: null,
    });
    const step = { node, finishes: [], progress: [], claims: [] };
    const { claimed } = await storage.tasks.finishAndClaim({ ...step, claims: [{ lane: LANE, limit: 1 }] });
    const finishes = claimed.map(({ task: { seq }, token }) => ({
      seq,
      token,
      settlement: { to: "done", result: 1 } as const,
    }));
    await (await storage.tasks.finishAndClaim({ ...step, finishes })).durable;
    await admin.query("set synchronous_commit = off");
    const end = ({ agoMs }: { agoMs: number }) =>
      admin.query("update rota.task set completed_at = $2 where id = $1", [id, Date.now() - agoMs]);
    await end({ agoMs: 0 });
    const { rows: written } = await admin.query("select pg_current_wal_insert_lsn() as lsn");
    await ask(storage, { id, batch, schedule, end, task, keyed });
    const { rows } = await admin.query("select pg_current_wal_flush_lsn() >= $1::pg_lsn as flushed", [
      written[0].lsn,
    ]);
    expect(rows).toEqual([{ flushed: true }]);
  });
});

/** Ends a task whose end may not be on the disk yet. */
async function endTask(storage: Storage): Promise<{ id: string; ended: FinishedAndClaimed }> {
  const [node, id] = [randomUUID(), randomUUID()];
  await storage.lanes.configure({ lanes: [{ name: LANE, ...BOUNDS }] });
  await storage.nodes.register({ node });
  await storage.tasks.insert({ tasks: [newTask({ id, tenant: TENANT, lane: LANE })], limits: ROOMY });
  const step = { node, finishes: [], progress: [], claims: [] };
  const { claimed } = await storage.tasks.finishAndClaim({ ...step, claims: [{ lane: LANE, limit: 1 }] });
  const finishes = claimed.map(({ task, token }) => ({
    seq: task.seq,
    token,
    settlement: { to: "done", result: 1 } as const,
  }));
  return { id, ended: await storage.tasks.finishAndClaim({ ...step, finishes }) };
}

/** What these tests would report if Rota responded before the disk has the result. */
describe("a crash of a PostgreSQL that does not wait for the disk", () => {
  test("loses every write that has returned if nothing is flushed, so that the tests above notice a missing flush", async () => {
    const forgetful = await startPostgres({
      durable: true,
      settings: { synchronous_commit: "off", wal_writer_delay: "10s", wal_writer_flush_after: "1GB" },
    });
    onTestFinished(() => forgetful.stop());
    const storage = await openPostgres({ url: forgetful.url });
    const rota = await open(forgetful);
    const admin = new Client({ connectionString: forgetful.url });
    await admin.connect();
    // The schema is on the disk.
    await admin.query("checkpoint");
    await admin.end();
    const looks: Record<string, (later: Rota) => Promise<unknown>> = {};
    for (const [what, { deed }] of Object.entries(DEEDS)) looks[what] = await deed(rota);
    const { id, ended } = await endTask(storage);
    await ended.durable;
    await storage.tasks.get({ tenant: TENANT, id });
    await forgetful.crash();
    const later = await open(forgetful);
    for (const [what, look] of Object.entries(looks)) {
      const found = await look(later).catch(({ code }) => code);
      expect([what, found]).toEqual([what, what === "an accepted batch" ? 0 : "not_found"]);
    }
    const after = await openPostgres({ url: forgetful.url });
    expect(await after.tasks.get({ tenant: TENANT, id })).toBeNull();
    await Promise.all([storage.close(), after.close()]);
  });
});

test("reads of a server on which nothing happens write nothing", async () => {
  const storage = await openPostgres({ url: server.url });
  const admin = new Client({ connectionString: server.url });
  await admin.connect();
  onTestFinished(async () => {
    await Promise.all([storage.close(), admin.end()]);
  });
  await storage.lanes.configure({ lanes: [{ name: LANE, ...BOUNDS }] });
  await storage.tasks.insert({ tasks: [newTask({ tenant: TENANT, lane: LANE })], limits: ROOMY });
  const written = async () => (await admin.query("select pg_current_wal_insert_lsn() as lsn")).rows[0].lsn;
  // The server itself writes now and then.
  await expect
    .poll(async () => {
      await storage.check();
      const before = await written();
      await storage.tasks.counts({ tenant: TENANT });
      await storage.tasks.list({ tenant: TENANT, limit: 10 });
      await storage.events.page({ tenant: TENANT, limit: 10, bytesMax: 100_000 });
      return (await written()) === before;
    })
    .toBe(true);
});
