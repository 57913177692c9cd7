import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { fetchWithLimits } from "../../test/support/fetch-with-limits.ts";
import { serve } from "../../test/support/http-server.ts";
import { Latch } from "../testing/signals.ts";
import type { LimitedRequest } from "./read-answer.ts";

const NOW = Date.parse("2026-03-08T12:00:00Z");

function request(overrides: Partial<LimitedRequest> = {}): LimitedRequest {
  return { method: "GET", signal: new AbortController().signal, bodyBytesMax: 100, now: NOW, ...overrides };
}

test("returns status, type and body", async () => {
  const url = await serve((_request, response) => {
    response.writeHead(201, { "content-type": "text/plain" }).end("hello");
  });
  expect(await fetchWithLimits(url, request())).toEqual({
    status: 201,
    contentType: "text/plain",
    body: "hello",
    truncated: false,
    retryAfterMs: undefined,
    usageHeader: null,
  });
});

test("reads no more than its limit, however much is sent", async () => {
  const closed = new Latch();
  const url = await serve((_request, response) => {
    response.on("close", () => closed.open());
    const more = () => {
      while (response.write("x".repeat(1_000)));
      response.once("drain", more);
    };
    more();
  });
  const answer = await fetchWithLimits(url, request());
  expect(answer).toMatchObject({ body: "x".repeat(100), truncated: true });
  await closed.opened;
});

test("a body of exactly the limit is whole", async () => {
  const url = await serve((_request, response) => response.end("x".repeat(100)));
  expect(await fetchWithLimits(url, request())).toMatchObject({ body: "x".repeat(100), truncated: false });
});

test("does not follow redirects", async () => {
  const url = await serve((_request, response) => response.writeHead(302, { location: "/elsewhere" }).end());
  expect(await fetchWithLimits(url, request())).toMatchObject({ status: 302, body: "" });
});

test("passes on the wait it is asked for", async () => {
  const url = await serve((_request, response) => {
    response.writeHead(503, { "retry-after": "Sun, 08 Mar 2026 12:00:09 GMT" }).end();
  });
  expect(await fetchWithLimits(url, request())).toMatchObject({ status: 503, retryAfterMs: 9_000 });
});

test("drops the request when its signal fires, before and during the response", async () => {
  for (const begin of [false, true]) {
    const arrived = new Latch();
    const dropped = new Latch();
    const url = await serve((_request, response) => {
      response.on("close", () => dropped.open());
      if (begin) response.write("some");
      arrived.open();
    });
    const stop = new AbortController();
    const answer = expect(fetchWithLimits(url, request({ signal: stop.signal }))).rejects.toBe("stopped");
    await arrived.opened;
    stop.abort("stopped");
    await answer;
    await dropped.opened;
  }
});

test("uses its connections again", async () => {
  const ports = new Set<number | undefined>();
  const url = await serve((incoming, response) => {
    ports.add(incoming.socket.remotePort);
    response.end("ok");
  });
  for (let i = 0; i < 10; i++) await fetchWithLimits(url, request());
  // undici opens a second connection while the first is not idle yet.
  expect(ports.size).toBeLessThanOrEqual(2);
});

test("says whom it could not reach and why, but not what it wanted there", async () => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  await expect(fetchWithLimits(`http://127.0.0.1:${port}/path?key=secret`, request())).rejects.toThrow(
    `cannot reach http://127.0.0.1:${port}: connect ECONNREFUSED 127.0.0.1:${port}`,
  );
});
