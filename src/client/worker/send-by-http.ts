import { type Send, type SendInit, sendByFetch, type WholeResponse } from "../send.ts";

/** What is used of `node:http` and `node:https`. Browsers have neither, so that this file cannot import their types. */
interface HttpModule {
  request(options: object, onResponse: (response: IncomingMessage) => void): ClientRequest;
}

interface ClientRequest {
  on(event: "error", listener: (error: Error) => void): void;
  end(body?: string): void;
  destroy(error?: Error): void;
}

interface IncomingMessage {
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
  setEncoding(encoding: "utf8"): void;
  on(event: "data", listener: (text: string) => void): void;
  on(event: "end", listener: () => void): void;
  on(event: "error", listener: (error: Error) => void): void;
}

interface Runtime {
  readonly process?: { readonly getBuiltinModule?: (name: string) => unknown };
}

/**
 * Sends requests by `node:http`; null where there is none, as in browsers. A busy worker makes thousands of requests a second, and
 * `fetch` takes more than twice as much processor time for each. Connections are those of Node's global agent.
 */
export function sendByHttp(baseUrl: string): Send | null {
  const { protocol, hostname, port, origin } = new URL(baseUrl);
  const module = (globalThis as Runtime).process?.getBuiltinModule?.(`node:${protocol.slice(0, -1)}`);
  if (module === undefined) return null;
  const http = module as HttpModule;
  const host = hostname.replace(/^\[|\]$/g, "");
  const byFetch = sendByFetch((input, init) => fetch(input, init));
  return async (url, init) => {
    const { method, headers } = init;
    const options = { host, ...(port !== "" && { port }), path: url.slice(origin.length), method, headers };
    const response = await sendOnce(http, options, init);
    // `fetch` knows the rules of redirects.
    return response.status >= 300 && response.status < 400 ? byFetch(url, init) : response;
  };
}

function sendOnce(http: HttpModule, options: object, { body, signal }: SendInit): Promise<WholeResponse> {
  signal.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<WholeResponse>();
  const request = http.request(options, (response) => {
    const { statusCode: status, headers } = response;
    let text = "";
    response.setEncoding("utf8");
    response.on("error", reject);
    response.on("data", (part) => {
      text += part;
    });
    response.on("end", () =>
      resolve({
        ok: status >= 200 && status < 300,
        status,
        headers: { get: (name) => headers[name] ?? null },
        text,
      }),
    );
  });
  request.on("error", reject);
  const abort = () => {
    reject(signal.reason);
    request.destroy();
  };
  signal.addEventListener("abort", abort, { once: true });
  request.end(body);
  return promise.finally(() => signal.removeEventListener("abort", abort));
}
