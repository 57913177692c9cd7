import { expect, test } from "vitest";
import { openKeyedServer } from "../../../test/support/keyed-server.ts";

const PATHS = ["/v1/waiting", "/v1/events", "/v1/events?after=0"];

test("a key reads why work waits, what has happened and what was logged of its own tenant alone", async () => {
  const { rota, key, askWith } = await openKeyedServer();
  const [acme, other] = await Promise.all(["acme", "other"].map((name) => rota.tenants.create({ name })));
  const viewerOf = (tenant: typeof acme) => key({ role: "viewer", tenantId: tenant?.id ?? "" });
  const [own, stranger] = [await viewerOf(acme), await viewerOf(other)];
  const tasks = rota.tenant(acme?.id ?? "").tasks;
  const { taskId } = await tasks.submit({ payload: 1, runAt: "2100-01-01T00:00:00Z" });

  const read = async (by: string) => {
    const paths = [...PATHS, `/v1/events?taskId=${taskId}`];
    return Promise.all(paths.map(async (path) => (await askWith(by, path)).body));
  };
  const event = expect.objectContaining({ type: "task.created", taskId });
  const page = { events: [event], count: 1, next: null };
  const waits = { reasons: [{ code: expect.any(String), count: 1 }], total: 1 };
  expect(await read(own)).toEqual([waits, page, page, page]);
  const nothing = { events: [], count: 0, next: null };
  expect(await read(stranger)).toEqual([{ reasons: [], total: 0 }, nothing, nothing, nothing]);

  const logs = `/tasks/${taskId}/logs`;
  expect(await askWith(own, logs)).toMatchObject({ status: 200, body: { taskId, lines: [], dropped: 0 } });
  expect(await askWith(stranger, logs)).toMatchObject({ status: 404, body: { code: "not_found" } });
});

test("a key of an agent reads the log of its own tasks, and nothing that is its tenant's", async () => {
  const { rota, key, askWith } = await openKeyedServer();
  const { id: tenantId } = await rota.tenants.create({ name: "acme" });
  const agent = await key({ role: "agent", agentId: "crawler", tenantId });
  const { tasks } = rota.tenant(tenantId);
  const own = await tasks.submit({ agentId: "crawler", payload: 1 });
  const others = await tasks.submit({ agentId: "writer", payload: 1 });
  expect((await askWith(agent, `/tasks/${own.taskId}/logs`)).status).toBe(200);
  expect((await askWith(agent, `/tasks/${others.taskId}/logs`)).status).toBe(404);
  for (const path of [...PATHS, "/v1/nodes"]) expect((await askWith(agent, path)).status).toBe(403);
});

test("nodes are for admins", async () => {
  const { key, askWith } = await openKeyedServer();
  expect((await askWith(await key({ role: "admin" }), "/v1/nodes")).status).toBe(200);
  for (const role of ["viewer", "operator"] as const) {
    expect((await askWith(await key({ role }), "/v1/nodes")).status).toBe(403);
  }
});
