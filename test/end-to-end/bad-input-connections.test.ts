import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { errorAnswer } from "../../src/api/error.ts";
import { sendRaw } from "../support/http.ts";
import { headers, queries, segments } from "./bad-input/garbage.ts";
import { type GarbageServer, startGarbageServer } from "./bad-input/server.ts";

/** Bytes that are no request, or half of one, get a response if possible, and never end or change the server. */
let server: GarbageServer;
beforeAll(async () => {
  server = await startGarbageServer("SQLite", { withKey: false });
});
afterAll(() => server?.stop());

async function expectUnharmed(sending: () => Promise<void>): Promise<void> {
  const before = await server.stored();
  await sending();
  expect((await server.send({ method: "GET", path: "/health" })).status).toBe(200);
  expect(await server.stored()).toEqual(before);
  expect(server.faults).toEqual([]);
}

/** Nothing, or responses of which none is a 5xx. Refusals have the shape of an error. */
function expectAnswers(raw: string): void {
  if (raw === "") return;
  expect(raw).toMatch(/^HTTP\/1\.1 [234]\d\d /);
  expect(raw).not.toMatch(/^HTTP\/1\.1 5\d\d /m);
  const [head = "", body = ""] = raw.split("\r\n\r\n");
  if (/^HTTP\/1\.1 4/.test(head) && body !== "" && raw.split("HTTP/1.1 ").length === 2) {
    expect(errorAnswer.parse(JSON.parse(body)).error).not.toBe("");
  }
}

test("any bytes leave the server as it was", () =>
  expectUnharmed(() =>
    fc.assert(
      fc.asyncProperty(fc.uint8Array({ minLength: 1, maxLength: 300 }), async (bytes) => {
        expectAnswers(await sendRaw(server.url, Buffer.from(bytes)));
      }),
      { numRuns: 150 },
    ),
  ));

test("a request to any route that is cut off anywhere leaves the server as it was", () =>
  expectUnharmed(() =>
    fc.assert(
      fc.asyncProperty(wholeRequests(), fc.nat(), async (request, at) => {
        const bytes = Buffer.from(request);
        // All but the whole of it: that one would be taken.
        expectAnswers(await sendRaw(server.url, bytes.subarray(0, at % bytes.length)));
      }),
      { numRuns: 300 },
    ),
  ));

/** A right submission, or a request that only reads, to each route in turn. */
function wholeRequests(): fc.Arbitrary<string> {
  return fc.constantFrom(...server.routes).chain(({ method, path, examples }) =>
    fc.tuple(segments, queries([]), headers).map(([id, query, extra]) => {
      const body = examples.length === 0 ? "" : JSON.stringify(examples[0]);
      const lines = Object.entries(extra).map(([name, value]) => `${name}: ${value}\r\n`);
      const length =
        body === "" ? "" : `content-type: application/json\r\ncontent-length: ${body.length}\r\n`;
      const target = path.replaceAll(/:\w+/g, () => id) + query;
      return `${method} ${target} HTTP/1.1\r\nhost: localhost\r\n${lines.join("")}${length}\r\n${body}`;
    }),
  );
}

const POST = "POST /tasks HTTP/1.1\r\nHost: localhost\r\n";
const JSON_TYPE = "Content-Type: application/json\r\n";
const BODY = '{"payload":1}';
const CHUNKED = `${POST}${JSON_TYPE}Transfer-Encoding: chunked\r\n\r\n`;

test.each([
  ["lengths that differ", `${POST}${JSON_TYPE}Content-Length: 13\r\nContent-Length: 5\r\n\r\n${BODY}`],
  [
    "a length and chunks",
    `${POST}${JSON_TYPE}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\nd\r\n${BODY}\r\n0\r\n\r\n`,
  ],
  ["a length below nothing", `${POST}${JSON_TYPE}Content-Length: -1\r\n\r\n${BODY}`],
  ["a length beyond all numbers", `${POST}${JSON_TYPE}Content-Length: 99999999999999999999\r\n\r\n${BODY}`],
  ["a length that is none", `${POST}${JSON_TYPE}Content-Length: 0x0d\r\n\r\n${BODY}`],
  ["a length of more than may come", `${POST}${JSON_TYPE}Content-Length: 2000000\r\n\r\n${BODY}`],
  ["chunks of an unknown size", `${CHUNKED}zz\r\n${BODY}\r\n0\r\n\r\n`],
  ["chunks larger than they say", `${CHUNKED}5\r\n${BODY}\r\n0\r\n\r\n`],
  ["chunks of endless size", `${CHUNKED}ffffffffffffffff\r\n${BODY}`],
  ["chunks without an end", `${CHUNKED}d\r\n${BODY}\r\n`],
  ["an unknown encoding", `${POST}${JSON_TYPE}Transfer-Encoding: gzip\r\n\r\n${BODY}`],
  [
    "two hosts",
    `POST /tasks HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n${JSON_TYPE}Content-Length: 13\r\n\r\n${BODY}`,
  ],
  [
    "two origins",
    `${POST}Origin: http://localhost\r\nOrigin: http://evil.example\r\n${JSON_TYPE}Content-Length: 13\r\n\r\n${BODY}`,
  ],
  ["two content types", `${POST}Content-Type: text/plain\r\n${JSON_TYPE}Content-Length: 13\r\n\r\n${BODY}`],
  ["a header without a name", `${POST}: x\r\n\r\n`],
  ["a header without an end", `${POST}X: ${"x".repeat(100_000)}`],
  ["too many headers", `${POST}${"X: y\r\n".repeat(20_000)}\r\n`],
  ["a header that goes on", `${POST}X: a\r\n b\r\n\r\n`],
  ["a header with a NUL", `${POST}X: a\0b\r\n\r\n`],
  ["lines that end with half an end", "GET /health HTTP/1.1\nHost: localhost\n\n"],
  ["a line alone", "GET /tasks\r\n\r\n"],
  ["another protocol", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
  ["a version that there is not", "GET /health HTTP/9.9\r\nHost: localhost\r\n\r\n"],
  ["a way through", "CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n"],
  ["a whole URL for a path", "GET http://evil.example/tasks HTTP/1.1\r\nHost: evil.example\r\n\r\n"],
  ["an asterisk for a path", "OPTIONS * HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"],
  ["a greeting of TLS", Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03])],
  ["garbage behind a request", "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n\0\x01garbage\r\n\r\n"],
])("%s leaves the server as it was", (_what, bytes) =>
  expectUnharmed(async () => expectAnswers(await sendRaw(server.url, bytes))),
);

test("a request to upgrade to another protocol gets a response in HTTP", async () => {
  const upgrade = "Connection: Upgrade, close\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n";
  const answer = await sendRaw(server.url, `GET /health HTTP/1.1\r\nHost: localhost\r\n${upgrade}\r\n`);
  expect(answer).toMatch(/^HTTP\/1\.1 200 /);
});
