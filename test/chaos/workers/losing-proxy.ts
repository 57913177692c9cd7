import { createServer, type IncomingMessage, type ServerResponse, request as send } from "node:http";
import type { AddressInfo } from "node:net";
import type { Chance } from "../chance.ts";
import type { Finish } from "../history.ts";

export interface LosingProxy {
  readonly url: string;
  /** Every finish that a server responded to, whether or not the response reached the worker. */
  readonly finishes: readonly Finish[];
  /** From now on nothing gets through in either direction, and no connection is closed. */
  freeze(): void;
  thaw(): void;
  /** The next responses to calls whose path ends so are lost. A claim that carries ends is `/claim?finishes`. */
  loseNext(call: string, times: number): void;
  /** The next responses to this call that assign attempts never come, on connections that stay open. */
  swallowNext(call: string, times: number): void;
  /** From now on about half of the responses are lost, after the server has carried out the request. */
  loseAnswers(isLosing: boolean): void;
  close(): void;
}

interface Known {
  readonly taskId: string;
  readonly attempt: number;
}

/**
 * Stands between a worker and the nodes, and passes each request to any of them. It reads along, so that what the worker was
 * answered can be compared with what was stored.
 */
export async function startLosingProxy(nodeUrls: readonly string[], chance: Chance): Promise<LosingProxy> {
  const finishes: Finish[] = [];
  const attempts = new Map<string, Known>();
  let isFrozen = false;
  let isLosing = false;
  const doomed = new Map<string, number>();
  const swallowed = new Map<string, number>();

  /** Whether a test asked for this to happen to the response to this request. */
  function isDue(calls: Map<string, number>, path: string): boolean {
    const call = [...calls.keys()].find((end) => path.endsWith(end));
    const left = call === undefined ? 0 : (calls.get(call) ?? 0);
    if (call === undefined || left === 0) return false;
    calls.set(call, left - 1);
    return true;
  }

  const server = createServer(async (request, response) => {
    try {
      const body = await bodyOf(request);
      if (isFrozen) return;
      const answer = await passOn(chance.pick(nodeUrls), request, body, response);
      if (answer === null) return void request.socket.destroy();
      readAlong(request.url ?? "", body, answer.body);
      if (isFrozen) return;
      const path = `${request.url}${parse(body)?.finishes === undefined ? "" : "?finishes"}`;
      if ((parse(answer.body)?.attempts ?? []).length > 0 && isDue(swallowed, path)) return;
      const isLost = isDue(doomed, path) || (isLosing && chance.oneIn(2));
      if (isLost) return void request.socket.destroy();
      response.writeHead(answer.status, answer.headers).end(answer.body);
    } catch {
      // The worker was killed in the middle of it.
      request.socket.destroy();
    }
  });

  function readAlong(path: string, asked: string, answered: string): void {
    if (path.endsWith("/claim")) {
      for (const { attemptToken, number, task } of parse(answered)?.attempts ?? [])
        attempts.set(attemptToken, { taskId: task.taskId, attempt: number });
    }
    const isFinish = path.endsWith("/finish");
    const ends = isFinish ? parse(asked)?.attempts : parse(asked)?.finishes;
    const answers = isFinish ? parse(answered)?.attempts : parse(answered)?.finished;
    const reported = new Map((ends ?? []).map((attempt) => [attempt.attemptToken, attempt] as const));
    for (const { attemptToken, recorded, repeated = false } of answers ?? []) {
      const known = attempts.get(attemptToken);
      const { outcome, result = null } = reported.get(attemptToken) ?? {};
      if (known !== undefined && outcome !== undefined)
        finishes.push({ ...known, outcome, result, recorded, repeated });
    }
  }

  server.listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    finishes,
    freeze() {
      isFrozen = true;
    },
    thaw() {
      isFrozen = false;
    },
    loseNext(call, times) {
      doomed.set(call, times);
    },
    swallowNext(call, times) {
      swallowed.set(call, times);
    },
    loseAnswers(next) {
      isLosing = next;
    },
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

interface Answer {
  readonly status: number;
  readonly headers: Record<string, string>;
  readonly body: string;
}

/** Null: the node is down, or ended meanwhile. */
function passOn(
  nodeUrl: string,
  { method, url, headers }: IncomingMessage,
  body: string,
  response: ServerResponse,
): Promise<Answer | null> {
  return new Promise((resolve) => {
    const passed = send(`${nodeUrl}${url}`, { method, headers: { ...headers, connection: "close" } });
    // A worker that hangs up takes its open claim back.
    response.once("close", () => passed.destroy());
    passed.once("error", () => resolve(null));
    passed.once("response", async (answer) => {
      try {
        const text = await bodyOf(answer);
        const { "retry-after": retryAfter } = answer.headers;
        resolve({
          status: answer.statusCode ?? 502,
          headers: {
            "content-type": "application/json",
            ...(retryAfter === undefined ? {} : { "retry-after": retryAfter }),
          },
          body: text,
        });
      } catch {
        resolve(null);
      }
    });
    passed.end(body);
  });
}

async function bodyOf(message: IncomingMessage): Promise<string> {
  let body = "";
  for await (const chunk of message.setEncoding("utf8")) body += chunk;
  return body;
}

// biome-ignore lint/suspicious/noExplicitAny: the checks look at what they use of it.
function parse(text: string): Partial<Record<"attempts" | "finishes" | "finished", any[]>> | null {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
