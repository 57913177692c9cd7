import { describe, expect, test } from "vitest";
import { openTestServer } from "../../../test/support/http.ts";
import { openKeyedServer } from "../../../test/support/keyed-server.ts";
import { openTestRota } from "../../../test/support/rota.ts";
import { routesOf } from "../../../test/support/routes.ts";
import { RotaClient } from "../../client/index.ts";
import { createServer } from "../create-server.ts";

const APP = "https://app.example.com";
const OTHER = "https://evil.example";
const CORS = { server: { cors: { origins: [APP, "http://localhost:5173"] } } };

/** What a browser sends before a request that needs one. */
function preflight(origin: string, method: string, headers = "authorization,content-type") {
  return {
    method: "OPTIONS",
    headers: { origin, "access-control-request-method": method, "access-control-request-headers": headers },
  };
}

function corsHeaders(headers: Headers): string[] {
  return [...headers.keys()].filter((name) => name.startsWith("access-control-"));
}

const SIMPLE_METHODS = ["GET", "HEAD", "POST"];
const SIMPLE_HEADERS = ["accept"];
const SHOWN_HEADERS = ["cache-control", "content-length", "content-type"];

/** `fetch` as a browser does it for a page of `origin`: a preflight first, and only what the server allows is shown. */
function browserOf(origin: string): { fetch: typeof fetch; preflights: string[] } {
  const preflights: string[] = [];
  const fail = (why: string) => new TypeError(`Failed to fetch: ${why}`);
  const listOf = (headers: Headers, name: string) => (headers.get(name) ?? "").split(", ");
  const browserFetch = async (input: string | URL | Request, init: RequestInit = {}) => {
    const { method = "GET" } = init;
    const sent = new Headers(init.headers);
    const asked = [...sent.keys()].filter((name) => !SIMPLE_HEADERS.includes(name));
    if (!SIMPLE_METHODS.includes(method) || asked.length > 0) {
      preflights.push(method);
      const { ok, headers } = await fetch(input, preflight(origin, method, asked.join(",")));
      if (!ok) throw fail("the preflight has no ok status");
      if (headers.get("access-control-allow-origin") !== origin) throw fail("origin in preflight");
      if (!listOf(headers, "access-control-allow-methods").includes(method)) throw fail(method);
      const allowed = listOf(headers, "access-control-allow-headers");
      const wrong = asked.find((name) => !allowed.includes(name));
      if (wrong !== undefined) throw fail(wrong);
    }
    sent.set("origin", origin);
    const response = await fetch(input, { ...init, headers: sent });
    if (response.headers.get("access-control-allow-origin") !== origin) throw fail("origin");
    const shown = [...SHOWN_HEADERS, ...listOf(response.headers, "access-control-expose-headers")];
    const headers = [...response.headers].filter(([name]) => shown.includes(name));
    return new Response(response.body, { status: response.status, headers });
  };
  return { fetch: browserFetch, preflights };
}

describe("a preflight", () => {
  test("of a listed origin gets a response without a key, and nothing is carried out", async () => {
    const { key, ask, rota } = await openKeyedServer({ start: false, ...CORS });
    await key({});
    const { status, headers, body } = await ask("/v1/tasks", preflight(APP, "POST"));
    expect([status, body]).toEqual([204, ""]);
    expect(headers.get("access-control-allow-origin")).toBe(APP);
    expect(headers.get("access-control-allow-methods")).toBe("DELETE, GET, HEAD, PATCH, POST, PUT");
    expect(headers.get("access-control-allow-headers")).toBe(
      "authorization, content-type, idempotency-key, last-event-id, x-rota-client, x-rota-task-token, x-rota-via, mcp-method, mcp-name, mcp-protocol-version",
    );
    expect(headers.get("access-control-max-age")).toBe("600");
    expect(headers.get("vary")).toBe("origin");
    expect((await rota.tasks.list({})).count).toBe(0);
  });

  test.each([OTHER, `${APP}.evil.example`, "http://app.example.com", `${APP}:8443`, "null"])(
    "of %s is refused",
    async (origin) => {
      const { key, ask } = await openKeyedServer({ start: false, ...CORS });
      await key({});
      const { status, headers } = await ask("/v1/tasks", preflight(origin, "POST"));
      expect(status).toBe(401);
      expect([corsHeaders(headers), headers.get("vary")]).toEqual([[], "origin"]);
    },
  );

  test("allows every method of the API", async () => {
    const { rota, log } = await openTestRota();
    const app = createServer({ rota, log, ...CORS.server });
    const routes = await routesOf(app);
    const { headers } = await app.inject({ url: "/v1/tasks", ...preflight(APP, "GET"), method: "OPTIONS" });
    await app.close();
    const allowed = String(headers["access-control-allow-methods"]).split(", ");
    expect(allowed).toEqual([...new Set(routes.map(({ method }) => method))].sort());
  });
});

test("without listed origins no response has a CORS header, and a preflight is an unknown method", async () => {
  const { ask, rota } = await openTestServer({ start: false });
  const { status, headers } = await ask("/v1/tasks", preflight("http://localhost:5173", "GET"));
  expect([status, corsHeaders(headers), headers.get("vary")]).toEqual([405, [], null]);
  const read = await ask("/v1/tasks", { headers: { origin: "http://localhost:5173" } });
  expect([read.status, corsHeaders(read.headers)]).toEqual([200, []]);
  expect((await rota.tasks.list({})).count).toBe(0);
});

test("a response never allows credentials, and shows a page when it may retry", async () => {
  const { key, askWith } = await openKeyedServer({ start: false, ...CORS });
  const own = await key({});
  const { status, headers } = await askWith(own, "/v1/tasks", { headers: { origin: APP, cookie: "a=b" } });
  expect(status).toBe(200);
  expect(corsHeaders(headers)).toEqual(["access-control-allow-origin", "access-control-expose-headers"]);
  expect(headers.get("access-control-expose-headers")).toBe("retry-after");
});

test("a page of a listed origin can read errors, also that its key is missing", async () => {
  const { key, ask } = await openKeyedServer({ start: false, ...CORS });
  await key({});
  for (const path of ["/v1/tasks", "/v1/nothing"]) {
    const { status, headers } = await ask(path, { headers: { origin: APP } });
    expect([status, headers.get("access-control-allow-origin")], path).toEqual([401, APP]);
  }
});

test("the client works in a page of a listed origin, with streams, waits and errors", async () => {
  const { key, url } = await openKeyedServer(CORS);
  const browser = browserOf(APP);
  const rota = new RotaClient({ url, key: await key({ role: "admin" }), fetch: browser.fetch, retry: false });
  const events = rota.events();
  const { taskId } = await rota.tasks.submit({ message: "hello", idempotencyKey: "once" });
  const types: string[] = [];
  for await (const { type } of events) {
    types.push(type);
    if (type === "task.completed") break;
  }
  expect(types).toEqual(["task.created", "task.started", "task.completed"]);
  expect((await rota.tasks.wait(taskId)).result).toBe("hello");
  await expect(rota.tasks.get("tsk_unknown")).rejects.toMatchObject({ code: "not_found" });
  const { scheduled_task: schedule } = await rota.schedules.create({
    name: "daily",
    schedule: { kind: "cron", expr: "0 9 * * *" },
    message: "good morning",
  });
  await rota.schedules.delete(schedule.id);
  expect(browser.preflights).toEqual(expect.arrayContaining(["GET", "POST", "DELETE"]));
});

test("the client fails in a page of any other origin", async () => {
  const { key, url, rota: server } = await openKeyedServer({ start: false, ...CORS });
  const { fetch } = browserOf(OTHER);
  const rota = new RotaClient({ url, key: await key({}), fetch, retry: false });
  await expect(rota.tasks.submit({ message: "hello" })).rejects.toThrow();
  expect((await server.tasks.list({})).count).toBe(0);
});

describe("on a server without keys", () => {
  test("a listed page of this machine may also send requests without a body", async () => {
    const { rota: server, url } = await openTestServer({ start: false, ...CORS });
    const { taskId } = await server.tasks.submit({ message: "hello" });
    const { fetch } = browserOf("http://localhost:5173");
    const rota = new RotaClient({ url, fetch, retry: false });
    await rota.tasks.cancel(taskId);
    expect((await server.tasks.get(taskId)).state).toBe("cancelled");
  });

  test("a listed page of another machine is refused: it needs a key", async () => {
    const { ask } = await openTestServer({ start: false, ...CORS });
    const { status, headers, body } = await ask("/v1/tasks", { headers: { origin: APP } });
    expect([status, body.code, headers.get("access-control-allow-origin")]).toEqual([403, "forbidden", APP]);
    expect(body.error).toContain("create an API key");
  });
});
