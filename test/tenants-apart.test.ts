import { randomUUID } from "node:crypto";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import type { LocalTenant } from "../src/interface/rota.ts";
import { openPostgres } from "../src/storage/postgres/connection/open.ts";
import type { Storage } from "../src/storage/storage.ts";
import { ManualClock } from "../src/testing/manual-clock.ts";
import { until } from "../src/testing/signals.ts";
import { prepareDatabaseCopies } from "./postgres/database-copies.ts";
import { openStream } from "./support/event-stream.ts";
import { type KeyedServer, openKeyedServer } from "./support/keyed-server.ts";
import { openMemory } from "./support/storages.ts";

const copies = await prepareDatabaseCopies(async (url) => (await openPostgres({ url })).close());
afterAll(() => copies.drop());

type OpenStorage = (clock: ManualClock) => Promise<Storage>;

/** A database of its own: what a test leaves behind is still at work when the next begins. */
async function openCopy(clock: ManualClock): Promise<Storage> {
  const { url, drop } = await copies.copy();
  const storage = await openPostgres({ url, clock });
  onTestFinished(async () => {
    await storage.close();
    await drop();
  });
  return storage;
}

/** It is in every name and text of the other tenant, so that the test finds any response that shows one. */
const MARK = "bravo-only";
/** A name that any tenant may give to its own session. */
const SESSION = "front desk";

interface Operation {
  readonly requestBody?: {
    readonly content: Readonly<Record<string, { readonly schema: { readonly $ref: string } }>>;
  };
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, { readonly examples?: readonly unknown[] }>>;
  };
}

/** What the other tenant has, by the path under which it is found. */
type Belongings = Readonly<Record<string, string>>;

/** Two tenants; the other has one of everything, and some of it has happened. */
async function openTenants(openStorage: OpenStorage) {
  const clock = new ManualClock();
  const server = await openKeyedServer({
    clock,
    storage: await openStorage(clock),
    options: { webhooks: { allow: ["127.0.0.1"] } },
  });
  const { rota, key } = server;
  const tenants = {
    ours: (await rota.tenants.create({ name: "alpha" })).id,
    theirs: (await rota.tenants.create({ name: "bravo" })).id,
  };
  const keys = {
    ours: await key({ role: "tenant-admin", tenantId: tenants.ours }),
    theirs: await key({ role: "tenant-admin", name: MARK, tenantId: tenants.theirs }),
  };
  return { ...server, tenants, keys, belongings: await furnish(server, tenants.theirs) };
}

async function furnish({ rota, clock }: KeyedServer, tenant: string): Promise<Belongings> {
  const theirs = rota.tenant(tenant);
  await theirs.agents.create({ id: `${MARK}-agent`, executor: { type: "echo" } });
  const common = { agentId: `${MARK}-agent`, metadata: { MARK } };
  const ended = await theirs.tasks.submit({
    ...common,
    payload: MARK,
    callbackUrl: `http://127.0.0.1:1/${MARK}`,
    idempotencyKey: "the same for both",
  });
  await theirs.tasks.wait(ended.taskId);
  const runAt = new Date(clock.now() + 3_600_000).toISOString();
  const waiting = await theirs.tasks.submit({
    ...common,
    message: MARK,
    sessionKey: SESSION,
    runAt,
  });
  const batch = await theirs.tasks.submitBatch({ tasks: [{ ...common, payload: MARK, runAt }] });
  const { scheduled_task } = await theirs.schedules.create({
    agent: `${MARK}-agent`,
    schedule: "every 1 h",
    message: MARK,
    name: MARK,
  });
  const { run_id } = await theirs.schedules.run(scheduled_task.id);
  await until(async () => (await theirs.runs.get(run_id ?? 0)).status === "succeeded", "the run to end");
  const deliveries = async () => (await theirs.webhooks.deliveries()).deliveries;
  await until(async () => (await deliveries()).length > 0);
  const { bulkId } = await theirs.bulks.start({ action: "cancel", filter: { agentId: `${MARK}-nobody` } });
  const { id } = await rota.keys.create({ role: "viewer", name: MARK, tenantId: tenant });
  const { workerId, attemptToken } = await hire(theirs);
  return {
    "/tasks/batches/": batch.batchId,
    "/tasks/": waiting.taskId,
    "/sessions/": SESSION,
    "/schedules/": String(scheduled_task.id),
    "/runs/": String(run_id),
    "/agents/": `${MARK}-agent`,
    "/webhooks/deliveries/": (await deliveries())[0]?.deliveryId ?? "",
    "/bulk/": bulkId,
    "/keys/": id,
    "/tenants/": tenant,
    "/workers/": workerId,
    "/attempts/": attemptToken,
  };
}

/** A worker that holds an attempt. */
async function hire({ agents, tasks, workers }: LocalTenant) {
  const agentId = `${MARK}-remote`;
  await agents.create({ id: agentId, executor: { type: "worker" } });
  const caller = { keyId: null, agents: null };
  const { workerId } = await workers.register(
    { name: MARK, agents: [agentId], slots: 1, leaseMs: 120_000 },
    caller,
  );
  await tasks.submit({ agentId, payload: MARK });
  const claim = { claimId: randomUUID(), max: 1, waitS: 5 };
  const { answer } = await workers.claim(workerId, claim, { ...caller, gone: new AbortController().signal });
  return { workerId, attemptToken: answer.attempts[0]?.attemptToken ?? "" };
}

/** All that the other tenant sees of itself. */
async function stateOf({ rota, tenants }: Awaited<ReturnType<typeof openTenants>>): Promise<unknown> {
  const theirs = rota.tenant(tenants.theirs);
  return {
    tasks: await theirs.tasks.list({ limit: 1000 }),
    session: await theirs.sessions.get(SESSION),
    schedules: await theirs.schedules.list(),
    runs: await theirs.runs.list(),
    agents: await theirs.agents.list(),
    workers: (await theirs.workers.list()).workers.map(({ id, running }) => ({ id, running })),
    keys: (await rota.keys.list({ tenantId: tenants.theirs })).keys.map(({ id }) => id),
    tenant: await rota.tenants.get(tenants.theirs),
  };
}

/** Every operation, those first that change nothing. */
function readsFirst(paths: Document["paths"]) {
  const all = Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, { requestBody }]) => ({
      method: method.toUpperCase(),
      path,
      /** The name of its schema. */
      body: Object.values(requestBody?.content ?? {})[0]
        ?.schema.$ref.split("/")
        .at(-1),
    })),
  );
  return all.sort((a, b) => Number(b.method === "GET") - Number(a.method === "GET"));
}

/** Routes of the whole installation, for its admins: see `docs/tenants.md`. */
const SHARED = ["/lanes/"];

describe.each<[string, OpenStorage]>([
  ["SQLite", openMemory],
  ["PostgreSQL", openCopy],
])("on %s", (_name, openStorage) => {
  test("no route shows or changes anything of another tenant, whatever id it is given", async () => {
    const opened = await openTenants(openStorage);
    const { askWith, keys, tenants, belongings, clock } = opened;
    const { paths, components } = (await askWith(keys.ours, "/openapi.json")).body as Document;
    const before = await stateOf(opened);
    const walked = new Set<string>();
    for (const { method, path, body: schema } of readsFirst(paths)) {
      if (/events$|stream$/.test(path)) continue;
      const plain = path.replace(/^\/v1/, "");
      const home = Object.keys(belongings).find((start) => plain.startsWith(`${start}{`));
      if (SHARED.some((start) => plain.startsWith(`${start}{`))) continue;
      const name = `${method} ${path}`;
      expect(
        home !== undefined || !path.includes("{"),
        `"belongings" says which id belongs into ${path}`,
      ).toBe(true);
      // The rate limit must not be what refuses them.
      await clock.advance(1_000);
      const url = path.replace(/\{\w+\}/, encodeURIComponent(belongings[home ?? ""] ?? ""));
      const json = schema === undefined ? undefined : components.schemas[schema]?.examples?.[0];
      const { status, body } = await askWith(keys.ours, url, {
        method,
        ...(json === undefined ? {} : { json }),
      });
      walked.add(name);
      // A session comes into being with what is said to it: a caller that writes to that name gets a session of its own tenant.
      const isNamesake = home === "/sessions/" && method !== "GET";
      const isForAdmins = status === 403 && body.error.endsWith("use a key with the role `admin`");
      if (home !== undefined && !isNamesake && !isForAdmins) {
        const code = home === "/workers/" ? "unknown_worker" : "not_found";
        expect([status, body.code], name).toEqual([404, code]);
      }
      const answer = JSON.stringify(body);
      expect(answer, name).not.toContain(MARK);
      for (const id of [belongings["/tasks/"], belongings["/tasks/batches/"], tenants.theirs]) {
        expect(answer, name).not.toContain(id);
      }
    }
    expect(walked.size).toBeGreaterThan(50);
    expect(await stateOf(opened)).toEqual(before);
  });

  test("lists that are asked for what is another's are empty", async () => {
    const { askWith, keys, belongings, tenants } = await openTenants(openStorage);
    for (const path of [
      "/tasks",
      `/tasks?agentId=${MARK}-agent`,
      `/tasks?batchId=${belongings["/tasks/batches/"]}`,
      `/tasks?sessionKey=${encodeURIComponent(SESSION)}`,
      `/tasks?scheduleId=${belongings["/schedules/"]}`,
      "/v1/sessions",
      "/v1/schedules",
      "/v1/runs",
      "/v1/webhooks/deliveries",
      `/v1/webhooks/deliveries?taskId=${belongings["/tasks/"]}`,
    ]) {
      expect((await askWith(keys.ours, path)).body.count, path).toBe(0);
    }
    expect((await askWith(keys.ours, "/tasks/stats")).body).toEqual({ counts: {}, total: 0 });
    expect((await askWith(keys.ours, "/v1/keys")).body.count).toBe(1);
    expect((await askWith(keys.ours, "/v1/scheduler/stats")).body.queue).toEqual({
      totalQueued: 0,
      totalInflight: 0,
      agentCounts: {},
    });
    const { body } = await askWith(keys.ours, "/metrics");
    expect(body).not.toContain(MARK);
    expect(body).not.toContain(tenants.theirs);
    expect((await askWith(keys.theirs, "/metrics")).body).toContain(`${MARK}-agent`);
  });

  test("the same key for a submit that another used makes a task of one's own", async () => {
    const { askWith, keys } = await openTenants(openStorage);
    const json = { payload: "ours", idempotencyKey: "the same for both" };
    const { status, body } = await askWith(keys.ours, "/tasks", { json });
    expect(status).toBe(202);
    expect((await askWith(keys.ours, `/tasks/${body.taskId}`)).body.payload).toBe("ours");
  });

  test("what waits for another's task shows nothing of it", async () => {
    const { askWith, keys, rota, tenants } = await openTenants(openStorage);
    const [done] = (await rota.tenant(tenants.theirs).tasks.list({ state: "done" })).tasks;
    const json = { message: "ours", dependsOn: [done?.taskId] };
    const { body } = await askWith(keys.ours, "/tasks", { json });
    expect(body.state).toBe("waiting_dependency");
    const explained = await askWith(keys.ours, `/tasks/${body.taskId}/explain`);
    expect(JSON.stringify(explained.body)).not.toContain(MARK);
    expect((await askWith(keys.ours, `/tasks/${body.taskId}`)).body.state).toBe("waiting_dependency");
  });

  test.each(["/tasks/events", "/v1/tasks/events", "/v1/notifications/stream"])(
    "%s returns a tenant's own entries alone, from the beginning and from now on",
    async (path) => {
      const { url, keys, rota, tenants } = await openTenants(openStorage);
      const headers = { authorization: `Bearer ${keys.ours}`, "last-event-id": "0" };
      const streams = [await openStream(url + path, headers)];
      if (path.endsWith("events")) {
        streams.push(await openStream(`${url}${path}?sessionKey=${encodeURIComponent(SESSION)}`, headers));
      }
      const act = async (tenant: string, name: string) => {
        const api = rota.tenant(tenant);
        await api.tasks.submit({ message: name, sessionKey: SESSION });
        const { scheduled_task } = await api.schedules.create({ schedule: "every 1 h", message: name });
        await api.schedules.run(scheduled_task.id);
        await api.schedules.delete(scheduled_task.id);
      };
      await act(tenants.theirs, MARK);
      await act(tenants.ours, "ours");
      const theirIds = (await rota.tenant(tenants.theirs).tasks.list()).tasks.map(({ taskId }) => taskId);
      for (const stream of streams) {
        let frame = await stream.next();
        for (;;) {
          const text = JSON.stringify(frame ?? null);
          for (const id of theirIds) expect(text).not.toContain(id);
          if (/task.created|schedule.canceled/.test(text)) break;
          frame = await stream.next();
        }
      }
    },
  );
});
