import { connect } from "node:net";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openStream } from "../support/event-stream.ts";
import { startAgentProgram } from "./agent-program.ts";
import { eventually, newFolder, type ServerProcess, startServer } from "./server-process.ts";

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

test("streams go on while it drains and end with it, and who waits is answered at once", async () => {
  const { program, server } = await startBusy();
  const taskId = await submit(server, { payload: 1 });
  await eventually(() => program.holding().length === 1, "the task to be under way");
  const stream = await openStream(`${server.url}/tasks/events?lastEventId=0`);
  await stream.take(3);
  const waiting = server.ask(`/tasks/${taskId}?wait=60`);
  // Once another request is answered, the one before has arrived as well.
  await server.ask("/health");
  server.kill("SIGTERM");
  expect((await waiting).body).toMatchObject({ taskId, state: "running" });
  program.release();
  expect(await stream.next()).toMatchObject({ event: "task.completed", data: { taskId, state: "done" } });
  expect(await stream.next()).toBeUndefined();
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

test("a second signal ends it at once, and nothing is lost", async () => {
  const { program, storage, server } = await startBusy();
  const taskId = await submit(server, { instruction: "long" });
  await eventually(() => program.holding().length === 1, "the task to be under way");
  server.kill("SIGTERM");
  await eventually(async () => (await server.ask("/ready")).status === 503, "the server to drain");
  let ended: unknown;
  void server.ended.then((how) => {
    ended = how;
  });
  // The first ones after another are taken for its echo.
  await eventually(() => {
    server.kill("SIGTERM");
    return ended !== undefined;
  }, "the server to end");
  expect(ended).toEqual({ code: 143, signal: null });

  const paused = await startServer({ storage, environment: { ROTA_SCHEDULER_ENABLED: "false" } });
  expect(["queued", "running"]).toContain((await paused.ask(`/tasks/${taskId}`)).body.state);
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
