import { writeFileSync } from "node:fs";
import { type AddressInfo, connect, createServer } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { openStream } from "../support/event-stream.ts";
import { startAgentProgram } from "./agent-program.ts";
import { eventually, newFolder, runRota, type ServerProcess, startServer } from "./server-process.ts";

/** A server with one task under way at a program that holds it. */
async function startBusy(environment: Record<string, string> = {}) {
  const program = await startAgentProgram();
  const storage = `sqlite:${join(newFolder(), "rota.db")}`;
  const agents = { worker: { executor: { type: "http", url: program.url } } };
  const server = await startServer({
    storage,
    environment: { ROTA_AGENTS: JSON.stringify(agents), ...environment },
  });
  return { program, storage, server };
}

async function submit(server: ServerProcess, input: object): Promise<string> {
  return (await server.ask("/tasks", { json: { agentId: "worker", ...input } })).body.taskId;
}

test.each(["SIGTERM", "SIGINT"] as const)(
  "%s lets running work end, takes no new, and shows all until then",
  async (signal) => {
    const { program, storage, server } = await startBusy();
    const taskId = await submit(server, { payload: 1 });
    await eventually(() => program.holding().length === 1, "the task to be under way");
    server.kill(signal);
    await eventually(async () => (await server.ask("/ready")).status === 503, "the server to drain");

    const refused = await server.ask("/tasks", { json: { payload: 2 } });
    expect([refused.status, refused.body.code, refused.headers.get("retry-after")]).toEqual([
      503,
      "draining",
      "5",
    ]);
    expect((await server.ask("/health")).body).toMatchObject({ status: "ok", state: "draining" });
    const waiting = server
      .stderr()
      .split("\n")
      .find((line) => line.includes("waiting"));
    expect(JSON.parse(waiting ?? "null")).toMatchObject({
      level: "info",
      msg: "waiting up to 30 s for 1 running task to end",
      taskIds: [taskId],
    });
    expect(server.stderr().includes("press Ctrl-C again to exit at once")).toBe(signal === "SIGINT");
    expect((await server.ask(`/tasks/${taskId}`)).body.state).toBe("running");

    program.release();
    expect(await server.ended).toEqual({ code: 0, signal: null });
    const next = await startServer({ storage });
    expect((await next.ask(`/tasks/${taskId}`)).body).toMatchObject({
      state: "done",
      result: { did: taskId },
    });
    expect((await next.ask("/tasks")).body.count).toBe(1);
  },
);

test("streams and waits go on while it drains, and report how running tasks end", async () => {
  const { program, server } = await startBusy();
  const taskId = await submit(server, { payload: 1 });
  await eventually(() => program.holding().length === 1, "the task to be under way");
  const stream = await openStream(`${server.url}/tasks/events?lastEventId=0`);
  await stream.take(3);
  const waiting = server.ask(`/tasks/${taskId}?wait=60`);
  // Once another request is answered, the one before has arrived as well.
  await server.ask("/health");
  server.kill("SIGTERM");
  await eventually(async () => (await server.ask("/ready")).status === 503, "the server to drain");
  const late = server.ask(`/tasks/${taskId}?wait=60`);
  await server.ask("/health");
  program.release();
  for (const answer of [waiting, late]) {
    expect((await answer).body).toMatchObject({ taskId, state: "done", result: { did: taskId } });
  }
  expect(await stream.next()).toMatchObject({ event: "task.completed", data: { taskId, state: "done" } });
  expect(await stream.next()).toBeUndefined();
  expect(await server.ended).toEqual({ code: 0, signal: null });
});

test("rota say --wait gets the result of a run that ends while the server drains", async () => {
  const { program, server } = await startBusy();
  const say = runRota(["say", "user:42", "hello", "--agent", "worker", "--wait", "--url", server.url]);
  await eventually(() => program.holding().length === 1, "the message to be under way");
  const [taskId] = program.holding();
  server.kill("SIGTERM");
  await eventually(async () => (await server.ask("/ready")).status === 503, "the server to drain");
  program.release();
  expect(await say.ended).toEqual({ code: 0, signal: null });
  expect(JSON.parse(say.stdout())).toEqual({ did: taskId });
  expect(await server.ended).toEqual({ code: 0, signal: null });
});

test("a caller that waits for a task which does not end within the grace gets its current state before the server ends", async () => {
  const { program, server } = await startBusy({ ROTA_SHUTDOWN_GRACE_SEC: "1" });
  const said = { message: "hello", agentId: "worker", wait: true };
  const message = server.ask("/v1/sessions/a/messages", { json: said });
  await eventually(() => program.holding().length === 1, "the message to be under way");
  const waiting = await submit(server, { payload: 1, runAt: "2100-01-01T00:00:00Z" });
  const task = server.ask(`/tasks/${waiting}?wait=60`);
  await server.ask("/health");
  server.kill("SIGTERM");
  expect(await message).toMatchObject({
    status: 200,
    body: { state: "failed", error: "interrupted by shutdown" },
  });
  expect(await task).toMatchObject({ status: 200, body: { state: "delayed" } });
  expect(await server.ended).toEqual({ code: 0, signal: null });
});

test("nothing new is taken while it drains, whichever way it comes, and all can be looked at", async () => {
  const { program, server } = await startBusy({ ROTA_SCHEDULER_NO_EXECUTOR_SEC: "0" });
  const failed = await submit(server, { agentId: "nobody", payload: 1 });
  await eventually(async () => (await server.ask(`/tasks/${failed}`)).body.state === "failed", "a failure");
  const running = await submit(server, { payload: 1 });
  await eventually(() => program.holding().length === 1, "the task to be under way");
  server.kill("SIGTERM");
  await eventually(async () => (await server.ask("/ready")).status === 503, "the server to drain");

  for (const [path, init] of [
    ["/ready", {}],
    ["/v1/tasks", { json: { payload: 2 } }],
    ["/tasks/batch", { json: { tasks: [{ payload: 2 }] } }],
    [`/tasks/${failed}/retry`, { method: "POST" }],
    ["/v1/sessions/a/messages", { json: { message: "hello" } }],
    ["/v1/lanes/crawl", { method: "PUT", json: { concurrency: 1 } }],
  ] as const) {
    const { status, body, headers } = await server.ask(path, init);
    expect([path, status, body.code, body.retryable, headers.get("retry-after")]).toEqual([
      path,
      503,
      "draining",
      true,
      "5",
    ]);
  }
  for (const path of ["/health", "/tasks", `/tasks/${running}`, "/v1/lanes", "/v1/sessions", "/metrics"]) {
    expect([path, (await server.ask(path)).status]).toEqual([path, 200]);
  }
  expect((await server.ask("/tasks")).body.count).toBe(2);
  // Ending something is no new work.
  expect((await server.ask(`/tasks/${running}/cancel`, { method: "POST" })).status).toBe(200);
  expect(await server.ended).toEqual({ code: 0, signal: null });
});

test("after the grace what has retries left goes back uncounted, and the rest fails", async () => {
  const { program, storage, server } = await startBusy({ ROTA_SHUTDOWN_GRACE_SEC: "0" });
  const again = await submit(server, { instruction: "again" });
  const once = await submit(server, { payload: "once" });
  await eventually(() => program.holding().length === 2, "both tasks to be under way");
  server.kill("SIGTERM");
  expect(await server.ended).toEqual({ code: 0, signal: null });

  const paused = await startServer({ storage, environment: { ROTA_SCHEDULER_ENABLED: "false" } });
  expect((await paused.ask(`/tasks/${again}`)).body).toMatchObject({
    state: "queued",
    retryCount: 0,
    attempts: [{ outcome: "interrupted" }],
  });
  expect((await paused.ask(`/tasks/${once}`)).body).toMatchObject({
    state: "failed",
    error: "interrupted by shutdown",
  });
});

test("the grace is the one that holds when the signal comes", async () => {
  const program = await startAgentProgram();
  const folder = newFolder();
  const write = (shutdownGraceSec: number) =>
    writeFileSync(
      join(folder, "rota.config.json"),
      JSON.stringify({
        shutdownGraceSec,
        agents: { worker: { executor: { type: "http", url: program.url } } },
      }),
    );
  write(600);
  const server = await startServer({ folder, storage: "sqlite:rota.db" });
  const taskId = await submit(server, { payload: 1 });
  await eventually(() => program.holding().length === 1, "the task to be under way");
  write(0);
  server.kill("SIGHUP");
  await eventually(() => server.stderr().includes('"shutdownGraceSec"'), "the change");
  server.kill("SIGTERM");
  expect(await server.ended).toEqual({ code: 0, signal: null });
  const next = await startServer({ folder, storage: "sqlite:rota.db" });
  expect((await next.ask(`/tasks/${taskId}`)).body.error).toBe("interrupted by shutdown");
});

test.each([
  ["SIGTERM", 143],
  ["SIGINT", 130],
] as const)("a second signal, %s, ends it at once, and nothing is lost", async (second, code) => {
  const { program, storage, server } = await startBusy();
  const again = await submit(server, { instruction: "long" });
  const once = await submit(server, { payload: "long" });
  await eventually(() => program.holding().length === 2, "the tasks to be under way");
  server.kill("SIGTERM");
  await eventually(async () => (await server.ask("/ready")).status === 503, "the server to drain");
  server.kill(second);
  expect(await server.ended).toEqual({ code, signal: null });

  // As after a crash: the next process takes over what ran.
  program.release();
  const environment = {
    ROTA_AGENTS: JSON.stringify({ worker: { executor: { type: "http", url: program.url } } }),
  };
  const next = await startServer({ storage, environment });
  await eventually(async () => (await next.ask(`/tasks/${again}`)).body.state === "done", "the other try");
  expect((await next.ask(`/tasks/${again}`)).body.attempts).toMatchObject([
    { outcome: "lost" },
    { outcome: "done" },
  ]);
  expect((await next.ask(`/tasks/${once}`)).body).toMatchObject({ state: "failed", error: "worker lost" });
});

test("a signal while it waits for its database ends it at once", async () => {
  let connected = false;
  const mute = createServer(() => {
    connected = true;
  });
  await new Promise<void>((resolve) => mute.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void mute.close());
  const { port } = mute.address() as AddressInfo;
  const server = runRota(["serve", "--port", "0", "--storage", `postgres://x@127.0.0.1:${port}/rota`]);
  await eventually(() => connected, "the connection");
  server.kill("SIGTERM");
  expect(await server.ended).toEqual({ code: 143, signal: null });
});

test("a request that never ends does not keep it from ending", async () => {
  const server = await startServer();
  const { hostname, port } = new URL(server.url);
  const socket = connect(Number(port), hostname);
  socket.write(
    "POST /tasks HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{",
  );
  socket.on("error", () => {});
  // Once another request is answered, the first one has arrived as well.
  await server.ask("/health");
  server.kill("SIGTERM");
  expect(await server.ended).toEqual({ code: 0, signal: null });
});
