import { describe, expect, test } from "vitest";
import { openStream } from "../../../test/support/event-stream.ts";
import { openTestServer } from "../../../test/support/http.ts";
import { openKeyedServer } from "../../../test/support/keyed-server.ts";
import { errorAnswer } from "../../api/error.ts";
import { createdKey, deletedKey, keyList } from "../../api/keys.ts";
import { hashOf, newApiKey } from "../../tenants/api-key.ts";
import { until } from "../../testing/signals.ts";

/** The response to a `tenantId` of which the caller can see no tenant. */
const NO_TENANT = {
  code: "not_found",
  error: "`tenantId`: tenant not found: write the id of an existing tenant",
  details: { field: "tenantId" },
};

test("the first key is made without one, and from then on every request needs one", async () => {
  const { ask } = await openTestServer({ start: false });
  const made = await ask("/v1/keys", { json: { role: "admin", name: "laptop" } });
  expect([made.status, made.headers.get("cache-control")]).toEqual([201, "no-store"]);
  const { id, key } = createdKey.parse(made.body);
  expect(key).toMatch(/^rota_[\w-]{43}$/);
  expect((await ask("/v1/keys")).status).toBe(401);
  const { status, body } = await ask("/v1/keys", { headers: { authorization: `Bearer ${key}` } });
  expect(status).toBe(200);
  expect(keyList.parse(body).keys).toMatchObject([
    { id, name: "laptop", role: "admin", tenantId: "default" },
  ]);
});

test("a key is shown once: neither lists nor the storage have it", async () => {
  const { rota, storage, key, askWith } = await openKeyedServer({ start: false });
  const admin = await key({ role: "admin" });
  const expiresAt = "2999-01-31T09:00:00.000Z";
  const json = { role: "agent", name: "crawler", agentId: "crawler", expiresAt };
  const made = createdKey.parse((await askWith(admin, "/v1/keys", { json })).body);
  const { body } = await askWith(admin, "/v1/keys");
  const listed = keyList.parse(body).keys.find(({ id }) => id === made.id);
  expect(listed).toMatchObject({ role: "agent", name: "crawler", agentId: "crawler", expiresAt });
  expect(listed?.lastUsedAt).toBeUndefined();
  const stored = await storage.keys.list({ tenant: "default" });
  expect(JSON.stringify([body, stored, await rota.keys.list()])).not.toContain(made.key.slice(5));
  await askWith(made.key, "/tasks");
  const again = keyList.parse((await askWith(admin, "/v1/keys")).body).keys;
  expect(again.find(({ id }) => id === made.id)?.lastUsedAt).toBeDefined();
});

test("a key is taken away by its tenant, or by an admin who names the tenant", async () => {
  const { rota, key, askWith } = await openKeyedServer({ start: false });
  const { id: acme } = await rota.tenants.create({ name: "acme" });
  const admin = await key({ role: "admin" });
  const json = { role: "viewer", name: "theirs", tenantId: acme };
  const made = createdKey.parse((await askWith(admin, "/v1/keys", { json })).body);
  expect((await askWith(admin, "/v1/keys")).body.count).toBe(1);
  expect((await askWith(admin, `/v1/keys?tenantId=${acme}`)).body.keys).toMatchObject([{ id: made.id }]);
  const away = await askWith(admin, `/v1/keys/${made.id}`, { method: "DELETE" });
  expect([away.status, away.body]).toEqual([404, { code: "not_found", error: "key not found" }]);
  expect((await askWith(made.key, "/tasks")).status).toBe(200);
  const done = await askWith(admin, `/v1/keys/${made.id}?tenantId=${acme}`, { method: "DELETE" });
  expect([done.status, deletedKey.parse(done.body)]).toEqual([200, { deleted: true }]);
  expect((await askWith(made.key, "/tasks")).status).toBe(401);
});

describe("a tenant-admin", () => {
  async function openManaged() {
    const server = await openKeyedServer({ start: false });
    const { rota, key, askWith } = server;
    const { id: acme } = await rota.tenants.create({ name: "acme", limits: { maxQueued: 7 } });
    const { id: other } = await rota.tenants.create({ name: "other" });
    const manager = await key({ role: "tenant-admin", name: "manager", tenantId: acme });
    const as = (path: string, init?: Parameters<typeof askWith>[2]) => askWith(manager, path, init);
    return { ...server, acme, other, as };
  }

  test("makes, lists and deletes keys of its own tenant, of every role but admin", async () => {
    const { acme, as, askWith } = await openManaged();
    const json = { role: "tenant-admin", name: "second" };
    const made = createdKey.parse((await as("/v1/keys", { json })).body);
    const named = await as("/v1/keys", { json: { role: "viewer", name: "third", tenantId: acme } });
    expect(named.status).toBe(201);
    const listed = keyList.parse((await as("/v1/keys")).body);
    expect(listed.keys.map(({ name, role, tenantId }) => [name, role, tenantId])).toEqual([
      ["manager", "tenant-admin", acme],
      ["second", "tenant-admin", acme],
      ["third", "viewer", acme],
    ]);
    expect((await askWith(made.key, "/v1/me")).body).toMatchObject({ role: "tenant-admin", tenantId: acme });
    expect((await as(`/v1/keys/${made.id}`, { method: "DELETE" })).status).toBe(200);
    expect((await askWith(made.key, "/v1/me")).status).toBe(401);
    const admin = await as("/v1/keys", { json: { role: "admin", name: "x" } });
    expect([admin.status, admin.body.code]).toEqual([403, "forbidden"]);
    expect(admin.body.error).toContain("cannot create `admin` keys");
  });

  test("does all that an operator does, with agents and work", async () => {
    const { as } = await openManaged();
    const agent = await as("/v1/agents", { json: { id: "scout", executor: { type: "echo" } } });
    const task = await as("/tasks", { json: { agentId: "scout", message: "hi" } });
    expect([agent.status, task.status]).toEqual([201, 202]);
  });

  test("rotates the webhook secret of its own tenant", async () => {
    const { acme, as, askWith, rota } = await openManaged();
    const rotated = await as(`/v1/tenants/${acme}/webhook-secret`, { method: "POST" });
    expect([rotated.status, rotated.body]).toEqual([
      200,
      { secret: expect.stringMatching(/^whsec_/), previousUntil: null },
    ]);
    const { key: operator } = await rota.keys.create({ role: "operator", name: "users", tenantId: acme });
    const refused = await askWith(operator, `/v1/tenants/${acme}/webhook-secret`, { method: "POST" });
    expect(refused.status).toBe(403);
  });

  test("reads the limits of its own tenant and changes none", async () => {
    const { acme, as } = await openManaged();
    expect((await as(`/v1/tenants/${acme}`)).body).toMatchObject({ id: acme, limits: { maxQueued: 7 } });
    const changed = await as(`/v1/tenants/${acme}`, { method: "PATCH", json: { limits: { maxQueued: 8 } } });
    const enabled = await as(`/v1/tenants/${acme}/enable`, { method: "POST" });
    const deleted = await as(`/v1/tenants/${acme}`, { method: "DELETE" });
    expect([changed.status, enabled.status, deleted.status]).toEqual([403, 403, 403]);
    expect((await as(`/v1/tenants/${acme}`)).body).toMatchObject({ limits: { maxQueued: 7 } });
  });

  test("finds no other tenant", async () => {
    const { other, as, rota } = await openManaged();
    const { id } = await rota.keys.create({ role: "viewer", name: "theirs", tenantId: other });
    const json = { role: "viewer", name: "x", tenantId: other };
    for (const { status, body } of [
      await as(`/v1/tenants/${other}`),
      await as("/v1/tenants/default"),
      await as(`/v1/tenants/${other}/webhook-secret`, { method: "POST" }),
    ]) {
      expect([status, body]).toEqual([404, { code: "not_found", error: "tenant not found" }]);
    }
    for (const { status, body } of [
      await as("/v1/keys", { json }),
      await as("/v1/keys", { json: { ...json, role: "admin" } }),
      await as("/v1/keys", { json: { ...json, tenantId: "ten_nobody" } }),
      await as(`/v1/keys?tenantId=${other}`),
      await as(`/v1/keys/${id}?tenantId=${other}`, { method: "DELETE" }),
    ]) {
      expect([status, body]).toEqual([404, NO_TENANT]);
    }
    const deleted = await as(`/v1/keys/${id}`, { method: "DELETE" });
    expect([deleted.status, deleted.body.error]).toEqual([404, "key not found"]);
    expect((await rota.keys.list({ tenantId: other })).count).toBe(1);
  });

  test("of the default tenant neither sees nor deletes admin keys", async () => {
    const { rota, key, askWith } = await openKeyedServer({ start: false });
    const admin = await rota.keys.create({ role: "admin", name: "root" });
    const manager = await key({ role: "tenant-admin", name: "manager" });
    expect((await askWith(manager, "/v1/keys")).body).toMatchObject({
      count: 1,
      keys: [{ name: "manager" }],
    });
    const { status } = await askWith(manager, `/v1/keys/${admin.id}`, { method: "DELETE" });
    expect(status).toBe(404);
    expect((await askWith(admin.key, "/v1/keys")).body.count).toBe(2);
  });

  test("makes a thousand keys at most", async () => {
    const { acme, as, storage } = await openManaged();
    for (let n = 1; n < 1_000; n += 1) {
      const id = `key_${n}`;
      await storage.keys.create({
        ...{ id, tenant: acme, name: id, role: "viewer", agent: null, hash: id, expiresAt: null },
      });
    }
    const { status, body } = await as("/v1/keys", { json: { role: "viewer", name: "x" } });
    expect([status, errorAnswer.parse(body).error]).toEqual([
      409,
      "the tenant has 1000 keys, which is the limit: delete one first",
    ]);
  });
});

test("admin keys exist only in the default tenant, and the error says what to write", async () => {
  const { rota, key, askWith } = await openKeyedServer({ start: false });
  const { id: tenantId } = await rota.tenants.create({ name: "acme" });
  const admin = await key({ role: "admin" });
  const json = { role: "admin", name: "x", tenantId };
  const { status, body } = await askWith(admin, "/v1/keys", { json });
  expect([status, body.code, body.details]).toEqual([400, "invalid_field", { field: "role" }]);
  expect(body.error).toContain('write "tenant-admin"');
  await expect(rota.keys.create({ role: "admin", name: "x", tenantId })).rejects.toMatchObject({
    details: { field: "role" },
  });
  expect((await askWith(admin, "/v1/keys", { json: { ...json, tenantId: "default" } })).status).toBe(201);
});

test("an admin key that an older node stored for another tenant manages that tenant alone", async () => {
  const { rota, storage, askWith } = await openKeyedServer({ start: false });
  const { id: tenant } = await rota.tenants.create({ name: "acme" });
  const key = newApiKey();
  await storage.keys.create({
    ...{ id: "key_old", tenant, name: "old", role: "admin", agent: null, hash: hashOf(key), expiresAt: null },
  });
  expect((await askWith(key, "/v1/me")).body.role).toBe("tenant-admin");
  expect((await askWith(key, "/v1/keys")).body.keys).toMatchObject([{ id: "key_old", role: "tenant-admin" }]);
  expect((await askWith(key, "/v1/tenants")).status).toBe(403);
});

describe("what no key can be is refused, and makes none:", () => {
  test.each([
    [{}, "role"],
    [[], "role"],
    [{ role: "root", name: "x" }, "role"],
    [{ role: ["admin"], name: "x" }, "role"],
    [{ role: "admin" }, "name"],
    [{ role: "admin", name: "two\nlines" }, "name"],
    [{ role: "admin", name: "\u001b[31mred" }, "name"],
    [{ role: "admin", name: " " }, "name"],
    [{ role: "admin", name: "x".repeat(201) }, "name"],
    [{ role: "admin", name: "a\0b" }, "name"],
    [{ role: "agent", name: "x" }, "agentId"],
    [{ role: "agent", name: "x", agentId: "two\nlines" }, "agentId"],
    [{ role: "viewer", name: "x", agentId: "scout" }, "agentId"],
    [{ role: "viewer", name: "x", expiresAt: "soon" }, "expiresAt"],
    [{ role: "viewer", name: "x", expiresAt: "2001-01-01T00:00:00Z" }, "expiresAt"],
    [{ role: "viewer", name: "x", tenantId: 5 }, "tenantId"],
    [{ role: "viewer", name: "x", tenantId: "" }, "tenantId"],
    [{ role: "viewer", name: "x", scope: "all" }, "scope"],
  ])("%j", async (json, field) => {
    const { ask, rota } = await openTestServer({ start: false });
    const { status, body } = await ask("/v1/keys", { json });
    expect([status, errorAnswer.parse(body).code, body.details.field]).toEqual([400, "invalid_field", field]);
    expect(await rota.keys.any()).toBe(false);
  });

  test("a tenant that does not exist: the error names the field", async () => {
    const { ask } = await openTestServer({ start: false });
    const { status, body } = await ask("/v1/keys", {
      json: { role: "viewer", name: "x", tenantId: "ten_x" },
    });
    expect([status, body]).toEqual([404, NO_TENANT]);
  });
});

describe("once a key is taken away,", () => {
  test.each(["/tasks/events", "/v1/notifications/stream"])(
    "%s ends for who opened it with that key",
    async (path) => {
      const { url, rota, key } = await openKeyedServer();
      const stays = await key({});
      const { id, key: lost } = await rota.keys.create({ role: "viewer", name: "lost" });
      const [ending, going] = await Promise.all(
        [lost, stays].map((each) => openStream(url + path, { authorization: `Bearer ${each}` })),
      );
      await Promise.all([ending?.next(), going?.next()]);
      await rota.keys.delete(id);
      let frame = await ending?.next();
      while (frame !== undefined) frame = await ending?.next();
      await rota.tasks.submit({ message: "hello" });
      const { scheduled_task } = await rota.schedules.create({ schedule: "every 1 h", message: "x" });
      await rota.schedules.delete(scheduled_task.id);
      expect(await going?.next()).toBeDefined();
    },
  );

  test("a caller that waits for a task with it is refused", async () => {
    const { rota, key, askWith } = await openKeyedServer({ start: false });
    await key({});
    const { id, key: lost } = await rota.keys.create({ role: "viewer", name: "lost" });
    const { taskId } = await rota.tasks.submit({ message: "hello" });
    const waiting = askWith(lost, `/tasks/${taskId}?wait=60`);
    await until(async () => (await rota.keys.list()).keys.some((each) => each.lastUsedAt !== undefined));
    await rota.keys.delete(id);
    expect((await waiting).status).toBe(401);
  });
});
