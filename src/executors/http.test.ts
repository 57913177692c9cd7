import type { IncomingHttpHeaders } from "node:http";
import { Webhook } from "standardwebhooks";
import { expect, test } from "vitest";
import { serve } from "../../test/support/http-server.ts";
import { runnable, TASK_TOKEN } from "../../test/support/run-executor.ts";
import { dependencyResult } from "../model/dependency-result.ts";
import type { Task } from "../model/task.ts";
import { TargetGuard } from "../outbound/target-guard.ts";
import { ManualClock } from "../testing/manual-clock.ts";
import { VERSION } from "../version.ts";
import { signature } from "../webhooks/signature.ts";
import type { SignedContent, SignOptions } from "./executor.ts";

const task = {
  taskId: "tsk_1",
  agentId: "a",
  kind: "custom",
  payload: { question: "?" },
  attempts: [],
} as unknown as Task;

function run(url: string, headers: Record<string, string> = {}): Promise<unknown> {
  return runnable({ type: "http", url, headers }).run(task);
}

test("posts the task as JSON", async () => {
  const url = await serve(({ method, url: path, headers }, response, body) => {
    const answer = {
      method,
      path,
      type: headers["content-type"],
      key: headers["x-key"],
      body: JSON.parse(body),
    };
    response
      .writeHead(200, { "content-type": "application/json; charset=utf-8" })
      .end(JSON.stringify(answer));
  });
  expect(await run(`${url}/hook`, { "x-key": "k" })).toEqual({
    method: "POST",
    path: "/hook",
    type: "application/json",
    key: "k",
    body: { tenantId: "default", ...task },
  });
});

test.each([
  ["application/json", "[1,2]", [1, 2]],
  ["application/problem+json", '"x"', "x"],
  ["application/json", "not json", "not json"],
  ["text/plain", "[1,2]", "[1,2]"],
  ["text/html", "", ""],
])("a response of type %s, %j, becomes the result %j", async (type, body, result) => {
  const url = await serve((_request, response) =>
    response.writeHead(200, { "content-type": type }).end(body),
  );
  expect(await run(url)).toEqual(result);
});

test("a response without a content type is read as JSON if it is JSON", async () => {
  const url = await serve(({ url: path }, response) => response.end(path === "/json" ? '{"a":1}' : "{a:1}"));
  expect([await run(`${url}/json`), await run(url)]).toEqual([{ a: 1 }, "{a:1}"]);
});

test("JSON that is nested deeper than a result may be stays the text it is", async () => {
  const body = "[".repeat(100_000) + "]".repeat(100_000);
  const url = await serve((_request, response) => response.end(body));
  expect(await run(url)).toBe(body);
});

test("its headers go with every call, and may say another type of content", async () => {
  const url = await serve(({ headers }, response) => response.end(JSON.stringify(headers)));
  expect(await run(url, { "Content-Type": "application/vnd.task+json", "X-Key": "a" })).toMatchObject({
    "content-type": "application/vnd.task+json",
    "x-key": "a",
  });
});

test("a response beyond a mebibyte is cut and marked, and still fits as a result", async () => {
  const url = await serve((_request, response) => response.end('"\n'.repeat(2_000_000)));
  const result = (await run(url)) as { truncated: boolean; text: string };
  expect(result.truncated).toBe(true);
  expect(result.text.startsWith('"\n"\n')).toBe(true);
  const bytes = Buffer.byteLength(JSON.stringify(result));
  expect(bytes).toBeLessThanOrEqual(1_048_576);
  expect(bytes).toBeGreaterThan(1_000_000);
});

test("a failure quotes the response, cut at a kibibyte", async () => {
  const url = await serve(({ url: path }, response) => {
    const body = path === "/long" ? "é".repeat(5_000) : "no such thing";
    response.writeHead(404, { "retry-after": "3" }).end(body);
  });
  await expect(run(url)).rejects.toMatchObject({
    message: "HTTP 404: no such thing",
    status: 404,
    permanent: true,
    retryAfterMs: 3_000,
  });
  await expect(run(`${url}/long`)).rejects.toMatchObject({ message: `HTTP 404: ${"é".repeat(512)}…` });
});

test("a redirect is a failure", async () => {
  const url = await serve((_request, response) => response.writeHead(301, { location: "http://x/" }).end());
  await expect(run(url)).rejects.toMatchObject({ message: "HTTP 301: ", permanent: false });
});

// ------------------------------------------------------------------------------------------------------- its headers

/** A server that keeps the headers and bodies of requests, and responds with an empty object. */
async function serveHeaders() {
  const seen: IncomingHttpHeaders[] = [];
  const bodies: string[] = [];
  const url = await serve(({ headers }, response, body) => {
    seen.push(headers);
    bodies.push(body);
    response.end("{}");
  });
  return { url, seen, bodies };
}

test("says which attempt of which task of whom it is, and who calls", async () => {
  const { url, seen } = await serveHeaders();
  const attempts = [{ number: 1 }, { number: 2 }] as unknown as Task["attempts"];
  const { run } = runnable({ type: "http", url });
  await run({ ...task, taskId: "tsk_7", agentId: "Büro 1%", attempts }, undefined, "ten_1");
  await run({ ...task, taskId: "tsk_7" });
  await run({ ...task, taskId: "tsk_8" });
  expect(seen[0]).toMatchObject({
    "x-rota-task-id": "tsk_7",
    "x-rota-attempt": "2",
    "x-rota-tenant": "ten_1",
    "x-agent-id": "B%C3%BCro 1%",
    "user-agent": `rota/${VERSION}`,
    traceparent: expect.stringMatching(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/),
  });
  expect(seen[0]).not.toHaveProperty("webhook-id");
  const [trace, span] = [1, 2].map((part) =>
    seen.map(({ traceparent }) => String(traceparent).split("-")[part]),
  );
  expect([trace?.[0] === trace?.[1], trace?.[0] === trace?.[2], span?.[0] === span?.[1]]).toEqual([
    true,
    false,
    false,
  ]);
});

test("the configuration may say who calls, but not whose task it is", async () => {
  const { url, seen } = await serveHeaders();
  const headers = {
    "User-Agent": "mine/1",
    "X-Rota-Tenant": "other",
    "X-Agent-ID": "other",
    "X-Rota-Task-Id": "other",
    "Webhook-Signature": "v1,forged",
  };
  await runnable({ type: "http", url, headers }, { sign: () => "v1,right" }).run(task);
  expect(seen[0]).toMatchObject({
    "user-agent": "mine/1",
    "x-rota-tenant": "default",
    "x-agent-id": "a",
    "x-rota-task-id": "tsk_1",
    "webhook-signature": "v1,right",
  });
});

test("is signed as callbacks are, so that libraries for those verify it", async () => {
  const { url, seen, bodies } = await serveHeaders();
  const key = Buffer.from("0123456789abcdef0123456789abcdef");
  const executor = runnable({ type: "http", url }, { sign: (content) => signature([key], content) });
  await executor.clock.advance(Date.now() - executor.clock.now());
  await executor.run(task);
  const webhook = new Webhook(`whsec_${key.toString("base64")}`);
  expect(seen[0]?.["webhook-id"]).toBe("tsk_1_1");
  expect(webhook.verify(bodies[0] ?? "", seen[0] as Record<string, string>)).toEqual({
    tenantId: "default",
    ...task,
  });
});

test("large results of dependencies arrive whole, with a length and a signature", async () => {
  const { url, seen, bodies } = await serveHeaders();
  const key = Buffer.from("0123456789abcdef0123456789abcdef");
  const executor = runnable({ type: "http", url }, { sign: (content) => signature([key], content) });
  await executor.clock.advance(Date.now() - executor.clock.now());
  // Pieces end in the middle of characters of two, three and four bytes.
  const text = JSON.stringify("é漢🎈".repeat(60_000));
  const large = { ...task, dependencies: ["tsk_2", "tsk_3"].map((id) => dependencyResult(id, text)) };
  await executor.run(large as unknown as Task);
  const [body = ""] = bodies;
  expect(JSON.parse(body)).toEqual(JSON.parse(JSON.stringify({ tenantId: "default", ...large })));
  expect(seen[0]?.["content-length"]).toBe(String(Buffer.byteLength(body)));
  const webhook = new Webhook(`whsec_${key.toString("base64")}`);
  expect(() => webhook.verify(body, seen[0] as Record<string, string>)).not.toThrow();
});

test("names the tenant in the signed body, and asks for the tenant's own secret where a user says where to call", async () => {
  const { url, bodies } = await serveHeaders();
  const guard = new TargetGuard({ allow: ["127.0.0.1"], clock: new ManualClock() });
  const config = { type: "http", url } as const;
  const asked: unknown[] = [];
  const sign = (content: SignedContent, options?: SignOptions) => {
    asked.push([JSON.parse(String(content.body)).tenantId, options?.ownSecretOnly]);
    return "v1,x";
  };
  await runnable(config, { guard, sign }).run(task, undefined, "ten_1");
  await runnable(config, { sign }).run(task, undefined, "ten_1");
  expect(asked).toEqual([
    ["ten_1", true],
    ["ten_1", false],
  ]);
  expect(bodies.map((body) => JSON.parse(body).tenantId)).toEqual(["ten_1", "ten_1"]);
});

// --------------------------------------------------------------------------------------------------------- its usage

const USAGE = {
  inputTokens: 12,
  outputTokens: 3,
  contextTokens: 15,
  contextWindow: 100,
  model: "m",
  costMicros: 7,
};

/** Responds with this, and with the usage in a header. */
function serveUsage(answer: unknown, header?: string, status = 200): Promise<string> {
  return serve((_request, response) =>
    response
      .writeHead(status, header === undefined ? {} : { "x-rota-usage": header })
      .end(JSON.stringify(answer)),
  );
}

test.each<[string, unknown, string | undefined, object[]]>([
  ["in the answer", { usage: USAGE }, undefined, [USAGE]],
  ["in a header", "text", JSON.stringify(USAGE), [USAGE]],
  ["in both, where the header counts", { usage: { inputTokens: 1 } }, JSON.stringify(USAGE), [USAGE]],
  [
    "with more than we know",
    { usage: { inputTokens: 1, outputTokens: null, cached: "x" } },
    undefined,
    [{ inputTokens: 1 }],
  ],
  ["wrongly in the header, but not in the answer", { usage: USAGE }, "[1]", [USAGE]],
  ["in other words than ours", { usage: { cpu: 1 } }, undefined, []],
  ["as a text", { usage: "see the manual" }, undefined, []],
  ["not at all", [USAGE], undefined, []],
])("reports what the agent says %s", async (_where, answer, header, reported) => {
  const executor = runnable({ type: "http", url: await serveUsage(answer, header) });
  expect(await executor.run(task)).toEqual(answer);
  expect(executor.usage).toEqual(reported);
});

test("a failure has cost what its header says", async () => {
  const executor = runnable({ type: "http", url: await serveUsage({}, JSON.stringify(USAGE), 500) });
  await expect(executor.run(task)).rejects.toThrow("HTTP 500");
  expect(executor.usage).toEqual([USAGE]);
});

test.each<[unknown, string | undefined, string]>([
  [
    { usage: { inputTokens: 1, outputTokens: -2 } },
    undefined,
    "`usage.outputTokens` must be a whole number from 0 on, not -2",
  ],
  [
    { usage: { inputTokens: "12" } },
    undefined,
    '`usage.inputTokens` must be a whole number from 0 on, not "12"',
  ],
  [
    { usage: { inputTokens: 1.5 } },
    undefined,
    "`usage.inputTokens` must be a whole number from 0 on, not 1.5",
  ],
  [{}, "12 tokens", 'the header X-Rota-Usage must be a JSON object, not "12 tokens"'],
  [{}, '{"inputTokens":true}', "`usage.inputTokens` must be a whole number from 0 on, not true"],
])("a wrong usage in %j or %j is ignored, and logged once", async (answer, header, message) => {
  const executor = runnable({ type: "http", url: await serveUsage(answer, header) });
  expect([await executor.run(task), await executor.run(task)]).toEqual([answer, answer]);
  expect(executor.usage).toEqual([]);
  expect(executor.log.lines.map(({ message: line }) => line)).toEqual([
    `${message}; this report and further wrong ones of this executor are ignored`,
  ]);
});

test("reports the bytes that it holds: those of its request, and the most that is kept of a response", async () => {
  let sent = 0;
  const url = await serve((_request, response, body) => {
    sent = body.length;
    response.end("x".repeat(3_000_000));
  });
  const executor = runnable({ type: "http", url });
  await executor.run(task);
  const [request, ...answer] = executor.held;
  expect(request).toBe(sent);
  expect(answer.reduce((sum, bytes) => sum + bytes, 0)).toBe(1_048_576);
});

test("the task token is sent only for an agent that says so", async () => {
  const seen: IncomingHttpHeaders[] = [];
  const url = await serve(({ headers }, response) => {
    seen.push(headers);
    response.end();
  });
  await runnable({ type: "http", url }).run(task);
  await runnable({ type: "http", url }, { sendsTaskToken: true }).run(task);
  expect(seen.map((headers) => headers["x-rota-task-token"])).toEqual([undefined, TASK_TOKEN]);
});
