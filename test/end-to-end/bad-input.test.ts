import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { errorAnswer } from "../../src/api/error.ts";
import { bodies, contentTypes, headers, queries, segments } from "./bad-input/garbage.ts";
import {
  type GarbageRoute,
  type GarbageServer,
  type SentAnswer,
  startGarbageServer,
} from "./bad-input/server.ts";

/**
 * Whatever a client sends to any route: the response has the shape of an error, never a 5xx, and what is
 * refused leaves nothing. The routes and what they take come from the server itself, so that new ones are tried too.
 */
describe.each([
  ["SQLite", 1_200],
  ["PostgreSQL", 400],
] as const)("on %s", (storage, numRuns) => {
  let server: GarbageServer;
  beforeAll(async () => {
    server = await startGarbageServer(storage, { withKey: true });
  });
  afterAll(() => server?.stop());

  test("any body to any route is taken and stored, or refused and not", async () => {
    // Errors of /mcp are those of its protocol.
    const withBody = server.routes.filter(
      ({ method, path }) => !["GET", "HEAD"].includes(method) && path !== "/mcp",
    );
    await fc.assert(
      fc.asyncProperty(
        anyOf(withBody, (route) =>
          fc.tuple(paths(route, server.doneTask), contentTypes, bodies(route.examples)),
        ),
        async ([route, [path, type, body]]) => {
          const before = await server.stored();
          const answer = await server.send({
            method: route.method,
            path,
            headers: { "content-type": type },
            body,
          });
          if (answer.status < 300) {
            expectRight(route, body);
            await forgetAgents(server);
            return;
          }
          expectRefusal(answer);
          expect(await server.stored()).toEqual(before);
        },
      ),
      { numRuns },
    );
    expect(server.faults).toEqual([]);
    await expectReadable(server);
  });

  test("any path, query and header to any route that reads gets a response, and changes nothing", async () => {
    const reading = server.routes.filter(({ method }) => ["GET", "HEAD"].includes(method));
    const before = await server.stored();
    await fc.assert(
      fc.asyncProperty(
        anyOf(reading, (route) =>
          fc.tuple(paths(route, server.doneTask), queries(route.queryNames), headers),
        ),
        async ([{ method }, [path, query, extra]]) => {
          const answer = await server.send({ method, path: path + query, headers: extra });
          if (answer.status >= 300) expectRefusal(answer, method);
        },
      ),
      { numRuns },
    );
    expect(await server.stored()).toEqual(before);
    expect(server.faults).toEqual([]);
  });

  test("any method and path at all gets a response in the shape of an error", async () => {
    const before = await server.stored();
    const target = fc.array(segments, { maxLength: 5 }).map((parts) => `/${parts.join("/")}`);
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...METHODS), target, queries([]), async (method, path, query) => {
        const answer = await server.send({ method, path: path + query, headers: {}, body: Buffer.alloc(0) });
        if (answer.status >= 300) expectRefusal(answer, method);
      }),
      { numRuns: numRuns / 2 },
    );
    expect(await server.stored()).toEqual(before);
    expect(server.faults).toEqual([]);
  });

  test("every path refuses every method that it does not take, and says which it takes", async () => {
    const byPath = Map.groupBy(server.routes, ({ path }) => path);
    for (const [path, routes] of byPath) {
      const taken = routes.map(({ method }) => method);
      for (const method of METHODS.filter((each) => !taken.includes(each))) {
        const answer = await server.send({ method, path: path.replaceAll(/:\w+/g, "x") });
        expect([answer.status, answer.headers["allow"]], `${method} ${path}`).toEqual([
          405,
          taken.sort().join(", "),
        ]);
        expectRefusal(answer, method);
      }
    }
  });
});

const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "QUERY"];

/** One of the routes, and something made for it. */
function anyOf<T>(
  routes: readonly GarbageRoute[],
  make: (route: GarbageRoute) => fc.Arbitrary<T>,
): fc.Arbitrary<[GarbageRoute, T]> {
  const shown = (route: GarbageRoute) =>
    Object.assign({ ...route }, { [fc.toStringMethod]: () => `${route.method} ${route.path}` });
  return fc.oneof(...routes.map((route) => fc.tuple(fc.constant(shown(route)), make(route))));
}

/** The path of a route with anything in the place of an id. */
function paths({ path }: GarbageRoute, doneTask: string): fc.Arbitrary<string> {
  const id = fc.oneof(
    { weight: 3, arbitrary: segments },
    { weight: 1, arbitrary: fc.constantFrom(doneTask, "index", "1", "2") },
  );
  return id.map((each) => path.replaceAll(/:\w+/g, () => each));
}

function expectRefusal({ status, body }: SentAnswer, method = "POST"): void {
  expect(status).toBeGreaterThanOrEqual(400);
  expect(status, body).toBeLessThan(500);
  if (method === "HEAD") expect(body).toBe("");
  else expect(errorAnswer.parse(JSON.parse(body)).error).not.toBe("");
}

/** What was taken is what the schema of the route describes: the library checks more than that, never less. */
function expectRight({ body: schema }: GarbageRoute, body: Buffer): void {
  const text = body.toString().replace(/^\ufeff/, "");
  const value = text === "" ? undefined : JSON.parse(text);
  if (schema === undefined) expect([undefined, null, {}]).toContainEqual(value);
  else expect(() => schema.parse(value), text.slice(0, 500)).not.toThrow();
}

/** What was taken can be shown, alone and in a list. */
async function expectReadable({ send }: GarbageServer): Promise<void> {
  for (let cursor = ""; cursor !== "null"; ) {
    const page = await send({ method: "GET", path: `/tasks?limit=50${cursor && `&cursor=${cursor}`}` });
    expect(page.status).toBe(200);
    const { tasks, nextCursor } = JSON.parse(page.body);
    for (const { taskId } of tasks) {
      expect((await send({ method: "GET", path: `/tasks/${taskId}` })).status).toBe(200);
    }
    cursor = String(nextCursor);
  }
  for (const list of ["schedules", "runs"]) {
    const found = JSON.parse((await send({ method: "GET", path: `/v1/${list}` })).body);
    for (const { id } of found[list]) {
      const path = `/v1/${list}/${id}`;
      expect((await send({ method: "GET", path })).status, path).toBe(200);
    }
  }
  const { sessions } = JSON.parse((await send({ method: "GET", path: "/v1/sessions?limit=1000" })).body);
  for (const { key } of sessions) {
    const path = `/v1/sessions/${encodeURIComponent(key)}`;
    expect((await send({ method: "GET", path })).status, path).toBe(200);
  }
}

/** Deletes the stored agents: a later request with the same name must not be refused because of the name alone. */
async function forgetAgents({ rota, send }: GarbageServer): Promise<void> {
  for (const { id, source } of (await rota.agents.list()).agents) {
    if (source !== "stored") continue;
    const path = `/v1/agents/${encodeURIComponent(id)}`;
    expect((await send({ method: "GET", path })).status, path).toBe(200);
    await rota.agents.delete(id);
  }
}
