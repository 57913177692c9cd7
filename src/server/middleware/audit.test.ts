import Fastify from "fastify";
import { expect, test } from "vitest";
import type { LocalAudit } from "../../interface/audit.ts";
import { auditWrites } from "./audit.ts";

test("a response that cannot be sent after the record fails its request alone", async () => {
  const app = Fastify();
  const written: unknown[] = [];
  const audit = { write: async (entry: unknown) => void written.push(entry) };
  app.decorateRequest("callerContext");
  app.addHook("onRequest", (request, _reply, done) => {
    const caller = { keyId: "key_1", tenant: "default" };
    const provenance = { createdBy: { keyId: "key_1", agentId: null, via: "http" }, within: null };
    Object.assign(request, { callerContext: { caller, provenance } });
    done();
  });
  auditWrites(app, audit as unknown as LocalAudit);
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
