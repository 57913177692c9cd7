import { expect, test } from "vitest";
import { openKeyedServer } from "../../../test/support/keyed-server.ts";
import { me } from "../../api/me.ts";
import { RotaClient } from "../../client/index.ts";
import { VERSION } from "../../version.ts";

test("without keys every caller is an admin of this machine", async () => {
  const { ask, rota } = await openKeyedServer();
  const { status, body } = await ask("/v1/me");
  expect(status).toBe(200);
  expect(me.parse(body)).toMatchObject({
    role: "admin",
    keyId: null,
    keyName: null,
    tenantId: "default",
    tenantName: "default",
    isLocal: true,
    version: VERSION,
    node: rota.node,
    features: expect.arrayContaining(["sessions", "schedules", "lanes"]),
  });
});

test("a key says whose it is, whatever its role, and nothing of others", async () => {
  const { rota, ask, key, askWith, url } = await openKeyedServer();
  const { id: tenantId } = await rota.tenants.create({ name: "acme" });
  for (const role of ["viewer", "operator", "tenant-admin"] as const) {
    const own = await key({ role, tenantId, name: `${role} of acme` });
    const { body } = await askWith(own, "/v1/me");
    expect(me.parse(body)).toMatchObject({
      role,
      keyName: `${role} of acme`,
      keyId: expect.stringMatching(/^key_/),
      tenantId,
      tenantName: "acme",
    });
    expect(body).not.toHaveProperty("agentId");
  }
  const agent = await key({ role: "agent", agentId: "crawler", tenantId });
  expect(await new RotaClient({ url, key: agent }).me()).toMatchObject({ role: "agent", agentId: "crawler" });
  expect((await ask("/v1/me")).status).toBe(401);
  expect((await askWith(agent, "/me")).status).toBe(404);
});
