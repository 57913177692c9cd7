import { describe, expect, test } from "vitest";
import { type KeyedServer, openKeyedServer } from "../../../test/support/keyed-server.ts";
import { readMetrics } from "../../../test/support/prometheus.ts";
import type { AuditRecord } from "../../interface/audit.ts";

async function refusedIn({ rota }: KeyedServer, tenantId = "default"): Promise<AuditRecord[]> {
  const { entries } = await rota.audit.list({ tenantId, limit: 1_000 });
  return entries.filter(({ status }) => status !== undefined).reverse();
}

test("a refused request leaves its key, route and address in the audit log, and no text of the caller", async () => {
  const server = await openKeyedServer({
    start: false,
    server: { rateLimit: { perSecond: 1, burst: 2, maxExpensive: 1 } },
  });
  const { rota, ask, askWith } = server;
  const { id: tenantId } = await rota.tenants.create({ name: "acme" });
  const viewer = await rota.keys.create({ role: "viewer", name: "v", tenantId });
  await ask("/tasks?agentId=zanzibar");
  await ask("/zanzibar", { headers: { authorization: "Bearer zanzibar" } });
  await askWith(viewer.key, "/tasks/zanzibar/cancel", { method: "POST" });
  await askWith(viewer.key, "/tasks?agentId=zanzibar");
  const address = "127.0.0.1";
  const common = { at: expect.any(String), subject: null, address, count: 1 };
  expect(await refusedIn(server)).toEqual([
    { ...common, keyId: null, route: "GET /tasks", status: 401 },
    { ...common, keyId: null, route: "no such route", status: 401 },
  ]);
  expect(await refusedIn(server, tenantId)).toEqual([
    { ...common, keyId: viewer.id, route: "POST /tasks/{id}/cancel", status: 403 },
    { ...common, keyId: viewer.id, route: "GET /tasks", status: 429 },
  ]);
  expect((await rota.doctor()).ok).toBe(true);
});

test("the metrics count each refusal by status and permission, for each tenant separately", async () => {
  const { rota, key, ask, askWith } = await openKeyedServer({ start: false });
  const { id: tenantId } = await rota.tenants.create({ name: "acme" });
  const viewer = await key({ role: "viewer", tenantId });
  for (let n = 0; n < 12; n += 1) await ask("/tasks");
  await ask("/nowhere");
  await askWith(viewer, "/tasks", { json: { message: "hi" } });
  await askWith(viewer, "/v1/keys");
  const denied = async (tenant: string) => {
    const metric = readMetrics(await rota.tenant(tenant).metrics()).get("rota_requests_denied_total");
    return Object.fromEntries([...(metric?.samples ?? [])].filter(([, value]) => value > 0));
  };
  const named = (status: number, access: string) => `{status="${status}",access="${access}"}`;
  expect(await denied("default")).toEqual({ [named(401, "readOwn")]: 12, [named(401, "none")]: 1 });
  expect(await denied(tenantId)).toEqual({ [named(403, "submit")]: 1, [named(403, "manage")]: 1 });
});

describe("however many are refused,", () => {
  test("each source has five entries a minute, and one for the rest", async () => {
    const server = await openKeyedServer({ start: false });
    const { rota, clock, ask, askWith } = server;
    const viewer = await rota.keys.create({ role: "viewer", name: "v" });
    for (let n = 0; n < 20; n += 1) {
      await ask("/tasks");
      await askWith(viewer.key, "/v1/keys");
    }
    expect(await refusedIn(server)).toHaveLength(10);
    await clock.advance(60_000);
    const entries = await refusedIn(server);
    expect(entries.slice(10)).toMatchObject([
      { keyId: null, route: "*", status: 401, count: 15, address: "127.0.0.1" },
      { keyId: viewer.id, route: "*", status: 403, count: 15 },
    ]);
    // The next minute begins anew.
    await ask("/tasks");
    expect((await refusedIn(server)).slice(12)).toMatchObject([{ status: 401, count: 1 }]);
  });

  test("also from many addresses, the log grows by a bounded number of entries", async () => {
    const server = await openKeyedServer({ start: false, server: { trustProxy: 1 } });
    const { clock, key, ask } = server;
    await key({});
    for (let n = 0; n < 200; n += 1) {
      const headers = { "x-forwarded-for": `203.0.113.${n}` };
      for (let again = 0; again < 2; again += 1) await ask("/tasks", { headers });
    }
    expect(await refusedIn(server)).toHaveLength(20);
    await clock.advance(60_000);
    const entries = await refusedIn(server);
    expect(entries.length).toBeLessThanOrEqual(20 + 60 + 3);
    expect(entries.reduce((sum, { count = 0 }) => sum + count, 0)).toBe(400);
  });

  test("the refusals of the last minute are recorded when the server closes", async () => {
    const server = await openKeyedServer({ start: false });
    const { rota, ask } = server;
    await rota.keys.create({ role: "viewer", name: "v" });
    for (let n = 0; n < 9; n += 1) await ask("/tasks");
    await server.close();
    expect((await refusedIn(server)).at(-1)).toMatchObject({ route: "*", count: 4 });
  });
});

describe("where a request comes from is", () => {
  test.each<[string, false | number | string[], string, string]>([
    ["the other end of the connection, with any header", false, "203.0.113.7", "127.0.0.1"],
    ["what the last proxy saw", 1, "198.51.100.1, 203.0.113.7", "203.0.113.7"],
    ["what the one before it saw", 2, "198.51.100.1, 203.0.113.7", "198.51.100.1"],
    [
      "what proxies at known addresses say",
      ["127.0.0.0/8", "203.0.113.7"],
      "198.51.100.1, 203.0.113.7",
      "198.51.100.1",
    ],
    ["the first that is no such proxy", ["127.0.0.1"], "198.51.100.1, 203.0.113.7", "203.0.113.7"],
    ["the connection, where a proxy is none", ["10.0.0.1"], "203.0.113.7", "127.0.0.1"],
    ["no text", 1, "zanzibar", "127.0.0.1"],
    ["IPv4 as itself", 1, "::ffff:203.0.113.7", "203.0.113.7"],
    ["IPv6", 1, "2001:db8::7", "2001:db8::7"],
  ])("%s", async (_what, trustProxy, forwarded, address) => {
    const server = await openKeyedServer({ start: false, server: { trustProxy } });
    await server.key({});
    await server.ask("/tasks", { headers: { "x-forwarded-for": forwarded } });
    expect(await refusedIn(server)).toMatchObject([{ status: 401, address }]);
  });
});

test("changes are recorded with the address, too; reads and requests for what does not exist are not", async () => {
  const { rota, key, askWith } = await openKeyedServer({ start: false });
  const operator = await key({});
  await askWith(operator, "/tasks", { json: { message: "hi" } });
  await askWith(operator, "/tasks");
  await askWith(operator, "/tasks/tsk_nobody");
  expect((await rota.audit.list()).entries).toMatchObject([{ route: "POST /tasks", address: "127.0.0.1" }]);
});
