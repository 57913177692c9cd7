import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { connect, type Socket } from "node:net";
import { onTestFinished } from "vitest";
import type { LocalTenant } from "../../src/interface/rota.ts";
import type { Provenance } from "../../src/model/provenance.ts";
import { type ListenOptions, listen } from "../../src/server/listen.ts";
import { openTestRota, type TestRota, type TestRotaParams } from "./rota.ts";

const OF_HTTP: Provenance = { createdBy: { keyId: null, agentId: null, via: "http" }, within: null };

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  /** Parsed if it is JSON, else the text. */
  // biome-ignore lint/suspicious/noExplicitAny: a test knows what it asked for.
  readonly body: any;
}

/** One request; a body that is not a string is sent as JSON. */
export async function ask(url: string, init: RequestInit & { json?: unknown } = {}): Promise<Answer> {
  const { json, ...rest } = init;
  const response = await fetch(url, {
    ...rest,
    ...(json === undefined
      ? {}
      : {
          method: init.method ?? "POST",
          body: JSON.stringify(json),
          headers: { "content-type": "application/json", ...init.headers },
        }),
  });
  const text = await response.text();
  // The response to a HEAD has the headers alone.
  const isJson = text !== "" && response.headers.get("content-type")?.startsWith("application/json");
  return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text };
}

export interface TestServer extends TestRota {
  readonly url: string;
  /** What the server calls for callers without a key. */
  readonly served: LocalTenant;
  /** Before the test ends. */
  close(): Promise<void>;
  ask(path: string, init?: Parameters<typeof ask>[1]): Promise<Answer>;
}

export interface TestServerParams extends TestRotaParams {
  readonly start?: boolean;
  readonly server?: Partial<ListenOptions>;
}

/** A server in this process on a free port, on a Rota whose time stands still. Both end with the test. */
export async function openTestServer(params: TestServerParams = {}): Promise<TestServer> {
  const parts = await openTestRota(params);
  const { rota, log, clock } = parts;
  const server = await listen({ rota, log, clock, host: "127.0.0.1", port: 0, ...params.server });
  const closeUnused = watchUnused(Number(new URL(server.url).port));
  onTestFinished(async () => {
    const closed = server.close();
    closeUnused();
    await closed;
  });
  if (params.start !== false) await rota.start();
  return {
    ...parts,
    url: server.url,
    served: rota.tenant("default", { provenance: OF_HTTP }),
    close: () => server.close(),
    ask: (path, init) => ask(server.url + path, init),
  };
}

/**
 * After a request that is given up `fetch` opens a connection for the next one, on which the server waits for two seconds
 * before it closes. Returns what closes those on which nothing has come.
 */
function watchUnused(port: number): () => void {
  const sockets = new Set<Socket>();
  const note = (message: unknown) => {
    const { socket } = message as { socket: Socket };
    if (socket.localPort !== port) return;
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  };
  subscribe("net.server.socket", note);
  return () => {
    unsubscribe("net.server.socket", note);
    for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy();
  };
}

/** Sends bytes as they are and reads until the other side closes. */
export function sendRaw(url: string, bytes: string | Buffer, { end = true } = {}): Promise<string> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname);
    let answer = "";
    socket.setEncoding("utf8");
    socket.on("data", (chunk) => {
      answer += chunk;
    });
    socket.on("error", reject);
    socket.on("close", () => resolve(answer));
    if (end) socket.end(bytes);
    else socket.write(bytes);
  });
}
