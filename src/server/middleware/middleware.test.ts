import type { Socket } from "node:net";
import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { openTestServer, sendRaw } from "../../../test/support/http.ts";
import { errorAnswer } from "../../api/error.ts";
import { VERSION } from "../../version.ts";
import { answerBrokenRequest } from "./broken-requests.ts";

/** The status and the body of a response on a bare connection. */
function parseRaw(answer: string) {
  const [head = "", body = ""] = answer.split("\r\n\r\n");
  const headers = new Map(
    head
      .split("\r\n")
      .slice(1)
      .map((line) => [line.split(":")[0]?.toLowerCase(), line.slice(line.indexOf(":") + 2)]),
  );
  expect(Number(headers.get("content-length"))).toBe(Buffer.byteLength(body));
  return { status: Number(head.split(" ")[1]), headers, body: errorAnswer.parse(JSON.parse(body)) };
}

describe("which machine may ask:", () => {
  test.each(["127.0.0.1", "127.0.0.1:7682", "localhost", "LocalHost:80", "[::1]", "[::1]:7682"])(
    "a request to %s is allowed",
    async (host) => {
      const { url } = await openTestServer({ start: false });
      const answer = await sendRaw(url, `GET /health HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
      expect(answer).toMatch(/^HTTP\/1\.1 200 /);
    },
  );

  test.each([
    "evil.example",
    "127.0.0.1.evil.example",
    "localhost.",
    "localhost:x",
    "0.0.0.0",
    "192.168.0.1",
    "::1",
    "[::2]",
    "",
  ])("a request to the host %j is refused", async (host) => {
    const { url } = await openTestServer({ start: false });
    const raw = await sendRaw(url, `GET /tasks HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
    const { status, body } = parseRaw(raw);
    expect([status, body.code]).toEqual([403, "forbidden"]);
    expect(body.error).toMatch(
      /^this server has no API keys, so it responds only to this machine: the `Host` header must be/,
    );
  });

  test.each(["HTTP/1.1", "HTTP/1.0"])("a request of %s without a host is refused", async (version) => {
    const { url } = await openTestServer({ start: false });
    const { status, body } = parseRaw(
      await sendRaw(url, `GET /health ${version}\r\nConnection: close\r\n\r\n`),
    );
    expect([status, body.code]).toEqual([403, "forbidden"]);
    expect(body.error).toMatch(/and it is missing$/);
  });

  test("a request with two hosts is refused, in whichever order they come", async () => {
    const { url } = await openTestServer({ start: false });
    for (const hosts of [
      ["localhost", "evil.example"],
      ["evil.example", "localhost"],
      ["localhost", "localhost"],
    ]) {
      const lines = hosts.map((host) => `Host: ${host}\r\n`).join("");
      const raw = await sendRaw(url, `GET /tasks HTTP/1.1\r\n${lines}Connection: close\r\n\r\n`);
      expect(parseRaw(raw)).toMatchObject({ status: 403, body: { code: "forbidden" } });
    }
  });

  test("a web page of this machine is allowed, one from elsewhere is refused before anything happens", async () => {
    const { ask, rota } = await openTestServer({ start: false });
    const submit = (origin: string) => ask("/tasks", { json: { payload: 1 }, headers: { origin } });
    for (const origin of ["http://localhost:5173", "http://127.0.0.1", "https://[::1]:8443"]) {
      expect((await submit(origin)).status, origin).toBe(202);
    }
    for (const origin of ["http://evil.example", "null", "file://", "http://localhost.evil.example"]) {
      const { status, body } = await submit(origin);
      expect([status, errorAnswer.parse(body).code], origin).toEqual([403, "forbidden"]);
    }
    expect((await rota.tasks.counts()).total).toBe(3);
  });

  test("a change that needs no CORS preflight is accepted from Rota's own pages only", async () => {
    const { ask, rota, url } = await openTestServer({ start: false });
    const { taskId } = await rota.tasks.submit({ payload: 1 });
    const cancel = (headers: Record<string, string>) =>
      ask(`/tasks/${taskId}/cancel`, { method: "POST", headers }).then(({ status }) => status);
    expect(await cancel({ origin: "http://localhost:3000" })).toBe(403);
    expect(await cancel({ origin: "http://localhost:3000", "content-type": "text/plain" })).toBe(403);
    expect((await rota.tasks.get(taskId)).state).toBe("queued");
    expect(await cancel({ origin: "http://localhost:3000", "sec-fetch-site": "same-origin" })).toBe(200);
    // It has ended, so that a second cancel that is admitted is a conflict.
    expect(await cancel({ origin: url })).toBe(409);
    expect(await cancel({ origin: "http://localhost:3000", "content-type": "application/json" })).toBe(409);
    expect(await cancel({})).toBe(409);
  });

  test("a request that a page of another site causes is refused also without an origin", async () => {
    const { url } = await openTestServer({ start: false });
    const asked = async (...lines: string[]) => {
      const text = ["GET /tasks HTTP/1.1", "Host: localhost", "Connection: close", ...lines, "", ""].join(
        "\r\n",
      );
      return Number((await sendRaw(url, text)).slice(9, 12));
    };
    for (const site of ["cross-site", "same-site"]) {
      expect(await asked(`Sec-Fetch-Site: ${site}`)).toBe(403);
      expect(await asked(`Sec-Fetch-Site: ${site}`, "Origin: http://localhost:5173")).toBe(200);
    }
    for (const site of ["same-origin", "none"]) expect(await asked(`Sec-Fetch-Site: ${site}`)).toBe(200);
  });
});

test("a response before the body has arrived announces that the connection closes, and it does", async () => {
  const { url } = await openTestServer({ start: false });
  const head = "POST /nowhere HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
  for (const body of ["Content-Length: 100\r\n\r\n{", "Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n"]) {
    const answer = await sendRaw(url, head + body, { end: false });
    expect(answer).toMatch(/^HTTP\/1\.1 404 .*\r\nconnection: close\r\n/is);
  }
});

describe("which route:", () => {
  test.each([
    ["PUT", "/tasks", "GET, HEAD, POST"],
    ["PATCH", "/v1/tasks", "GET, HEAD, POST"],
    ["OPTIONS", "/tasks/", "GET, HEAD, POST"],
    ["POST", "/tasks/tsk_1", "DELETE, GET, HEAD"],
    ["PROPFIND", "/tasks/tsk_1", "DELETE, GET, HEAD"],
    ["GET", "/tasks/tsk_1/cancel", "POST"],
    ["DELETE", "/health?x=1", "GET, HEAD"],
    ["PATCH", "/tasks/batch", "POST"],
    ["GET", "/tasks/batch", "POST"],
    ["POST", "/", "GET, HEAD"],
    ["DELETE", "/tasks/stats", "GET, HEAD"],
    ["DELETE", "/v1/tasks/events/", "GET, HEAD"],
    ["POST", "/tasks/events", "GET, HEAD"],
    ["PUT", "/v1/agents/a%2Fb", "DELETE, GET, HEAD, PATCH"],
    ["DELETE", "/v1/webhooks/deliveries/1/resend", "POST"],
  ])("%s %s is not allowed, and the response names the allowed methods", async (method, path, allowed) => {
    const { ask } = await openTestServer({ start: false });
    const { status, headers, body } = await ask(path, { method });
    expect([status, errorAnswer.parse(body).code, headers.get("allow")]).toEqual([
      405,
      "method_not_allowed",
      allowed,
    ]);
    expect(body.error).toContain(`does not take ${method}, only ${allowed}`);
  });

  const NOT_NEAR = "`GET /openapi.json` describes all there are";

  test.each([
    ["/nope", NOT_NEAR],
    ["/v1", NOT_NEAR],
    ["/v2/tasks", "did you mean POST /v1/tasks?"],
    ["/api/tasks", "did you mean POST /v1/tasks?"],
    ["/task", "did you mean POST /tasks?"],
    ["/v1/task/tsk_1/cancel", "did you mean POST /v1/tasks/{id}/cancel?"],
    ["/tasks/a/b/c", NOT_NEAR],
    ["/TASKS", "did you mean POST /tasks?"],
    ["//tasks", "did you mean POST /tasks?"],
    ["/agents", "did you mean POST /v1/agents?"],
    ["/webhooks/deliveries", "did you mean GET /v1/webhooks/deliveries?"],
    ["/metric", "did you mean GET /metrics?"],
    [`/${"tasks".repeat(20)}`, NOT_NEAR],
  ])("%s does not exist, whatever the body, and the response names the nearest route", async (path, hint) => {
    const { ask } = await openTestServer({ start: false });
    const { status, body } = await ask(path, { method: "POST", body: "no JSON" });
    const { code, error } = errorAnswer.parse(body);
    expect([status, code]).toEqual([404, "not_found"]);
    expect(error).toBe(
      `there is no route ${`POST ${path}`.slice(0, 60)}${path.length > 55 ? "…" : ""}: ${hint}`,
    );
  });

  test("GET / lists the main routes, and every link works", async () => {
    const { ask } = await openTestServer();
    const { status, body } = await ask("/");
    expect([status, body]).toMatchObject([200, { name: "rota", version: VERSION }]);
    for (const path of Object.values<string>(body.links)) {
      if (path !== "/tasks/events") expect([path, (await ask(path)).status]).toEqual([path, 200]);
    }
    expect(body.links).toMatchObject({ tasks: "/tasks", openapi: "/openapi.json", health: "/health" });
  });

  test("a path that is no URL is refused", async () => {
    const { url } = await openTestServer({ start: false });
    const raw = await sendRaw(url, "GET /tasks/%zz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    expect(parseRaw(raw)).toMatchObject({ status: 400, body: { code: "invalid_field" } });
  });

  test("a slash at the end changes nothing", async () => {
    const { ask } = await openTestServer({ start: false });
    expect((await ask("/tasks/")).status).toBe(200);
    expect((await ask("/v1/health/")).status).toBe(200);
  });
});

describe("which query:", () => {
  test.each([
    ["/tasks?agnetId=x", "unknown query parameter `agnetId`: did you mean `agentId`?"],
    ["/v1/tasks?limit=5&Limit=5", "unknown query parameter `Limit`: did you mean `limit`?"],
    ["/tasks?zzzzzzzz=1", "unknown query parameter `zzzzzzzz`: known are `agentId`, `state`, `priority`"],
    ["/tasks?__proto__=1", "unknown query parameter `__proto__`"],
    ["/tasks/tsk_1?verbose=1", "unknown query parameter `verbose`: known are `wait`"],
    ["/tasks/stats?x=1", "unknown query parameter `x`: this route takes none"],
    ["/health?x", "unknown query parameter `x`: this route takes none"],
    ["/tasks?limit=abc", '`limit` must be an integer from 1 to 1000, not "abc"'],
    ["/tasks?limit=", "`limit` must be an integer from 1 to 1000, not "],
    ["/tasks?limit=0", "`limit` must be an integer from 1 to 1000, not 0"],
    ["/tasks?limit=1e2", '`limit` must be an integer from 1 to 1000, not "1e2"'],
    ["/tasks?limit=1&limit=2", "`limit` must be an integer from 1 to 1000, not an array"],
    ["/tasks?priority=urgent", "`priority` must be an integer, lower first, or one of critical"],
    ["/tasks?agentId=a&agentId=b", "`agentId` must be a string, not an array"],
    ["/tasks?state=dne", "did you mean `done`?"],
    ["/tasks?cursor=x", "`cursor` must be the `nextCursor` of the page before"],
  ])("%s is refused", async (path, message) => {
    const { ask } = await openTestServer({ start: false });
    const { status, body } = await ask(path);
    expect([status, errorAnswer.parse(body).code]).toEqual([400, "invalid_field"]);
    expect(body.error).toContain(message);
  });
});

describe("which body:", () => {
  const json = { "content-type": "application/json" };
  test.each([
    ["half a body", "{", json, "invalid_json", "the body is not JSON: "],
    ["a text", "hello", json, "invalid_json", "the body is not JSON: "],
    [
      "a number that would become null",
      '{"payload":{"n":1e400}}',
      json,
      "invalid_json",
      "`payload.n` is too large for a number: write it as text",
    ],
    [
      "bytes that are no text",
      Buffer.from([0x22, 0xff, 0x22]),
      json,
      "invalid_json",
      "the body is not UTF-8 text",
    ],
    [
      "a compressed body",
      gzipSync('{"message":"x"}'),
      { ...json, "content-encoding": "gzip" },
      "invalid_json",
      "the body is encoded (`content-encoding: gzip`): send it without an encoding",
    ],
    [
      "a form",
      "message=hello",
      {},
      "invalid_json",
      "send the body as JSON, with the header `content-type: application/json`",
    ],
    ["a type that is none", "{}", { "content-type": "nonsense" }, "invalid_json", "send the body as JSON"],
    ["JSON of another type", "{}", { "content-type": "text/plain" }, "invalid_json", "send the body as JSON"],
    ["nothing", "", json, "invalid_field", "a task must be an object with exactly one of"],
    ["an array", "[]", json, "invalid_field", "a task must be an object with exactly one of"],
    ["null", "null", json, "invalid_field", "a task must be an object with exactly one of"],
    ["an unknown field", '{"mesage":"x"}', json, "invalid_field", "did you mean `message`?"],
    [
      "a `__proto__` as a field",
      '{"__proto__":{"message":"x"}}',
      json,
      "invalid_field",
      "unknown field `__proto__`",
    ],
    [
      "more than a mebibyte",
      `"${"x".repeat(1_048_576)}"`,
      json,
      "body_too_large",
      "the body is larger than 1048576 bytes",
    ],
  ])("%s is refused and nothing is stored", async (_what, body, headers, code, message) => {
    const { ask, rota } = await openTestServer({ start: false });
    const answer = await ask("/tasks", { method: "POST", body, headers });
    expect(errorAnswer.parse(answer.body).code).toBe(code);
    expect(answer.status).toBe(code === "body_too_large" ? 413 : 400);
    expect(answer.body.error).toContain(message);
    expect((await rota.tasks.counts()).total).toBe(0);
  });

  test.each([
    ["with a byte order mark", '\ufeff{"payload":1}', "application/json"],
    ["with a character set", '{"payload":1}', "application/json; charset=utf-8"],
    ["with spaces around", ' \n{"payload":1}\n', "Application/JSON"],
  ])("JSON %s is taken", async (_what, body, type) => {
    const { ask } = await openTestServer({ start: false });
    expect((await ask("/tasks", { method: "POST", body, headers: { "content-type": type } })).status).toBe(
      202,
    );
  });

  test.each([
    [{ reason: "x" }, "unknown field `reason`: this route takes none"],
    [["x"], "this route takes no body, and got an array"],
    ["x", "this route takes no body, and got x"],
    [0, "this route takes no body, and got 0"],
  ])("a body of %j to a route that takes none is refused", async (json, message) => {
    const { ask } = await openTestServer({ start: false });
    const { taskId } = (await ask("/tasks", { json: { payload: 1 } })).body;
    const ways = [
      () => ask(`/tasks/${taskId}/cancel`, { json }),
      () => ask(`/tasks/${taskId}`, { method: "DELETE", json }),
      () => ask(`/tasks/${taskId}/retry`, { json }),
    ];
    for (const way of ways) {
      const { status, body } = await way();
      expect([status, errorAnswer.parse(body).error]).toEqual([400, message]);
    }
    expect((await ask(`/tasks/${taskId}`)).body.state).toBe("queued");
  });

  test.each([{}, null])("a body of %j is empty, and a route without a body accepts it", async (json) => {
    const { ask } = await openTestServer({ start: false });
    const { taskId } = (await ask("/tasks", { json: { payload: 1 } })).body;
    expect((await ask(`/tasks/${taskId}/cancel`, { json })).status).toBe(200);
  });
});

describe("incomplete requests:", () => {
  const huge = "x".repeat(20_000);
  test.each([
    ["no HTTP at all", "hello\r\n\r\n", 400, "invalid_json", "this is not an HTTP request"],
    [
      "half a request",
      "POST /tasks HTTP/1.1\r\nHost: localhost\r\nContent-Le",
      400,
      "invalid_json",
      "this is not an HTTP request",
    ],
    [
      "half a body",
      'POST /tasks HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{"payl',
      400,
      "invalid_json",
      "this is not an HTTP request",
    ],
    [
      "a broken chunk",
      "POST /tasks HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
      400,
      "invalid_json",
      "this is not an HTTP request",
    ],
    [
      "headers without end",
      `GET /health HTTP/1.1\r\nHost: localhost\r\nX: ${huge}\r\n\r\n`,
      413,
      "body_too_large",
      "the headers are larger",
    ],
    [
      "a line without end",
      `GET /${huge} HTTP/1.1\r\nHost: localhost\r\n\r\n`,
      413,
      "body_too_large",
      "the headers are larger",
    ],
  ])("%s gets an error of the usual shape", async (_what, bytes, status, code, message) => {
    const { url, ask, rota } = await openTestServer({ start: false });
    const raw = await sendRaw(url, bytes);
    const answer = parseRaw(raw);
    expect([answer.status, answer.body.code]).toEqual([status, code]);
    expect(answer.body.error).toContain(message);
    expect(raw).toMatch(/^cache-control: no-store\r\nx-content-type-options: nosniff\r$/m);
    expect((await ask("/health")).status).toBe(200);
    expect((await rota.tasks.counts()).total).toBe(0);
  });

  test("a request that takes too long to arrive gets one too", () => {
    const written: string[] = [];
    const socket = { writable: true, end: (text: string) => written.push(text) } as unknown as Socket;
    answerBrokenRequest(Object.assign(new Error(), { code: "ERR_HTTP_REQUEST_TIMEOUT" }), socket);
    const { status, body } = parseRaw(written.join(""));
    expect([status, body.error]).toEqual([400, "the request did not arrive within 30000 ms"]);
  });

  test("an unknown expectation is ignored", async () => {
    const { url } = await openTestServer({ start: false });
    const raw = await sendRaw(
      url,
      "GET /health HTTP/1.1\r\nHost: localhost\r\nExpect: miracles\r\nConnection: close\r\n\r\n",
    );
    expect(raw).toMatch(/^HTTP\/1\.1 200 /);
  });
});

test("an internal error is a 500 and is logged, and the server continues", async () => {
  const { ask, log } = await openTestServer({
    start: false,
    meddler: {
      before: ({ operation }) => {
        if (operation === "tasks.list") throw new TypeError("a secret of the inside");
      },
    },
  });
  const { status, body } = await ask("/tasks");
  expect([status, errorAnswer.parse(body)]).toEqual([
    500,
    { code: "internal_error", error: "internal error of Rota; its log has the details" },
  ]);
  expect(log.lines).toContainEqual({
    level: "error",
    message: "a request failed unexpectedly",
    fields: {
      error: expect.objectContaining({ message: "a secret of the inside" }),
      method: "GET",
      url: "/tasks",
    },
  });
  expect((await ask("/health")).status).toBe(200);
});

test("responses are not cached, and browsers do not guess their type", async () => {
  const { ask } = await openTestServer({ start: false });
  for (const path of ["/tasks", "/health", "/nowhere", "/openapi.json", "/metrics"]) {
    const { headers } = await ask(path);
    expect([headers.get("cache-control"), headers.get("x-content-type-options")], path).toEqual([
      "no-store",
      "nosniff",
    ]);
  }
});
