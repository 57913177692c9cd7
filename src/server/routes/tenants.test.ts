import { expect, test } from "vitest";
import { openTestServer } from "../../../test/support/http.ts";
import { deletedTenant, rotatedWebhookSecret, tenant, tenantList } from "../../api/tenants.ts";

test("a tenant is made, listed, shown, changed, disabled, enabled and deleted", async () => {
  const { ask } = await openTestServer();
  const made = await ask("/v1/tenants", { json: { name: "acme", limits: { maxQueued: 5 } } });
  expect([made.status, tenant.parse(made.body)]).toMatchObject([
    201,
    {
      name: "acme",
      disabled: false,
      limits: {
        maxQueued: 5,
        maxInflight: null,
        maxSchedules: 1_000,
        maxSessions: 10_000,
        maxStreams: null,
        maxAgents: 1_000,
        maxStoredBytes: null,
      },
      storedBytes: null,
    },
  ]);
  const path = `/v1/tenants/${made.body.id}`;
  expect((await ask(path)).body).toEqual(made.body);
  const { body: list } = await ask("/v1/tenants");
  expect(
    tenantList
      .parse(list)
      .tenants.map(({ name }) => name)
      .sort(),
  ).toEqual(["acme", "default"]);
  const changed = await ask(path, { method: "PATCH", json: { name: "Acme", limits: { maxQueued: null } } });
  expect(tenant.parse(changed.body)).toMatchObject({ name: "Acme", limits: { maxQueued: null } });
  expect((await ask(`${path}/disable`, { method: "POST" })).body).toMatchObject({ disabled: true });
  expect((await ask(`${path}/enable`, { method: "POST" })).body).toMatchObject({ disabled: false });
  const deleted = await ask(path, { method: "DELETE" });
  expect([deleted.status, deletedTenant.parse(deleted.body)]).toEqual([200, { deleted: true }]);
  expect((await ask(path)).body).toEqual({ code: "not_found", error: "tenant not found" });
});

test("a webhook secret is rotated", async () => {
  const { ask } = await openTestServer({ start: false });
  const { id } = (await ask("/v1/tenants", { json: { name: "acme" } })).body;
  const rotate = () => ask(`/v1/tenants/${id}/webhook-secret`, { method: "POST" });
  const first = await rotate();
  expect([first.status, rotatedWebhookSecret.parse(first.body)]).toMatchObject([
    200,
    { previousUntil: null },
  ]);
  expect(rotatedWebhookSecret.parse((await rotate()).body).previousUntil).not.toBeNull();
  const missing = await ask("/v1/tenants/unknown/webhook-secret", { method: "POST" });
  expect([missing.status, missing.body.code]).toEqual([404, "not_found"]);
});

test("two of one name cannot be, and the default tenant stays", async () => {
  const { ask } = await openTestServer({ start: false });
  const make = () => ask("/v1/tenants", { json: { name: "acme" } });
  await make();
  expect((await make()).body.code).toBe("conflict");
  expect((await ask("/v1/tenants/default", { method: "DELETE" })).body.code).toBe("conflict");
});

test.each([
  {},
  [],
  { name: "" },
  { name: 5 },
  { name: "x", limits: { maxQueud: 1 } },
  { name: "x", limits: { maxQueued: -1 } },
  { name: "x", limits: 5 },
])("%j is refused", async (json) => {
  const { ask, rota } = await openTestServer({ start: false });
  const { status, body } = await ask("/v1/tenants", { json });
  expect([status, body.code]).toEqual([400, "invalid_field"]);
  expect((await rota.tenants.list()).count).toBe(1);
});
