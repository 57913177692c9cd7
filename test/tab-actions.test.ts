import { expect, onTestFinished, test } from "vitest";
import { createRota, type Rota } from "../src/index.ts";
import { createTestRota, nextEvent, until } from "../src/testing/index.ts";
import { eventually, startServer } from "./end-to-end/server-process.ts";
import { hang, json, PinchTab } from "./support/pinchtab.ts";

/** A PinchTab server with a tab, and a running Rota that does actions in it. Its clock stands still. */
async function openBrowser() {
  const pinchTab = await PinchTab.start();
  const url = await pinchTab.startInstance("inst_1");
  pinchTab.openTab("tab-1", "inst_1");
  const { rota, clock } = await createTestRota({ executors: { action: { type: "tab-action", url } } });
  onTestFinished(() => rota.stop({ graceMs: 0 }));
  await rota.start();
  return { pinchTab, rota, clock };
}

const click = { agentId: "crawler", action: "click", tabId: "tab-1" } as const;

test("each agent acts in its own name", async () => {
  const { pinchTab, rota } = await openBrowser();
  const agents = ["agent-crawl-01", "team/a@b:c_d.e", "x"];
  for (const agentId of agents) {
    const { taskId } = await rota.tasks.submit({ ...click, agentId, ref: "e14" });
    expect(await rota.tasks.wait(taskId)).toMatchObject({
      state: "done",
      result: { success: true, by: "inst_1" },
    });
  }
  expect(pinchTab.seen.map(({ headers }) => headers["x-agent-id"])).toEqual(agents);
});

test("an action without a deadline has 60 seconds, and is then dropped", async () => {
  const { pinchTab, rota, clock } = await openBrowser();
  pinchTab.onAction = hang;
  const { taskId } = await rota.tasks.submit({ ...click, retryPolicy: { maxRetries: 5 } });
  await until(() => pinchTab.seen.length === 1);
  await clock.advance(59_999);
  expect(await rota.tasks.get(taskId)).toMatchObject({ state: "running" });
  await clock.advance(1);
  expect(await rota.tasks.wait(taskId)).toMatchObject({
    state: "failed",
    error: "deadline exceeded",
    latencyMs: 60_000,
    retryCount: 0,
  });
  await pinchTab.seen[0]?.dropped;
  expect(pinchTab.seen).toHaveLength(1);
});

test("an action with a deadline of its own is dropped then, also during its response", async () => {
  const { pinchTab, rota, clock } = await openBrowser();
  pinchTab.onAction = (response) => response.writeHead(200).write('{"success":');
  const deadline = new Date(clock.now() + 2_000).toISOString();
  const { taskId } = await rota.tasks.submit({ ...click, deadline });
  await until(() => pinchTab.seen.length === 1);
  await clock.advance(2_000);
  expect(await rota.tasks.wait(taskId)).toMatchObject({ state: "failed", error: "deadline exceeded" });
  await pinchTab.seen[0]?.dropped;
});

test("a deadline that passes while the tab is looked for drops the question", async () => {
  const { pinchTab, rota, clock } = await openBrowser();
  pinchTab.answers.set("/instances/tabs", hang);
  rota.agent("finder", { executor: { type: "tab-action", url: pinchTab.url, resolver: "pinchtab" } });
  const deadline = new Date(clock.now() + 5_000).toISOString();
  const { taskId } = await rota.tasks.submit({ ...click, agentId: "finder", deadline });
  await until(() => pinchTab.seen.length === 1);
  await clock.advance(5_000);
  expect(await rota.tasks.wait(taskId)).toMatchObject({ state: "failed", error: "deadline exceeded" });
  await pinchTab.seen[0]?.dropped;
});

test("a timeout ends an attempt, and the next one may do better", async () => {
  const { pinchTab, rota, clock } = await openBrowser();
  pinchTab.onAction = hang;
  const { taskId } = await rota.tasks.submit({ ...click, timeout: 1_000, retryPolicy: { maxRetries: 1 } });
  await until(() => pinchTab.seen.length === 1);
  pinchTab.onAction = null;
  await clock.advance(1_000);
  await pinchTab.seen[0]?.dropped;
  await clock.advance(1_000);
  expect(await rota.tasks.wait(taskId)).toMatchObject({
    state: "done",
    attempts: [{ outcome: "failed", error: "timed out after 1000 ms" }, { outcome: "done" }],
  });
});

test("a cancelled action is dropped", async () => {
  const { pinchTab, rota } = await openBrowser();
  pinchTab.onAction = hang;
  const { taskId } = await rota.tasks.submit(click);
  await until(() => pinchTab.seen.length === 1);
  await rota.tasks.cancel(taskId);
  expect(await rota.tasks.get(taskId)).toMatchObject({ state: "cancelled" });
  await pinchTab.seen[0]?.dropped;
});

test("what cannot be done is not tried again, what may be is", async () => {
  const { pinchTab, rota, clock } = await openBrowser();
  const retryPolicy = { maxRetries: 2 };
  const end = async (input: Parameters<Rota["tasks"]["submit"]>[0]) => {
    const { taskId } = await rota.tasks.submit(input);
    return rota.tasks.wait(taskId);
  };
  expect(await end({ agentId: "crawler", action: "click", retryPolicy })).toMatchObject({
    state: "failed",
    error: "tabId is required for task execution",
    retryCount: 0,
  });
  expect(await end({ ...click, tabId: "tab-2", retryPolicy })).toMatchObject({
    state: "failed",
    error: 'HTTP 404: {"error":"tab not found"}',
    retryCount: 0,
  });
  pinchTab.onAction = (response) => {
    pinchTab.onAction = null;
    response.setHeader("retry-after", "30");
    json(response, 503, { error: "busy" });
  };
  const retrying = nextEvent(rota, ({ type }) => type === "task.retrying");
  const ended = end({ ...click, retryPolicy });
  await retrying;
  await clock.advance(30_000);
  expect(await ended).toMatchObject({
    state: "done",
    retryCount: 1,
    attempts: [{ error: 'HTTP 503: {"error":"busy"}' }, { outcome: "done" }],
  });
});

test("an agent that acts in tabs does nothing else", async () => {
  const { pinchTab, rota } = await openBrowser();
  rota.agent("browser", { executor: { type: "tab-action", url: pinchTab.url } });
  const { taskId } = await rota.tasks.submit({ agentId: "browser", message: "hello" });
  expect(await rota.tasks.wait(taskId)).toMatchObject({
    state: "failed",
    error: "a tab-action executor does tasks with an `action`; this one is of kind message",
  });
});

test("a Rota that stops drops the actions that do not end in time", async () => {
  const { pinchTab, rota } = await openBrowser();
  pinchTab.onAction = hang;
  const { taskId } = await rota.tasks.submit(click);
  await until(() => pinchTab.seen.length === 1);
  await rota.drain({ graceMs: 0 });
  await pinchTab.seen[0]?.dropped;
  expect(await rota.tasks.get(taskId)).toMatchObject({ state: "failed", error: "interrupted by shutdown" });
});

test("a configuration that cannot be is refused with what to write instead", async () => {
  const refused = createRota({
    storage: "sqlite::memory:",
    executors: {
      action: { type: "tab-action", url: "http://127.0.0.1:9867", resolver: "pinchtap" as never },
    },
  });
  await expect(refused).rejects.toThrow(
    '`executors.action.resolver` must be fixed or pinchtab, not "pinchtap": did you mean `pinchtab`?',
  );
});

test("the server does the actions of its configuration, over HTTP", async () => {
  const pinchTab = await PinchTab.start();
  await pinchTab.startInstance("inst_1");
  pinchTab.openTab("tab-1", "inst_1");
  const executor = { type: "tab-action", url: pinchTab.url, resolver: "pinchtab" };
  const server = await startServer({ environment: { ROTA_EXECUTORS_ACTION: JSON.stringify(executor) } });
  const { body } = await server.ask("/tasks", { json: { ...click, params: { text: "Alan Turing" } } });
  await eventually(
    async () => (await server.ask(`/tasks/${body.taskId}`)).body.state === "done",
    "the action to be done",
  );
  expect(JSON.parse(pinchTab.seenBy("inst_1")[0]?.body ?? "")).toEqual({
    kind: "click",
    text: "Alan Turing",
  });
});
