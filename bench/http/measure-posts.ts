import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import autocannon from "autocannon";
import { type NewStorage, withStorage } from "../empty-storage.ts";
import { taskInput } from "../workload.ts";
import type { ServerKind } from "./server-program.ts";

/** Requests that are made before any is counted: the server compiles what it runs often. */
const WARM_UP_SEC = 1;

export interface PostsParams {
  readonly server: ServerKind;
  readonly connections: number;
  readonly seconds: number;
}

export interface Posts {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** Tasks posted one by one over many connections, each of which waits for its answer before it sends the next. */
export function measurePosts(newStorage: NewStorage, params: PostsParams): Promise<Posts> {
  return withStorage(newStorage, async (target) => {
    const server = fork(fileURLToPath(new URL("server-program.ts", import.meta.url)), [
      params.server,
      target.url,
    ]);
    try {
      const [url] = await once(server, "message");
      await post(String(url), { ...params, seconds: WARM_UP_SEC });
      return await post(String(url), params);
    } finally {
      server.disconnect();
      await once(server, "exit");
    }
  });
}

async function post(url: string, { connections, seconds }: PostsParams): Promise<Posts> {
  let sent = 0;
  const result = await autocannon({
    url: `${url}/tasks`,
    connections,
    duration: seconds,
    requests: [
      {
        method: "POST",
        headers: { "content-type": "application/json" },
        setupRequest: (request) => ({ ...request, body: JSON.stringify(taskInput(sent++)) }),
      },
    ],
  });
  const failed = result.errors + result.non2xx;
  if (failed > 0) throw new Error(`${failed} of ${result.requests.total} requests failed`);
  return {
    perSecond: result.requests.total / result.duration,
    p50Ms: result.latency.p50,
    p99Ms: result.latency.p99,
  };
}
