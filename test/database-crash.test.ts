import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { Rota } from "../src/interface/rota.ts";
import { createRota } from "../src/rota.ts";
import { newTask, ROOMY } from "../src/storage/conformance/world.ts";
import { openPostgres } from "../src/storage/postgres/connection/open.ts";
import type { FinishedAndClaimed, Storage } from "../src/storage/storage.ts";
import { type PostgresServer, startPostgres } from "./postgres/server.ts";
import { RecordingLog } from "./support/recording-log.ts";

/** Where nothing else waits. */
const TENANT = "apart";
const LANE = "apart";

let server: PostgresServer;
beforeAll(async () => {
  // Left to itself, PostgreSQL writes what nobody waited for a fifth of a second later, which would hide that nobody did.
  server = await startPostgres({ durable: true, settings: { wal_writer_delay: "10s" } });
});
afterAll(() => server?.stop());

/** Not started, so that no later write takes to the disk what an answer should have waited for. */
async function open(): Promise<Rota> {
  const rota = await createRota({ storage: server.url, log: new RecordingLog() });
  onTestFinished(() => rota.stop({ graceMs: 0 }));
  return rota;
}

/** What a client was told, and how it looks for that afterwards. */
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

describe("a crash of PostgreSQL right after the answer keeps", () => {
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
      (storage: Storage, told: { id: string; ended: FinishedAndClaimed }) => Promise<unknown> | undefined
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
    const node = randomUUID();
    const id = randomUUID();
    const bounds = {
      total: null,
      perAgent: null,
      perTenant: null,
      strategy: "fair-fifo",
      agingMs: 0,
    } as const;
    await storage.lanes.configure({ lanes: [{ name: LANE, ...bounds }] });
    await storage.nodes.register({ node });
    await storage.tasks.insert({ tasks: [newTask({ id, tenant: TENANT, lane: LANE })], limits: ROOMY });
    const step = { node, finishes: [], progress: [], claims: [] };
    const { claimed } = await storage.tasks.finishAndClaim({ ...step, claims: [{ lane: LANE, limit: 1 }] });
    const finishes = claimed.map(({ task, token }) => ({
      seq: task.seq,
      token,
      settlement: { to: "done", result: 1 } as const,
    }));
    await report(storage, { id, ended: await storage.tasks.finishAndClaim({ ...step, finishes }) });
    await server.crash();
    await storage.close();
    const later = await openPostgres({ url: server.url });
    expect(await later.tasks.get({ tenant: TENANT, id })).toMatchObject({ state: "done", result: 1 });
    await later.close();
  });
});
