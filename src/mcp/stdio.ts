import { once } from "node:events";
import { PassThrough } from "node:stream";
import type { JSONRPCMessage, RequestId } from "@modelcontextprotocol/server";
import { StdioServerTransport, serveStdio } from "@modelcontextprotocol/server/stdio";
import type { McpBackend } from "./backend.ts";
import { type BuildServerOptions, buildServer } from "./build-server.ts";

/** How long calls may go on after the end of the input. A client that stops its servers waits about as long before it kills them. */
const LAST_CALLS_MS = 10_000;

export interface StdioOptions extends BuildServerOptions {
  readonly onError: (error: Error) => void;
}

export interface StdioServer {
  /** Resolves once the input has ended and every call in it has its response, or ten seconds after the end. */
  readonly done: Promise<void>;
  close(): Promise<void>;
}

/** Serves one MCP client on the standard input and output of this process. */
export function serveOnStdio(backend: McpBackend, { onError, ...options }: StdioOptions): StdioServer {
  // The transport closes with its input and drops the calls in progress. This input has no end, so that they get a response.
  const input = process.stdin.pipe(new PassThrough(), { end: false });
  const transport = new StdioServerTransport(input, process.stdout);
  const server = serveStdio(() => buildServer(backend, options), {
    transport,
    maxSubscriptions: 0,
    onerror: onError,
  });
  return { done: untilDone(input, new OpenCalls(transport)), close: () => server.close() };
}

async function untilDone(input: PassThrough, calls: OpenCalls): Promise<void> {
  await Promise.race([once(process.stdin, "end"), once(process.stdin, "close")]);
  while (input.readableLength + input.writableLength > 0) await once(input, "data");
  const tooLate = new Promise<void>((resolve) => setTimeout(resolve, LAST_CALLS_MS).unref());
  await Promise.race([calls.allAnswered(), tooLate]);
}

/** The calls of the client that have no response yet. A cancelled call gets none. */
class OpenCalls {
  readonly #ids = new Set<RequestId>();
  #onNone = () => {};

  constructor(transport: StdioServerTransport) {
    const { onmessage } = transport;
    transport.onmessage = (message) => {
      if ("method" in message && "id" in message) this.#ids.add(message.id);
      else if ("method" in message && message.method === "notifications/cancelled")
        this.#remove(message.params?.["requestId"]);
      onmessage?.(message);
    };
    const send = transport.send.bind(transport);
    transport.send = async (message: JSONRPCMessage) => {
      await send(message);
      if (!("method" in message)) this.#remove(message.id);
    };
  }

  async allAnswered(): Promise<void> {
    if (this.#ids.size === 0) return;
    await new Promise<void>((resolve) => {
      this.#onNone = resolve;
    });
  }

  #remove(id: unknown): void {
    this.#ids.delete(id as RequestId);
    if (this.#ids.size === 0) this.#onNone();
  }
}
