import { once } from "node:events";
import { type AddressInfo, connect } from "node:net";
import Fastify from "fastify";
import { expect, onTestFinished, test } from "vitest";
import type { LocalAudit } from "../../interface/audit.ts";
import { auditWrites } from "./audit.ts";

/** A server without routes, whose callers have the key `key_1`, and what it has recorded. */
function openApp() {
  const app = Fastify();
  const written: Record<string, unknown>[] = [];
  const audit = { write: async (entry: Record<string, unknown>) => void written.push(entry) };
  app.decorateRequest("callerContext");
  app.addHook("onRequest", (request, _reply, done) => {
    const caller = { keyId: "key_1", tenant: "default" };
    const provenance = { createdBy: { keyId: "key_1", agentId: null, via: "http" }, within: null };
    Object.assign(request, { callerContext: { caller, provenance } });
    done();
  });
  auditWrites(app, audit as unknown as LocalAudit);
  return { app, written };
}

test("a response that cannot be sent after the record fails its request alone", async () => {
  const { app, written } = openApp();
  app.post<{ Params: { text: string } }>(
    "/v1/agents/:text",
    { config: { access: "manage" } },
    (request, reply) => reply.header("x-text", request.params.text).send({}),
  );
  const post = (text: string) =>
    app.inject({ method: "POST", url: `/v1/agents/${encodeURIComponent(text)}` });
  expect((await post("a\nb")).statusCode).toBe(500);
  expect((await post("ab")).statusCode).toBe(200);
  expect(written).toHaveLength(2);
});

test("a change is recorded with its caller's address, also if the caller hangs up before the response", async () => {
  const { app, written } = openApp();
  app.post("/v1/agents", { config: { access: "manage" } }, async ({ raw }) => {
    const closed = once(raw.socket, "close");
    client.destroy();
    await closed;
    return { id: "a" };
  });
  await app.listen({ host: "127.0.0.1", port: 0 });
  onTestFinished(() => app.close());
  const client = connect((app.server.address() as AddressInfo).port, "127.0.0.1");
  client.write("POST /v1/agents HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n");
  await expect.poll(() => written).toMatchObject([{ address: "127.0.0.1", subject: "a" }]);
});
