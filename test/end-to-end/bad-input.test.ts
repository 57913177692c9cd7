import { request } from "node:http";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { errorAnswer } from "../../src/api/error.ts";
import { taskInput } from "../../src/api/tasks.ts";
import type { Rota } from "../../src/interface/rota.ts";
import { silentLog } from "../../src/model/log.ts";
import { createRota } from "../../src/rota.ts";
import { listen, type RunningServer } from "../../src/server/listen.ts";
import { createTestDatabase, type TestDatabase } from "../postgres/database.ts";
import { sendRaw } from "../support/http.ts";

/** Whatever somebody sends: it is answered in the one shape, never with a 5xx, and what is refused leaves nothing. */
describe.each(["SQLite", "PostgreSQL"])("on %s", (name) => {
  let database: TestDatabase | undefined;
  let rota: Rota;
  let server: RunningServer;
  const faults: unknown[] = [];

  beforeAll(async () => {
    database = name === "PostgreSQL" ? await createTestDatabase() : undefined;
    const log = {
      ...silentLog,
      error: (fields: unknown, message: string) => faults.push({ message, fields }),
    };
    const roomy = { maxQueueSize: 1_000_000, maxPerAgent: 1_000_000 };
    rota = await createRota({ storage: database?.url ?? "sqlite::memory:", scheduler: roomy, log });
    server = await listen({ rota, log, host: "127.0.0.1", port: 0 });
    // What is accepted is also run, so that a task that could be stored but not carried out shows itself.
    await rota.start();
  });
  afterAll(async () => {
    await server?.close();
    await rota?.stop({ graceMs: 0 });
    await database?.drop();
  });

  async function stored(): Promise<number> {
    return (await rota.tasks.counts()).total;
  }

  test("a submit of anything is accepted and stored, or refused and not", async () => {
    await fc.assert(
      fc.asyncProperty(
        body,
        fc.constantFrom("/tasks", "/v1/tasks"),
        contentType,
        async (bytes, path, type) => {
          const before = await stored();
          const answer = await send(server.url, {
            method: "POST",
            path,
            headers: { "content-type": type },
            body: bytes,
          });
          if (answer.status === 202) {
            expect(await stored()).toBe(before + 1);
            // What was taken can be shown, alone and in a list.
            const { taskId } = JSON.parse(answer.body);
            for (const shown of [`/tasks/${taskId}`, "/tasks?limit=1"]) {
              expect((await send(server.url, { method: "GET", path: shown })).status).toBe(200);
            }
          } else {
            expectRefusal(answer);
            expect(await stored()).toBe(before);
          }
        },
      ),
      { numRuns: 400 },
    );
    expect(faults).toEqual([]);
  });

  test("any method, path, query and header is answered in the one shape and changes nothing", async () => {
    const before = await stored();
    await fc.assert(
      fc.asyncProperty(method, path, header, async (verb, target, extra) => {
        const answer = await send(server.url, {
          method: verb,
          path: target,
          headers: extra,
          body: Buffer.alloc(0),
        });
        if (answer.status !== 200) expectRefusal(answer, verb);
      }),
      { numRuns: 400 },
    );
    expect(await stored()).toBe(before);
    expect(faults).toEqual([]);
  });

  test("any bytes on the bare connection leave it running", async () => {
    const before = await stored();
    await fc.assert(
      fc.asyncProperty(rawBytes, async (bytes) => {
        const answer = await sendRaw(server.url, bytes);
        // Nothing at all is answered to nothing at all.
        if (bytes.length > 0) expect(answer).toMatch(/^$|^HTTP\/1\.1 [234]\d\d /);
      }),
      { numRuns: 200 },
    );
    expect((await send(server.url, { method: "GET", path: "/health" })).status).toBe(200);
    expect(await stored()).toBe(before);
    expect(faults).toEqual([]);
  });
});

function expectRefusal({ status, body }: SentAnswer, verb = "POST"): void {
  expect(status).toBeGreaterThanOrEqual(400);
  expect(status).toBeLessThan(500);
  if (verb === "HEAD") expect(body).toBe("");
  else expect(errorAnswer.parse(JSON.parse(body)).error).not.toBe("");
}

// ------------------------------------------------------------------------------------------------- what is sent

const nasty = fc.oneof(
  fc.constantFrom<unknown>(
    "",
    " ",
    "\u0000",
    "\ud800",
    "a\u0000b\ud83d",
    "🦉".repeat(300),
    "x".repeat(70_000),
    -1,
    -0,
    1.5,
    1e308,
    2 ** 53,
    Number.MAX_SAFE_INTEGER,
    true,
    null,
    [],
    {},
    [[]],
    "2026-02-30T00:00:00Z",
    "9999-12-31T23:59:59Z",
    "0000-01-01T00:00:00Z",
    "2030-01-31T09:00:00Z",
    "constructor",
    "__proto__",
    "'; drop table task; --",
    "../../etc/passwd",
    "%s%n$1?1",
  ),
  fc.jsonValue(),
  fc.string({ unit: "binary" }),
  fc.integer({ min: 1, max: 600 }).map((depth) => JSON.parse("[".repeat(depth) + "]".repeat(depth))),
);

const fieldName = fc.oneof(
  { weight: 8, arbitrary: fc.constantFrom(...Object.keys(taskInput.shape)) },
  {
    weight: 1,
    arbitrary: fc.constantFrom("__proto__", "constructor", "toString", "sessionKey", "dependsOn", ""),
  },
  { weight: 1, arbitrary: fc.string() },
);

/** Objects that look like a task, with wrong values in right fields and right values in wrong ones. */
const taskLike = fc
  .array(fc.tuple(fieldName, nasty), { maxLength: 6 })
  .map(
    (entries) =>
      `{${entries.map(([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`).join(",")}}`,
  );

/** Tasks with one wrong thing in them, so that the check of every field is reached. */
const nearlyTask = fc
  .tuple(
    fc.constantFrom<object>(
      { payload: 1 },
      { message: "m" },
      { instruction: "i" },
      { agentId: "a", action: "click" },
    ),
    fieldName,
    nasty,
  )
  .map(([base, key, value]) => JSON.stringify({ ...base, [key]: value }));

const nearlyRetryPolicy = fc
  .tuple(
    fc.constantFrom("maxRetries", "backoffMs", "backoffMultiplier", "maxBackoffMs", "jitter", "x"),
    nasty,
  )
  .map(([key, value]) => JSON.stringify({ payload: 1, retryPolicy: { [key]: value } }));

/** Tasks that are right, with anything in the places where anything may stand. */
const freeForm = fc
  .tuple(fc.constantFrom("payload", "metadata", "params", "llmConfig"), nasty)
  .map(([place, value]) => {
    const inner = { [JSON.stringify(value).slice(0, 100)]: value };
    if (place === "payload") return JSON.stringify({ payload: value });
    if (place === "metadata") return JSON.stringify({ message: "m", metadata: inner });
    if (place === "params") return JSON.stringify({ agentId: "index", action: "click", params: inner });
    return JSON.stringify({ instruction: "i", llmConfig: inner });
  });

const json = fc.oneof(taskLike, nearlyTask, nearlyRetryPolicy, freeForm, fc.json());

const body = fc.oneof(
  { weight: 6, arbitrary: json.map((text) => Buffer.from(text)) },
  // Cut anywhere, also inside a character.
  {
    weight: 1,
    arbitrary: fc
      .tuple(json, fc.nat())
      .map(([text, at]) => Buffer.from(text).subarray(0, at % (text.length + 1))),
  },
  { weight: 1, arbitrary: fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)) },
  {
    weight: 1,
    arbitrary: fc
      .constantFrom(`"${"x".repeat(1_048_575)}"`, `{"payload":"${"\\u0000".repeat(150_000)}"}`)
      .map((text) => Buffer.from(text)),
  },
  { weight: 1, arbitrary: fc.constant(Buffer.from(`{"payload":${"[".repeat(200_000)}`)) },
);

const contentType = fc.oneof(
  { weight: 8, arbitrary: fc.constant("application/json") },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      "application/json; charset=utf-8",
      "application/json; charset=utf-16",
      "text/plain",
      "application/x-www-form-urlencoded",
      "multipart/form-data",
      "application/jsonx",
      "/",
      "a/b/c",
    ),
  },
);

const method = fc.constantFrom(
  "GET",
  "HEAD",
  "POST",
  "PUT",
  "PATCH",
  "DELETE",
  "OPTIONS",
  "TRACE",
  "PROPFIND",
  "QUERY",
);

const segment = fc.oneof(
  fc.constantFrom(
    "tasks",
    "v1",
    "health",
    "ready",
    "cancel",
    "tsk_01",
    "..",
    ".",
    "",
    "%00",
    "%2f",
    "%ff",
    "%zz",
    "a%20b",
    "*",
    ":id",
  ),
  fc.string({ maxLength: 10 }).map(safely),
  fc.string({ unit: "binary", maxLength: 5 }).map((text) => encodeURIComponent(text.toWellFormed())),
);
const parameter = fc
  .tuple(
    fc.oneof(
      fc.constantFrom("agentId", "state", "priority", "lane", "limit", "cursor", "__proto__"),
      segment,
    ),
    segment,
  )
  .map((pair) => pair.join("="));
const knownPath = fc
  .tuple(
    fc.constantFrom("", "/v1"),
    fc.constantFrom("/tasks", "/tasks/:id", "/tasks/:id/cancel", "/health", "/ready"),
    segment,
  )
  .map(([prefix, pattern, id]) => prefix + pattern.replace(":id", () => id));
const path = fc
  .tuple(
    fc.oneof(
      knownPath,
      fc.array(segment, { maxLength: 5 }).map((segments) => `/${segments.join("/")}`),
    ),
    fc.array(parameter, { maxLength: 3 }),
  )
  .map(([target, query]) => (query.length > 0 ? `${target}?${query.join("&")}` : target));

const header = fc.dictionary(
  fc.constantFrom(
    "accept",
    "accept-encoding",
    "x-request-id",
    "content-type",
    "authorization",
    "idempotency-key",
    "range",
    "if-match",
  ),
  fc.string({ maxLength: 20 }).map(safely),
  { maxKeys: 2 },
);

const rawBytes = fc.oneof(
  fc.uint8Array({ minLength: 1, maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
  fc
    .tuple(
      method,
      path,
      fc.constantFrom("HTTP/1.1", "HTTP/1.0", "HTTP/0.9", "HTTP/2.0", ""),
      fc.string({ maxLength: 40 }),
    )
    // Without a host, so that nothing can be stored by chance.
    .map(([verb, target, version, rest]) => Buffer.from(`${verb} ${target} ${version}\r\n${rest}\r\n\r\n`)),
  fc
    .constantFrom("\r\n\r\n", "GET", "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n")
    .map((text) => Buffer.from(text)),
);

/** Only what may stand in a line of a request. */
function safely(text: string): string {
  return text.replace(/[^!-~]/g, "x").replace(/[#\s]/g, "");
}

interface SentAnswer {
  readonly status: number;
  readonly body: string;
}

/** `fetch` refuses to send much of this. */
function send(
  url: string,
  {
    method: verb,
    path: target,
    headers = {},
    body: bytes,
  }: {
    method: string;
    path: string;
    headers?: Record<string, string>;
    body?: Buffer;
  },
): Promise<SentAnswer> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const sent = request(
      {
        host: hostname,
        port,
        method: verb,
        path: target,
        headers: { ...headers, ...(bytes === undefined ? {} : { "content-length": bytes.byteLength }) },
      },
      (response) => {
        let text = "";
        response.setEncoding("utf8");
        response.on("data", (chunk) => {
          text += chunk;
        });
        response.on("end", () => resolve({ status: response.statusCode ?? 0, body: text }));
        response.on("error", reject);
      },
    );
    sent.on("error", reject);
    sent.end(bytes);
  });
}
