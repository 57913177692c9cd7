import Fastify from "fastify";
import { describe, expect, onTestFinished, test } from "vitest";
import { ask, openTestServer } from "../../../test/support/http.ts";
import { openKeyedServer } from "../../../test/support/keyed-server.ts";
import { openTestRota } from "../../../test/support/rota.ts";
import { type KnownRoute, routesOf } from "../../../test/support/routes.ts";
import { away } from "../../../test/support/storages.ts";
import { errorAnswer } from "../../api/error.ts";
import { ROLES, type Role } from "../../model/role.ts";
import { PERMISSIONS, type Permission } from "../../tenants/permissions.ts";
import { createServer } from "../create-server.ts";
import { admitCallers } from "./admission.ts";
import { DEFAULT_REQUEST_LIMITS, RequestLimits } from "./request-limits.ts";

const OPEN_PATHS = ["/health", "/ready", "/v1/health", "/v1/ready"];

async function allRoutes(): Promise<KnownRoute[]> {
  const { rota, log } = await openTestRota();
  const app = createServer({ rota, log });
  onTestFinished(() => app.close());
  return routesOf(app);
}

function pathOf({ path }: KnownRoute): string {
  return path.replaceAll(/:\w+/g, "unknown");
}

test("a route without a permission cannot be registered", async () => {
  const { rota, clock } = await openTestRota();
  const app = Fastify();
  const rateLimit = new RequestLimits(DEFAULT_REQUEST_LIMITS, {
    clock,
    hasSecondTenant: () => false,
    onRefused: () => {},
  });
  admitCallers(app, { rota, isLocal: true, hasDashboard: false, rateLimit, clock });
  expect(() => app.get("/forgotten", async () => "secret")).toThrow("names no permission");
});

test("every route needs a key once there is one, except health checks", async () => {
  const { key, ask } = await openKeyedServer({ start: false });
  expect((await ask("/tasks")).status).toBe(200);
  await key({ role: "viewer" });
  for (const route of await allRoutes()) {
    const { status, headers, body } = await ask(pathOf(route), { method: route.method });
    const name = `${route.method} ${route.path}`;
    if (OPEN_PATHS.includes(route.path)) {
      expect(status, name).toBe(200);
      continue;
    }
    expect([status, headers.get("www-authenticate")], name).toEqual([401, "Bearer"]);
    if (route.method !== "HEAD") expect(errorAnswer.parse(body).code).toBe("unauthorized");
  }
});

describe("each role may do what the table says and nothing else:", () => {
  test.each(ROLES)("%s", async (role) => {
    const { key, askWith, clock } = await openKeyedServer({ start: false });
    const agents = role === "agent" ? { agentId: "scout" } : role === "worker" ? { agents: ["scout"] } : {};
    const own = await key({ role, ...agents });
    for (const route of await allRoutes()) {
      // Streams have no end to wait for.
      if (/events|stream/.test(route.path) && route.method === "GET") continue;
      // The rate limit must not be what refuses them.
      await clock.advance(1_000);
      const permission = route.access as Permission;
      const { status, body } = await askWith(own, pathOf(route), { method: route.method });
      const name = `${route.method} ${route.path}`;
      const isRefused = status === 403 && /^the role/.test(body.error ?? "");
      const isHeadRefused = route.method === "HEAD" && status === 403;
      const allowed = (PERMISSIONS[permission] as readonly Role[]).includes(role);
      expect(isRefused || isHeadRefused, name).toBe(!allowed);
    }
  });
});

describe("a key is refused", () => {
  test.each([
    ["that is missing", undefined, "an API key is missing"],
    ["that is not sent as one", "Basic cm90YTpyb3Rh", "`Authorization` must be `Bearer` and an API key"],
    ["that is empty", "Bearer ", "`Authorization` must be `Bearer` and an API key"],
    ["of a form that no key has", "Bearer hello", "this API key is not known"],
    ["that was never created", `Bearer rota_${"A".repeat(43)}`, "this API key is not known"],
  ])("%s", async (_what, authorization, sentence) => {
    const { key, ask } = await openKeyedServer({ start: false });
    await key({});
    const headers: Record<string, string> = authorization === undefined ? {} : { authorization };
    const { status, body } = await ask("/tasks", { headers });
    expect([status, errorAnswer.parse(body).code]).toEqual([401, "unauthorized"]);
    expect(body.error).toContain(sentence);
  });

  test("that differs in its last character or in case", async () => {
    const { key, askWith } = await openKeyedServer({ start: false });
    const right = await key({});
    expect((await askWith(right, "/tasks")).status).toBe(200);
    const last = right.endsWith("A") ? "E" : "A";
    for (const wrong of [right.slice(0, -1) + last, `rota_${right.slice(5).toUpperCase()}`, `${right}A`]) {
      expect((await askWith(wrong, "/tasks")).status).toBe(401);
    }
  });

  test("from the moment on that it expires", async () => {
    const { key, askWith, clock } = await openKeyedServer({ start: false });
    const expiresAt = new Date(clock.now() + 1_000).toISOString();
    const short = await key({ expiresAt });
    await clock.advance(999);
    expect((await askWith(short, "/tasks")).status).toBe(200);
    await clock.advance(1);
    expect((await askWith(short, "/tasks")).status).toBe(401);
  });

  test("at once when it is deleted in this process", async () => {
    const { rota, key, askWith } = await openKeyedServer({ start: false });
    await key({ role: "admin" });
    const { id, key: lost } = await rota.keys.create({ role: "viewer", name: "lost" });
    expect((await askWith(lost, "/tasks")).status).toBe(200);
    await rota.keys.delete(id);
    expect((await askWith(lost, "/tasks")).status).toBe(401);
  });
});

test("a scheme in any case and spaces around the key are fine", async () => {
  const { key, ask } = await openKeyedServer({ start: false });
  const own = await key({});
  for (const authorization of [`bearer ${own}`, `BEARER   ${own}  `]) {
    expect((await ask("/tasks", { headers: { authorization } })).status).toBe(200);
  }
});

test("with keys, requests may name any host; web pages without a key read nothing", async () => {
  const { key, askWith, ask } = await openKeyedServer({ start: false });
  const own = await key({});
  const { status, headers } = await askWith(own, "/tasks", { headers: { host: "rota.example.com" } });
  expect([status, headers.get("access-control-allow-origin")]).toEqual([200, null]);
  const preflight = { origin: "https://evil.example", "access-control-request-method": "POST" };
  const refused = await ask("/tasks", { method: "OPTIONS", headers: preflight });
  expect([refused.status, refused.headers.get("access-control-allow-origin")]).toEqual([401, null]);
});

test("after the last key is deleted, a local server works without keys again", async () => {
  const { rota, ask } = await openTestServer({ start: false });
  const { id } = await rota.keys.create({ role: "admin", name: "first" });
  expect((await ask("/tasks")).status).toBe(401);
  await rota.keys.delete(id);
  expect((await ask("/tasks")).status).toBe(200);
});

test("a server that other machines can reach never works without a key", async () => {
  const { rota, log } = await openTestRota();
  const app = createServer({ rota, log, isLocal: false });
  onTestFinished(() => app.close());
  const url = await app.listen({ host: "127.0.0.1", port: 0 });
  const { status, body } = await ask(`${url}/tasks`);
  expect([status, body.code]).toEqual([401, "unauthorized"]);
  expect((await ask(`${url}/health`)).status).toBe(200);
});

test("only a caller with a key learns that a route does not exist", async () => {
  const { key, askWith, ask } = await openKeyedServer({ start: false });
  const own = await key({ role: "agent", agentId: "scout" });
  expect((await ask("/nowhere")).status).toBe(401);
  expect((await askWith(own, "/nowhere")).status).toBe(404);
  expect((await askWith(own, "/tasks", { method: "PUT" })).status).toBe(405);
});

test("while the storage is unavailable, requests with a key wait, and health checks work", async () => {
  let isAway = false;
  const { key, askWith, ask } = await openKeyedServer({
    start: false,
    meddler: {
      before: ({ operation }) => {
        if (isAway && (operation.startsWith("keys.") || operation === "check")) throw away();
      },
    },
  });
  const own = await key({});
  isAway = true;
  const { status, headers, body } = await askWith(own, "/tasks");
  expect([status, body.code, headers.get("retry-after")]).toEqual([503, "storage_unavailable", "5"]);
  expect((await ask("/health")).body).toMatchObject({ status: "ok", storage: "unavailable" });
});

describe("requests of one key", () => {
  test("are limited by the rate, independently of other keys", async () => {
    const { key, askWith, clock } = await openKeyedServer({ start: false });
    const [busy, calm] = [await key({}), await key({})];
    const statuses = async (count: number) => {
      const answers = await Promise.all(
        Array.from({ length: count }, () => askWith(busy, "/openapi.json?x=1")),
      );
      return answers.map(({ status }) => status);
    };
    // A wrong parameter makes the request cheap; its result does not matter.
    expect(new Set(await statuses(200))).toEqual(new Set([400]));
    const { status, headers, body } = await askWith(busy, "/tasks");
    expect([status, errorAnswer.parse(body).code, headers.get("retry-after")]).toEqual([
      429,
      "rate_limited",
      "1",
    ]);
    expect((await askWith(calm, "/tasks")).status).toBe(200);
    await clock.advance(100);
    const later = await statuses(11);
    expect(later.filter((each) => each === 400)).toHaveLength(10);
    expect(later.filter((each) => each === 429)).toHaveLength(1);
  });
});
