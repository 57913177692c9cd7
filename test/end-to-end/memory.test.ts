import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { DependencyResult } from "../../src/model/task.ts";
import { eventually, newFolder, type ServerProcess, startServer } from "./server-process.ts";

const RESULTS = 40;
const HANGING = 12;
const RESULT = "x".repeat(1_000_000);
const DEPENDENCY_BYTES_MAX = 4 * 1_048_576;
/** Less than the hanging tasks would hold if each received all results: 480 MB. */
const HEAP_MB = 256;

/** What a hanging task was called with. */
interface Call {
  readonly taskId: string;
  readonly bodyBytes: number;
  readonly dependencies: readonly DependencyResult[];
}

/** A host that responds to tasks of the agent `big` with a megabyte, and to those of `hang` only once it is released. */
async function startHost() {
  const held = new Map<ServerResponse, Call>();
  let isReleased = false;
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request.setEncoding("utf8")) body += chunk;
    response.setHeader("content-type", "application/json");
    if (request.url === "/big") {
      response.end(JSON.stringify(RESULT));
      return;
    }
    const { taskId, dependencies } = JSON.parse(body);
    held.set(response, { taskId, dependencies, bodyBytes: body.length });
    response.on("close", () => held.delete(response));
    if (isReleased) response.end("1");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls: () => [...held.values()],
    release() {
      isReleased = true;
      for (const response of held.keys()) response.end("1");
    },
  };
}

async function metric(server: ServerProcess, name: string): Promise<number> {
  const { body } = await server.ask("/metrics");
  return Number(new RegExp(`^${name} (\\S+)$`, "m").exec(String(body))?.[1]);
}

test("tasks that depend on many large results and hang take little memory, and neither kill the node nor each other", {
  timeout: 120_000,
}, async () => {
  const host = await startHost();
  const storage = `sqlite:${join(newFolder(), "rota.db")}`;
  const executor = (path: string) => ({ executor: { type: "http", url: host.url + path } });
  const environment = {
    NODE_OPTIONS: `--max-old-space-size=${HEAP_MB}`,
    ROTA_AGENTS: JSON.stringify({ big: executor("/big"), hang: executor("/hang") }),
    ROTA_SCHEDULER_WORKER_COUNT: String(HANGING),
    ROTA_SCHEDULER_MAX_PER_AGENT_INFLIGHT: String(HANGING),
  };
  const submit = async (server: ServerProcess, path: string, json: unknown) => {
    const answer = await server.ask(path, { json });
    expect(answer.status).toBe(202);
    return answer.body;
  };
  const start = () => startServer({ storage, environment });

  const first = await start();
  const results = Array.from({ length: RESULTS }, (_, payload) => ({ agentId: "big", payload }));
  const { taskIds } = await submit(first, "/tasks/batch", { tasks: results });
  const hanging = Array.from({ length: HANGING }, (_, payload) => ({
    agentId: "hang",
    payload,
    dependsOn: taskIds,
    timeout: 600_000,
    retryPolicy: { maxRetries: 100 },
  }));
  const batch = await submit(first, "/tasks/batch", { tasks: hanging });
  await eventually(() => host.calls().length === HANGING, "every task to hang", 60_000);
  for (const { bodyBytes, dependencies } of host.calls()) {
    expect(bodyBytes).toBeLessThan(DEPENDENCY_BYTES_MAX + 100_000);
    expect(dependencies.map(({ taskId }) => taskId)).toEqual(taskIds);
    const whole = dependencies.filter(({ result }) => result === RESULT).length;
    expect(whole).toBe(4);
    expect(
      dependencies.slice(whole).every((rest) => "omitted" in rest && rest.resultBytes === 1_000_002),
    ).toBe(true);
  }
  // The results of dependencies, and the request that carries them.
  const bytes = await metric(first, "rota_running_bytes");
  expect(bytes / HANGING / 1_000_000).toBeGreaterThan(8);
  expect(bytes / HANGING / 1_000_000).toBeLessThan(9);
  expect(await metric(first, "rota_running_bytes_max")).toBe(268_435_456);
  expect(await metric(first, "process_resident_memory_bytes")).toBeLessThan(1_073_741_824);
  first.kill("SIGKILL");
  await first.ended;

  const second = await start();
  await eventually(() => host.calls().length === HANGING, "every task to hang again", 60_000);
  second.kill("SIGKILL");
  await second.ended;

  // From now on each of them runs alone, and others have their turn in between.
  const third = await start();
  await eventually(() => host.calls().length === 1, "one of them to run alone", 60_000);
  const { taskId: running } = host.calls()[0] as Call;
  const waiting = batch.taskIds.find((id: string) => id !== running);
  const codes = async (id: string) => {
    const { body } = await third.ask(`/tasks/${id}/explain`);
    return body.reasons.map(({ code }: { code: string }) => code);
  };
  expect(await codes(waiting)).toContain("runs_alone");
  const other = await submit(third, "/tasks", { payload: "mine" });
  expect(await codes(other.taskId)).toContain("node_runs_alone");
  expect(host.calls()).toHaveLength(1);
  host.release();
  await eventually(
    async () => (await third.ask(`/tasks/batches/${batch.batchId}`)).body.counts.done === HANGING,
    "all of them to end",
    60_000,
  );
  await eventually(
    async () => (await third.ask(`/tasks/${other.taskId}`)).body.state === "done",
    "the other task to end",
  );
  await eventually(
    async () => (await metric(third, "rota_running_bytes")) === 0,
    "all memory to be released",
  );
});
