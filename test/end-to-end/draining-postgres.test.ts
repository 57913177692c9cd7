import { afterAll, beforeAll, expect, test } from "vitest";
import { createTestDatabase, type TestDatabase } from "../postgres/database.ts";
import { startAgentProgram } from "./agent-program.ts";
import { eventually, startServer } from "./server-process.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database?.drop());

test("what a server hands back when its grace is over, another goes on with at once", async () => {
  const program = await startAgentProgram();
  const environment = {
    ROTA_AGENTS: JSON.stringify({ worker: { executor: { type: "http", url: program.url } } }),
    ROTA_SHUTDOWN_GRACE_SEC: "0",
  };
  const leaving = await startServer({ storage: database.url, environment });
  const submit = async (input: object) =>
    (await leaving.ask("/tasks", { json: { agentId: "worker", ...input } })).body.taskId;
  const again = await submit({ instruction: "again" });
  const once = await submit({ payload: "once" });
  await eventually(() => program.holding().length === 2, "both to be under way");
  const staying = await startServer({ storage: database.url, environment });
  leaving.kill("SIGTERM");
  expect(await leaving.ended).toEqual({ code: 0, signal: null });
  // A lease would have had to run out first, had it not signed off: longer than this test waits.
  await eventually(() => program.holding().includes(again), "the other to begin", 10_000);
  program.release();
  await eventually(async () => (await staying.ask(`/tasks/${again}`)).body.state === "done", "the end");
  expect((await staying.ask(`/tasks/${again}`)).body).toMatchObject({
    retryCount: 0,
    attempts: [{ outcome: "interrupted" }, { outcome: "done" }],
  });
  expect((await staying.ask(`/tasks/${once}`)).body.error).toBe("interrupted by shutdown");
});

test("a server that drains leaves new work to the other, which takes and runs it", async () => {
  const program = await startAgentProgram();
  const environment = {
    ROTA_AGENTS: JSON.stringify({ worker: { executor: { type: "http", url: program.url } } }),
  };
  const leaving = await startServer({ storage: database.url, environment });
  const { taskId } = (await leaving.ask("/tasks", { json: { agentId: "worker", payload: 1 } })).body;
  await eventually(() => program.holding().includes(taskId), "the task to be under way");
  const staying = await startServer({ storage: database.url, environment });
  leaving.kill("SIGTERM");
  await eventually(async () => (await leaving.ask("/ready")).status === 503, "the server to drain");
  expect((await leaving.ask("/tasks", { json: { message: "x" } })).status).toBe(503);
  expect((await staying.ask("/ready")).status).toBe(200);
  const other = (await staying.ask("/tasks", { json: { message: "x" } })).body.taskId;
  await eventually(
    async () => (await leaving.ask(`/tasks/${other}`)).body.state === "done",
    "the other task",
  );
  program.release();
  expect(await leaving.ended).toEqual({ code: 0, signal: null });
  expect((await staying.ask(`/tasks/${taskId}`)).body.state).toBe("done");
});

test("a lane that is changed on one server applies to the other, and for the next start", async () => {
  const one = await startServer({ storage: database.url });
  const other = await startServer({ storage: database.url, environment: { ROTA_LANE_FIXED: "7" } });
  const put = (server: typeof one, name: string, json: object) =>
    server.ask(`/v1/lanes/${name}`, { method: "PUT", json });
  expect((await put(one, "crawl", { concurrency: 3, total: 9 })).status).toBe(200);
  const { taskId } = (await other.ask("/tasks", { json: { message: "x", lane: "crawl" } })).body;
  expect((await one.ask(`/tasks/${taskId}`)).body.lane).toBe("crawl");
  const laneOf = async (server: typeof one, wanted: string) =>
    (await server.ask("/v1/lanes")).body.lanes.find(({ name }: { name: string }) => name === wanted);
  expect(await laneOf(other, "crawl")).toMatchObject({ concurrency: 3, total: 9 });
  expect((await put(other, "fixed", { concurrency: 1 })).body.code).toBe("conflict");
  const next = await startServer({ storage: database.url, environment: { ROTA_LANE_CRAWL: "5" } });
  expect(await laneOf(next, "crawl")).toMatchObject({ concurrency: 5 });
});
