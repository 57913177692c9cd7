import { connect } from "node:net";
import { expect, test, vi } from "vitest";
import { openTestServer } from "../../../test/support/http.ts";
import { settle } from "../../testing/manual-clock.ts";
import { Latch, until } from "../../testing/signals.ts";
import { listen } from "../listen.ts";

/** A server with one task that runs until the latch opens. */
async function startBusy() {
  const made = await openTestServer();
  const latch = new Latch<unknown>();
  made.rota.agent("slow", () => latch.opened);
  const { taskId } = (await made.ask("/tasks", { json: { agentId: "slow", payload: 1 } })).body;
  await until(async () => (await made.rota.tasks.get(taskId)).state === "running");
  return { ...made, latch, taskId: taskId as string };
}

test.each(["", "/v1"])("%s/tasks/{id}?wait responds as soon as the task has ended", async (prefix) => {
  const { ask, latch, taskId } = await startBusy();
  const answer = ask(`${prefix}/tasks/${taskId}?wait=60`);
  await settle();
  latch.open("at last");
  expect(await answer).toMatchObject({ status: 200, body: { taskId, state: "done", result: "at last" } });
  expect((await ask(`/tasks/${taskId}?wait=1`)).body.state).toBe("done");
});

test("responds with the current task once the time is over", async () => {
  const { ask, clock, latch, taskId, served } = await startBusy();
  const waited = vi.spyOn(served.tasks, "wait");
  const answer = ask(`/tasks/${taskId}?wait=5`);
  await until(() => waited.mock.calls.length === 1);
  await clock.advance(5_000);
  expect(await answer).toMatchObject({ status: 200, body: { taskId, state: "running" } });
  latch.open(null);
});

test.each(["0", "61", "-1", "1.5", "x", "", "1e1", "5&wait=6"])(
  "refuses to wait %s seconds",
  async (wait) => {
    const { ask } = await openTestServer({ start: false });
    const { status, body } = await ask(`/tasks/tsk_1?wait=${wait}`);
    expect([status, body.code, body.details]).toEqual([400, "invalid_field", { field: "wait" }]);
    expect(body.error).toMatch(/^`wait` must be an integer of seconds from 1 to 60, not /);
  },
);

test("responds at once for a task that does not exist", async () => {
  const { ask } = await openTestServer({ start: false });
  expect(await ask("/tasks/tsk_none?wait=60")).toMatchObject({
    status: 404,
    body: { code: "not_found", error: "task not found" },
  });
});

test("stops waiting when the caller disconnects", async () => {
  const { url, latch, taskId, served, log } = await startBusy();
  const waited = vi.spyOn(served.tasks, "wait");
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.write(`GET /tasks/${taskId}?wait=60 HTTP/1.1\r\nHost: localhost\r\n\r\n`);
  await until(() => waited.mock.calls.length === 1);
  socket.destroy();
  await until(() => waited.mock.calls[0]?.[1]?.signal?.aborted === true, "the wait to end");
  expect(log.messages()).toEqual([]);
  latch.open(null);
});

test("waits on while the node drains, whether it began before or after, and learns how the task ends", async () => {
  const { ask, latch, taskId, rota, served } = await startBusy();
  const waited = vi.spyOn(served.tasks, "wait");
  const before = ask(`/tasks/${taskId}?wait=60`);
  await until(() => waited.mock.calls.length === 1);
  const drained = rota.drain();
  const after = ask(`/tasks/${taskId}?wait=60`);
  await until(() => waited.mock.calls.length === 2);
  await settle();
  latch.open("at last");
  for (const answer of [before, after]) {
    expect(await answer).toMatchObject({ status: 200, body: { taskId, state: "done", result: "at last" } });
  }
  await drained;
});

test("is over after its own time, also while the node drains", async () => {
  const { ask, clock, latch, taskId, rota, served } = await startBusy();
  const waited = vi.spyOn(served.tasks, "wait");
  const drained = rota.drain();
  const answer = ask(`/tasks/${taskId}?wait=5`);
  await until(() => waited.mock.calls.length === 1);
  await clock.advance(5_000);
  expect(await answer).toMatchObject({ status: 200, body: { taskId, state: "running" } });
  latch.open(null);
  await drained;
});

test("gets its response when the server closes, and does not delay the close", async () => {
  const { latch, taskId, rota, log, served } = await startBusy();
  const waited = vi.spyOn(served.tasks, "wait");
  const server = await listen({ rota, log, host: "127.0.0.1", port: 0 });
  const answer = fetch(`${server.url}/tasks/${taskId}?wait=60`);
  await until(() => waited.mock.calls.length === 1);
  await server.close();
  expect(await (await answer).json()).toMatchObject({ taskId, state: "running" });
  latch.open(null);
});
