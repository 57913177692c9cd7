import type { Socket } from "node:net";
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { expect, test } from "vitest";
import { fetchWithLimits } from "../../test/support/fetch-with-limits.ts";
import { serve } from "../../test/support/http-server.ts";
import { nowhere } from "../../test/support/pinchtab.ts";
import { head, serveRaw } from "../../test/support/raw-server.ts";
import { Latch } from "../testing/signals.ts";
import type { LimitedRequest, LimitedResponse } from "./read-answer.ts";

const LIMIT = 1_000;

function fetch(url: string, overrides: Partial<LimitedRequest> = {}): Promise<LimitedResponse> {
  const signal = new AbortController().signal;
  return fetchWithLimits(url, {
    method: "POST",
    body: "{}",
    signal,
    bodyBytesMax: LIMIT,
    now: 0,
    ...overrides,
  });
}

/** One response, byte by byte, and then the end of the connection. */
function once(bytes: string | Buffer): (socket: Socket) => void {
  return (socket) => socket.end(bytes);
}

test.each<[string, (socket: Socket) => void, RegExp]>([
  ["hangs up", (socket) => socket.end(), /: it closed the connection$/],
  ["resets the connection", (socket) => socket.resetAndDestroy(), /: read ECONNRESET$/],
  ["speaks something else", once("SSH-2.0-OpenSSH_9.9\r\n\r\n"), /: Response does not match the HTTP/],
  [
    "contradicts itself on the length",
    once(`${head("content-length: 3", "content-length: 5")}abcde`),
    /: Response /,
  ],
  ["says a length that is none", once(`${head("content-length: -3")}abc`), /: Response does not match/],
  ["sends a head without end", once(head(`x: ${"y".repeat(100_000)}`)), /: Headers Overflow Error$/],
  [
    "packs again and again",
    once(`${head(`content-encoding: ${"gzip, ".repeat(50)}gzip`)}x`),
    /: too many content-encod/,
  ],
  [
    "switches protocols",
    once("HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n"),
    /: bad upgrade$/,
  ],
])("a server that %s has not responded", async (_what, answer, reason) => {
  const url = await serveRaw(answer);
  const failed = fetch(url);
  await expect(failed).rejects.toMatchObject({ name: "CallError", neverSent: false });
  await expect(failed).rejects.toThrow(reason);
  await expect(failed).rejects.toThrow(`no answer from ${url}: `);
});

test.each<[string, string | Buffer, string]>([
  ["is shorter than it said", `${head("content-length: 100")}abc`, "it closed the connection"],
  [
    "ends before its last chunk",
    `${head("transfer-encoding: chunked")}3\r\nabc\r\n`,
    "it closed the connection",
  ],
  [
    "has broken chunks",
    `${head("transfer-encoding: chunked")}3\r\nabc\r\nzz\r\n`,
    "Invalid character in chunk size",
  ],
  [
    "is not packed as it said",
    `${head("content-encoding: gzip", "content-length: 5")}hello`,
    "incorrect header check",
  ],
])("a response that %s broke off", async (_what, bytes, reason) => {
  const url = await serveRaw(once(bytes));
  const failed = fetch(url);
  await expect(failed).rejects.toMatchObject({ name: "CallError", neverSent: false });
  await expect(failed).rejects.toThrow(`the answer of ${url} broke off: `);
  await expect(failed).rejects.toThrow(reason);
});

test("a response whose connection is reset in the middle is none", async () => {
  const bytes = `${head("content-length: 100")}abc`;
  const url = await serveRaw((socket) => socket.write(bytes, () => socket.resetAndDestroy()));
  // A reset overtakes bytes that were sent before it and are still on their way.
  await expect(fetch(url)).rejects.toThrow(
    /^(?:the answer of .* broke off|no answer from .*): read ECONNRESET$/,
  );
});

test.each<[string, string | Buffer, Partial<LimitedResponse>]>([
  ["that is longer than it said", `${head("content-length: 3")}abcdef`, { body: "abc" }],
  ["without a length", `${head()}until the end`, { body: "until the end" }],
  [
    "after a hint",
    `HTTP/1.1 103 Early Hints\r\n\r\n${head("content-length: 2")}ok`,
    { status: 200, body: "ok" },
  ],
  ["of an unknown status", "HTTP/1.1 999 Odd\r\ncontent-length: 2\r\n\r\nok", { status: 999, body: "ok" }],
  ["of no content", "HTTP/1.1 204 No Content\r\n\r\n", { status: 204, body: "" }],
])("a response %s is accepted", async (_what, bytes, expected) => {
  expect(await fetch(await serveRaw(once(bytes)))).toMatchObject({ truncated: false, ...expected });
});

test("bytes that are no text are replaced, and a byte order mark is left out", async () => {
  const body = Buffer.from([0xef, 0xbb, 0xbf, 0x61, 0xff, 0xc3, 0x28, 0x62]);
  const url = await serve((_request, response) => response.end(body));
  expect(await fetch(url)).toMatchObject({ body: "a\u{fffd}\u{fffd}(b", truncated: false });
});

test("no character is cut through", async () => {
  const url = await serve((_request, response) => response.end(`x${"é".repeat(LIMIT)}`));
  expect(await fetch(url)).toMatchObject({ body: `x${"é".repeat(499)}`, truncated: true });
});

const large = Buffer.alloc(20_000_000, "x");

test.each<[string, () => Buffer]>([
  ["gzip", () => gzipSync(large)],
  ["deflate", () => deflateSync(large)],
  ["br", () => brotliCompressSync(large)],
  ["zstd", () => zstdCompressSync(large)],
  ["gzip, gzip", () => gzipSync(gzipSync(large))],
])(
  "a response compressed with %s is decompressed only as far as its reader wants",
  async (encoding, pack) => {
    const packed = pack();
    const url = await serve((_request, response) =>
      response.writeHead(200, { "content-encoding": encoding }).end(packed),
    );
    expect(await fetch(url)).toMatchObject({ body: "x".repeat(LIMIT), truncated: true });
  },
);

test.each<[string, string]>([
  ["before it is answered", ""],
  ["in the middle of the head", "HTTP/1.1 200 OK\r\ncontent-"],
  ["in the middle of the answer", `${head("content-length: 100")}abc`],
  ["in the middle of something packed", `${head("content-encoding: gzip", "content-length: 100")}`],
])("a call that hangs %s ends with its signal, and its connection too", async (_when, bytes) => {
  const hanging = new Latch();
  const closed = new Latch();
  const url = await serveRaw((socket) => {
    socket.on("close", () => closed.open());
    socket.write(bytes, () => hanging.open());
  });
  const stop = new AbortController();
  const failed = expect(fetch(url, { signal: stop.signal })).rejects.toThrow("stopped");
  await hanging.opened;
  stop.abort(new Error("stopped"));
  await failed;
  await closed.opened;
});

test("a port that must not be called is named as such", async () => {
  await expect(fetch("http://127.0.0.1:6667/")).rejects.toMatchObject({
    message:
      "cannot reach http://127.0.0.1:6667: the port is one that HTTP clients refuse to call, let it listen on another",
    neverSent: true,
  });
});

test("when no server listens, the request was never sent", async () => {
  const url = await nowhere();
  await expect(fetch(url)).rejects.toMatchObject({ name: "CallError", neverSent: true });
  await expect(fetch("http://unknown.invalid/")).rejects.toMatchObject({
    message: expect.stringMatching(/^cannot reach http:\/\/unknown\.invalid: getaddrinfo /),
    neverSent: true,
  });
});
