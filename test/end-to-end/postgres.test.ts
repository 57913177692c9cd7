import { afterAll, beforeAll, expect, test } from "vitest";
import { createTestDatabase, type TestDatabase } from "../postgres/database.ts";
import { startAgentProgram } from "./agent-program.ts";
import { eventually, startServer } from "./server-process.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database?.drop());

test("serves tasks on PostgreSQL, and says where without the password", async () => {
  const server = await startServer({ storage: database.url });
  const { username, password, host, pathname } = new URL(database.url);
  expect(server.stdout()).toMatch(
    /^Rota is ready at http:\/\/127\.0\.0\.1:\d+ \(storage postgres(?:ql)?:\/\/[^@)]+\), dashboard at http:\S+\/ui\/\n$/,
  );
  expect(server.stdout()).toContain(`${host}${pathname}`);
  if (password !== "") expect(server.stdout()).not.toContain(`${username}:${password}`);

  const { status, body } = await server.ask("/tasks", { json: { message: "hello" } });
  expect(status).toBe(202);
  await eventually(async () => (await server.ask(`/tasks/${body.taskId}`)).body.state === "done", "the task");
  expect((await server.ask("/tasks?state=done&agentId=index")).body).toMatchObject({
    count: 1,
    nextCursor: null,
  });
  expect((await server.ask("/ready")).status).toBe(200);
  server.kill("SIGTERM");
  expect(await server.ended).toEqual({ code: 0, signal: null });
});

test("two servers share one database: what one accepts the other shows, and cancels where it runs", async () => {
  const program = await startAgentProgram();
  const environment = {
    ROTA_AGENTS: JSON.stringify({ worker: { executor: { type: "http", url: program.url } } }),
  };
  const one = await startServer({ storage: database.url, environment });
  const other = await startServer({ storage: database.url, environment });
  const { taskId } = (await one.ask("/tasks", { json: { agentId: "worker", payload: 1 } })).body;
  await eventually(() => program.holding().includes(taskId), "the task to be under way");
  expect((await other.ask(`/tasks/${taskId}`)).body.state).toBe("running");
  const { node } = (await other.ask(`/tasks/${taskId}`)).body.attempts[0];
  expect(node).toEqual(expect.any(String));

  // One of the two runs it; whichever is asked, the call to the agent is dropped.
  for (const server of [one, other]) expect((await server.ask("/ready")).status).toBe(200);
  expect((await other.ask(`/tasks/${taskId}/cancel`, { method: "POST" })).status).toBe(200);
  await eventually(() => program.holding().length === 0, "the call to be dropped");
  expect((await one.ask(`/tasks/${taskId}`)).body.state).toBe("cancelled");
});

// The lease of the one that died has to run out first, which takes 15 seconds.
test("what a killed server was doing is done by the other", { timeout: 90_000 }, async () => {
  const program = await startAgentProgram();
  const environment = {
    ROTA_AGENTS: JSON.stringify({ worker: { executor: { type: "http", url: program.url } } }),
  };
  const dying = await startServer({ storage: database.url, environment });
  const { taskId } = (await dying.ask("/tasks", { json: { agentId: "worker", instruction: "survive" } }))
    .body;
  await eventually(() => program.holding().includes(taskId), "the task to be under way");
  dying.kill("SIGKILL");
  await dying.ended;
  await eventually(() => program.holding().length === 0, "the connection to break");

  const other = await startServer({ storage: database.url, environment });
  program.release();
  await eventually(
    async () => (await other.ask(`/tasks/${taskId}`)).body.state === "done",
    "the other to do it",
    60_000,
  );
  expect((await other.ask(`/tasks/${taskId}`)).body).toMatchObject({
    result: { did: taskId },
    attempts: [{ outcome: "lost" }, { outcome: "done" }],
  });
});
