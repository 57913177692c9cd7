import { expect, test } from "vitest";
import { openStream } from "../../../test/support/event-stream.ts";
import { openTestServer } from "../../../test/support/http.ts";
import { type KeyedServer, openKeyedServer } from "../../../test/support/keyed-server.ts";
import { auditPage } from "../../api/audit.ts";
import { until } from "../../testing/signals.ts";

async function entriesFor({ askWith }: KeyedServer, admin: string, query = "") {
  const { status, body } = await askWith(admin, `/v1/audit${query}`);
  expect(status).toBe(200);
  const done = auditPage.parse(body).entries.filter((entry) => entry.status === undefined);
  return done.map(({ keyId, route, subject }) => ({ keyId, route, subject }));
}

test("what is changed with a key is written down with the key, the route and what it was about", async () => {
  const server = await openKeyedServer({ start: false });
  const { rota, askWith, url } = server;
  const admin = await rota.keys.create({ role: "admin", name: "admin" });
  const { id: keyId, key } = await rota.keys.create({ role: "operator", name: "works" });
  const task = (await askWith(key, "/tasks", { json: { message: "hi" } })).body.taskId;
  const batch = (await askWith(key, "/v1/tasks/batch", { json: { tasks: [{ payload: 1 }] } })).body.batchId;
  await askWith(key, `/tasks/${task}`, { method: "DELETE" });
  await askWith(key, "/v1/sessions/front%20desk/messages", { json: { message: "hi" } });
  const headers = { authorization: `Bearer ${key}`, accept: "text/event-stream" };
  await openStream(`${url}/v1/sessions/other/messages`, headers, { message: "hi" });
  const schedule = { schedule: "every 1 h", message: "x" };
  const { scheduled_task } = (await askWith(key, "/v1/schedules", { json: schedule })).body;
  await askWith(key, "/v1/writs", { json: { text: "/schedule list" }, headers: { accept: "text/plain" } });
  await askWith(key, "/v1/sessions/quiet", { method: "PATCH", json: { cap: 3 } });
  await askWith(key, "/v1/sessions/quiet", { method: "DELETE" });
  const made = (await askWith(admin.key, "/v1/keys", { json: { role: "viewer", name: "x" } })).body.id;
  expect(await entriesFor(server, admin.key)).toEqual([
    { keyId: admin.id, route: "POST /v1/keys", subject: made },
    { keyId, route: "DELETE /v1/sessions/{key}", subject: "quiet" },
    { keyId, route: "PATCH /v1/sessions/{key}", subject: "quiet" },
    { keyId, route: "POST /v1/writs", subject: "index" },
    { keyId, route: "POST /v1/schedules", subject: String(scheduled_task.id) },
    { keyId, route: "POST /v1/sessions/{key}/messages", subject: "other" },
    { keyId, route: "POST /v1/sessions/{key}/messages", subject: "front desk" },
    { keyId, route: "DELETE /tasks/{id}", subject: task },
    { keyId, route: "POST /v1/tasks/batch", subject: batch },
    { keyId, route: "POST /tasks", subject: task },
  ]);
  expect(await entriesFor(server, admin.key, `?keyId=${admin.id}`)).toHaveLength(1);
});

test("what was only read, asked for in vain or refused is not in it as done", async () => {
  const server = await openKeyedServer({ start: false });
  const { key, askWith, ask } = server;
  const [admin, viewer] = [await key({ role: "admin" }), await key({ role: "viewer" })];
  await askWith(viewer, "/tasks", { json: { message: "hi" } });
  await askWith(admin, "/tasks", { json: { mesage: "hi" } });
  await askWith(admin, "/tasks/tsk_nobody/cancel", { method: "POST" });
  await askWith(admin, "/v1/schedules/preview", { json: { schedule: "hourly" } });
  await askWith(admin, "/nowhere", { method: "POST" });
  await ask("/tasks", { json: { message: "hi" } });
  await askWith(admin, "/tasks");
  expect(await entriesFor(server, admin)).toEqual([]);
});

test("without keys, who looks after tenants and keys is in it, and the first key among it", async () => {
  const { rota, ask } = await openTestServer({ start: false });
  await ask("/tasks", { json: { message: "hi" } });
  const tenant = (await ask("/v1/tenants", { json: { name: "acme" } })).body.id;
  const { id } = (await ask("/v1/keys", { json: { role: "admin", name: "first" } })).body;
  expect((await rota.audit.list()).entries).toMatchObject([
    { keyId: null, route: "POST /v1/keys", subject: id },
    { keyId: null, route: "POST /v1/tenants", subject: tenant },
  ]);
});

test("each tenant has its own, and admins read that of the tenant that they name", async () => {
  const server = await openKeyedServer({ start: false });
  const { rota, key, askWith } = server;
  const { id: tenantId } = await rota.tenants.create({ name: "acme" });
  const [ours, theirs] = [await key({ role: "admin" }), await key({ role: "tenant-admin", tenantId })];
  await askWith(theirs, "/tasks", { json: { message: "hi" } });
  expect(await entriesFor(server, ours)).toEqual([]);
  expect(await entriesFor(server, ours, `?tenantId=${tenantId}`)).toHaveLength(1);
  for (const other of [theirs, await key({ role: "operator" })]) {
    expect((await askWith(other, `/v1/audit?tenantId=${tenantId}`)).status).toBe(403);
  }
});

test.each(["?since=yesterday", "?limit=0", "?keyid=x", "?cursor=x"])("%s is refused", async (query) => {
  const { ask } = await openTestServer({ start: false });
  expect((await ask(`/v1/audit${query}`)).status).toBe(400);
});

test("what an admin does to another tenant is in the log of both", async () => {
  const server = await openKeyedServer({ start: false });
  const { rota, askWith } = server;
  const admin = await rota.keys.create({ role: "admin", name: "ours" });
  const as = (path: string, init?: Parameters<typeof askWith>[2]) => askWith(admin.key, path, init);
  const tenantId = (await as("/v1/tenants", { json: { name: "acme" } })).body.id;
  const made = (await as("/v1/keys", { json: { role: "tenant-admin", name: "theirs", tenantId } })).body;
  const viewer = (await as("/v1/keys", { json: { role: "viewer", name: "theirs", tenantId } })).body;
  await as(`/v1/keys/${viewer.id}?tenantId=${tenantId}`, { method: "DELETE" });
  await as(`/v1/tenants/${tenantId}`, { method: "PATCH", json: { name: "acme inc" } });
  await as(`/v1/tenants/${tenantId}/disable`, { method: "POST" });
  await as(`/v1/tenants/${tenantId}/enable`, { method: "POST" });
  await as("/v1/keys", { json: { role: "viewer", name: "ours" } });
  const keyId = admin.id;
  const both = [
    { keyId, route: "POST /v1/tenants/{id}/enable", subject: tenantId },
    { keyId, route: "POST /v1/tenants/{id}/disable", subject: tenantId },
    { keyId, route: "PATCH /v1/tenants/{id}", subject: tenantId },
    { keyId, route: "DELETE /v1/keys/{id}", subject: viewer.id },
    { keyId, route: "POST /v1/keys", subject: viewer.id },
    { keyId, route: "POST /v1/keys", subject: made.id },
    { keyId, route: "POST /v1/tenants", subject: tenantId },
  ];
  expect(await entriesFor(server, admin.key, `?tenantId=${tenantId}`)).toEqual(both);
  expect((await entriesFor(server, admin.key)).slice(1)).toEqual(both);
});

test("who deletes a tenant is in the log of both, which stays", async () => {
  const server = await openKeyedServer();
  const { rota, key, askWith } = server;
  const admin = await key({ role: "admin" });
  const { id } = await rota.tenants.create({ name: "acme" });
  const theirs = await key({ role: "operator", tenantId: id });
  const { taskId } = (await askWith(theirs, "/tasks", { json: { message: "hi" } })).body;
  const deleted = await askWith(admin, `/v1/tenants/${id}`, { method: "DELETE" });
  expect([deleted.status, deleted.body]).toEqual([200, { deleted: true }]);
  const entry = { route: "DELETE /v1/tenants/{id}", subject: id };
  expect(await entriesFor(server, admin)).toMatchObject([entry]);
  expect(await entriesFor(server, admin, `?tenantId=${id}`)).toMatchObject([
    entry,
    { route: "POST /tasks", subject: taskId },
  ]);
});

test("a message with `wait` has one entry, from when it is accepted and not from when its task ends", async () => {
  const server = await openKeyedServer({ start: false });
  const { rota, key, askWith } = server;
  const [admin, operator] = [await key({ role: "admin" }), await key({ role: "operator" })];
  const json = { message: "hi", wait: true };
  const waiting = askWith(operator, "/v1/sessions/slow/messages", { json });
  await until(async () => (await rota.tasks.counts()).total === 1, "the message to be taken");
  const entries = [{ route: "POST /v1/sessions/{key}/messages", subject: "slow" }];
  expect(await entriesFor(server, admin)).toMatchObject(entries);
  await rota.sessions.stopAll("slow");
  expect((await waiting).status).toBe(200);
  expect(await entriesFor(server, admin)).toHaveLength(1);
});
