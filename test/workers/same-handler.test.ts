import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { beforeAll, expect, test } from "vitest";
import { RotaClient, RotaWorker } from "../../src/client/index.ts";
import { PermanentError } from "../../src/executors/errors.ts";
import type { Executor } from "../../src/executors/executor.ts";
import { silentLog } from "../../src/model/log.ts";
import type { Task } from "../../src/model/task.ts";
import { createRota } from "../../src/rota.ts";
import { listen } from "../../src/server/listen.ts";

interface Work {
  readonly do: string;
  readonly n?: number;
}

/** One handler for all three ways. What it is asked to do is in the payload of the task. */
function makeHandler(): { readonly handler: Executor; readonly aborted: Set<string> } {
  const aborted = new Set<string>();
  const handler: Executor = async (task, { signal, progress, usage, log, session }) => {
    const work = task.payload as Work;
    switch (work.do) {
      case "return":
        progress({ step: 1 });
        usage({ inputTokens: 3, outputTokens: 4 });
        log.info({}, "worked");
        return { n: work.n, dependencies: task.dependencies?.map(({ result }) => result) ?? [] };
      case "recall": {
        const { turns = [], ...about } = (await session({ turns: 2 })) ?? {};
        return { ...about, turns: turns.map(({ work, result }) => ({ work, result })) };
      }
      case "return nothing":
        return undefined;
      case "fail":
        throw new Error("out of paper");
      case "fail at first":
        if (task.retryCount < 2) throw new Error(`attempt ${task.retryCount + 1}`);
        return "at last";
      case "fail for good":
        throw new PermanentError("no such page");
      default:
        signal.addEventListener("abort", () => aborted.add(task.taskId));
        return sleep(30_000, "slept", { signal });
    }
  };
  return { handler, aborted };
}

/** The handler behind HTTP, for the executor `http`. */
async function serveHandler(
  handler: Executor,
): Promise<{ readonly url: string; readonly close: () => void }> {
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request.setEncoding("utf8")) body += chunk;
    const gone = new AbortController();
    response.on("close", () => gone.abort());
    const ignore = () => {};
    const context = {
      signal: gone.signal,
      log: silentLog,
      progress: ignore,
      usage: (usage: object) => response.setHeader("x-rota-usage", JSON.stringify(usage)),
    } as unknown as Parameters<Executor>[1];
    try {
      const result = (await handler(JSON.parse(body) as Task, context)) ?? null;
      response.setHeader("content-type", "application/json").end(JSON.stringify(result));
    } catch (error) {
      response.writeHead(error instanceof PermanentError ? 422 : 500).end((error as Error).message);
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, close };
}

const AGENTS = ["embedded", "remote", "posted"] as const;

async function openAllThree() {
  const { handler, aborted } = makeHandler();
  const behindHttp = await serveHandler(handler);
  const rota = await createRota({
    storage: "sqlite::memory:",
    agents: {
      remote: { executor: { type: "worker" } },
      posted: { executor: { type: "http", url: behindHttp.url } },
    },
  });
  rota.agent("embedded", handler);
  const server = await listen({ rota, host: "127.0.0.1", port: 0, log: silentLog });
  await rota.start();
  const worker = new RotaWorker({ url: server.url, agents: { remote: handler }, slots: 4, heartbeatMs: 500 });
  await worker.start();
  const close = async () => {
    await worker.stop({ graceMs: 0 });
    await server.close();
    await rota.stop({ graceMs: 0 });
    behindHttp.close();
  };
  return { client: new RotaClient({ url: server.url }), aborted, close };
}

/** All tests share them: each looks at tasks of its own. */
let shared: Awaited<ReturnType<typeof openAllThree>>;
beforeAll(async () => {
  shared = await openAllThree();
  return shared.close;
});

/** What a task shows that must not depend on where it ran. */
function shown({ state, result, error, retryCount, attempts, usage }: Task) {
  return {
    state,
    result,
    // The executor `http` puts the status before the words of the handler.
    error: error?.replace(/^HTTP \d+: /, ""),
    retryCount,
    usage,
    outcomes: attempts.map(({ outcome }) => outcome),
  };
}

const QUICK = { maxRetries: 2, backoffMs: 10 };

test.each<readonly [string, Work, object]>([
  ["returns", { do: "return", n: 1 }, {}],
  ["returns nothing", { do: "return nothing" }, {}],
  ["fails with all its retries", { do: "fail" }, { retryPolicy: QUICK }],
  ["fails twice and then returns", { do: "fail at first" }, { retryPolicy: QUICK }],
  ["fails for good", { do: "fail for good" }, { retryPolicy: QUICK }],
  ["takes longer than its timeout", { do: "sleep" }, { timeout: 1_000 }],
])(
  "a handler that %s does the same embedded, in a worker and behind HTTP",
  async (_what, payload, fields) => {
    const { client } = shared;
    const submitted = await Promise.all(
      AGENTS.map((agentId) => client.tasks.submit({ agentId, payload, ...fields })),
    );
    const ended = await Promise.all(submitted.map(({ taskId }) => client.tasks.wait(taskId)));
    const [embedded, remote, posted] = ended.map(shown);
    expect(remote).toEqual(embedded);
    expect(posted).toEqual(embedded);
  },
);

test("a cancel ends the handler embedded, in a worker and behind HTTP", async () => {
  const { client, aborted } = shared;
  const submitted = await Promise.all(
    AGENTS.map((agentId) => client.tasks.submit({ agentId, payload: { do: "sleep" } })),
  );
  const ids = submitted.map(({ taskId }) => taskId);
  for (const id of ids) await expect.poll(async () => (await client.tasks.get(id)).state).toBe("running");
  for (const id of ids) await client.tasks.cancel(id);
  const [embedded, remote, posted] = (await Promise.all(ids.map((id) => client.tasks.wait(id)))).map(shown);
  expect(embedded?.state).toBe("cancelled");
  expect(remote).toEqual(embedded);
  expect(posted).toEqual(embedded);
  await expect.poll(() => ids.filter((id) => !aborted.has(id))).toEqual([]);
});

test("results of dependencies reach the handler embedded, in a worker and behind HTTP", async () => {
  const { client } = shared;
  const { tasks } = await client.tasks.submitBatch({
    tasks: [
      { key: "first", payload: "one" },
      ...AGENTS.map((agentId) => ({
        key: agentId,
        agentId,
        payload: { do: "return", n: 2 },
        dependsOn: ["first"],
      })),
    ],
  });
  const ended = await Promise.all(tasks.slice(1).map(({ taskId = "" }) => client.tasks.wait(taskId)));
  expect(ended.map(({ result }) => result)).toEqual(AGENTS.map(() => ({ n: 2, dependencies: ["one"] })));
});

test("the turns of its session reach the handler, embedded and in a worker", async () => {
  const { client } = shared;
  const recalled: unknown[] = [];
  for (const agentId of ["embedded", "remote"]) {
    const sessionKey = `chat:${agentId}`;
    for (const n of [1, 2, 3]) {
      const { taskId } = await client.tasks.submit({ agentId, sessionKey, payload: { do: "return", n } });
      await client.tasks.wait(taskId);
    }
    const { taskId } = await client.tasks.submit({ agentId, sessionKey, payload: { do: "recall" } });
    recalled.push((await client.tasks.wait(taskId)).result);
    // Without a session there are no turns.
    const alone = await client.tasks.submit({ agentId, payload: { do: "recall" } });
    expect((await client.tasks.wait(alone.taskId)).result).toEqual({ turns: [] });
  }
  expect(recalled[0]).toMatchObject({
    generation: 0,
    turns: [
      { work: { payload: { n: 2 } }, result: { n: 2 } },
      { work: { payload: { n: 3 } }, result: { n: 3 } },
    ],
  });
  expect(recalled[1]).toEqual(recalled[0]);
});

test("progress and log lines of a handler are stored, embedded and in a worker", async () => {
  const { client } = shared;
  for (const agentId of ["embedded", "remote"]) {
    const events = client.events();
    const { taskId } = await client.tasks.submit({ agentId, payload: { do: "return" } });
    const progress: unknown[] = [];
    for await (const event of events) {
      if (event.taskId !== taskId) continue;
      if (event.type === "task.progress") progress.push(event.result);
      if (event.type === "task.completed") break;
    }
    expect(progress).toHaveLength(1);
    await expect
      .poll(async () => (await client.tasks.logs(taskId)).lines.map(({ level, text }) => [level, text]))
      .toEqual([["info", "worked"]]);
  }
});
