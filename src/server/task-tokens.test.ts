import { expect, test } from "vitest";
import { openKeyedServer } from "../../test/support/keyed-server.ts";
import { RotaWorker } from "../client/worker/rota-worker.ts";
import type { ExecutorContext } from "../executors/executor.ts";
import type { AgentOptions } from "../interface/options.ts";
import { Latch, until } from "../testing/signals.ts";

interface Params {
  readonly scout?: AgentOptions;
  readonly writer?: AgentOptions;
}

/** A server on which `scout` and `writer` run until the test ends them. */
async function open({ scout = {}, writer = {} }: Params = {}) {
  const server = await openKeyedServer();
  const { rota, key, askWith, ask: bare } = server;
  const contexts = new Map<string, ExecutorContext>();
  const latches = new Map<string, Latch<unknown>>();
  const handler = (task: { taskId: string }, context: ExecutorContext) => {
    contexts.set(task.taskId, context);
    const latch = new Latch<unknown>();
    latches.set(task.taskId, latch);
    return latch.opened;
  };
  rota.agent("scout", scout, handler);
  rota.agent("writer", writer, handler);
  const operator = await key({ role: "operator", name: "gateway" });
  /** Runs a task of an agent. Returns its id and the context of its handler. */
  const run = async (taskId: string) => {
    await until(() => contexts.has(taskId));
    return { taskId, context: contexts.get(taskId) as ExecutorContext };
  };
  const begin = async (agentId = "scout", by = operator) =>
    run((await askWith(by, "/tasks", { json: { agentId, message: "go" } })).body.taskId);
  const end = async (taskId: string, result: unknown = null) => {
    latches.get(taskId)?.open(result);
    await until(async () => (await rota.tasks.get(taskId)).state === "done");
  };
  const withToken = (
    context: ExecutorContext,
    path: string,
    init: { json?: object; headers?: object } = {},
  ) => bare(path, { ...init, headers: { ...init.headers, "x-rota-task-token": context.taskToken } });
  return { ...server, operator, begin, run, end, withToken };
}

test("what is submitted with a task token is a child of the task, for its agent", async () => {
  const { begin, run, withToken, rota } = await open();
  const root = await begin();
  const { status, body } = await withToken(root.context, "/tasks", { json: { message: "part" } });
  expect(status).toBe(202);
  const child = await rota.tasks.get(body.taskId);
  const { keyId } = (await rota.tasks.get(root.taskId)).createdBy ?? {};
  expect(child).toMatchObject({
    agentId: "scout",
    createdBy: { keyId, agentId: "scout", via: "http" },
    parentTaskId: root.taskId,
    rootTaskId: root.taskId,
    depth: 1,
  });
  const below = await run(body.taskId);
  const grand = await withToken(below.context, "/tasks", { json: { message: "part" } });
  expect(await rota.tasks.get(grand.body.taskId)).toMatchObject({
    ...{ parentTaskId: body.taskId, rootTaskId: root.taskId, depth: 2 },
  });
  const { tasks } = await rota.tasks.list({ rootTaskId: root.taskId });
  expect(tasks.map(({ taskId }) => taskId)).toEqual([grand.body.taskId, body.taskId]);
  const audited = (await rota.audit.list()).entries.find(({ subject }) => subject === grand.body.taskId);
  expect(audited).toMatchObject({ createdBy: { agentId: "scout" }, parentTaskId: body.taskId, depth: 2 });
});

test("a token has the rights of its agent: it sees and changes the work of that agent alone", async () => {
  const { begin, withToken, rota } = await open();
  const { context, taskId } = await begin();
  const other = await rota.tasks.submit({ agentId: "writer", message: "hi" });
  expect((await withToken(context, `/tasks/${other.taskId}`)).status).toBe(404);
  expect((await withToken(context, "/tasks")).body.tasks).toMatchObject([{ taskId }]);
  expect((await withToken(context, `/tasks/${other.taskId}/cancel`, { json: {} })).status).toBe(404);
  for (const path of ["/v1/keys", "/v1/lanes", "/v1/audit", "/tasks/stats"]) {
    expect((await withToken(context, path)).status, path).toBe(403);
  }
  const schedule = { schedule: "every hour", message: "look" };
  const refused = await withToken(context, "/v1/schedules", { json: schedule });
  expect([refused.status, refused.body.error]).toEqual([403, expect.stringContaining("`writs: true`")]);
});

test("it submits to the delegates of its agent, and to no others", async () => {
  const { begin, withToken, rota } = await open({ scout: { delegates: ["writer"] } });
  const { context } = await begin();
  const submit = (agentId: string) => withToken(context, "/tasks", { json: { agentId, message: "hi" } });
  const { status, body } = await submit("writer");
  expect(status).toBe(202);
  expect((await rota.tasks.get(body.taskId)).agentId).toBe("writer");
  const refused = await submit("index");
  expect([refused.status, refused.body.error]).toEqual([
    403,
    'a task of the agent "scout" may not submit to "index": name "scout" or "writer", or add "index" to `delegates` of "scout" (a task reaches no further than its submitter)',
  ]);
  const batch = { agentId: "writer", tasks: [{ message: "a" }, { agentId: "scout", message: "b" }] };
  expect((await withToken(context, "/tasks/batch", { json: batch })).status).toBe(202);
});

test("with `*` it submits to all, and a delegate reaches no further than who submitted its task", async () => {
  const { begin, run, withToken, key, askWith } = await open({
    scout: { delegates: ["writer"] },
    writer: { delegates: ["*"] },
  });
  const submit = async (context: ExecutorContext, agentId: string) =>
    withToken(context, "/tasks", { json: { agentId, message: "hi" } });
  const free = await begin("writer");
  expect((await submit(free.context, "anyone")).status).toBe(202);
  // The writer works for the scout here, and the scout reaches only the writer.
  const scout = await begin("scout");
  const writer = await run((await submit(scout.context, "writer")).body.taskId);
  expect((await submit(writer.context, "scout")).status).toBe(202);
  expect((await submit(writer.context, "anyone")).status).toBe(403);
  // A key for one agent reaches that agent alone, and so does the task.
  const own = await key({ role: "agent", agentId: "scout" });
  const { taskId } = (await askWith(own, "/tasks", { json: { message: "hi" } })).body;
  expect((await submit((await run(taskId)).context, "writer")).status).toBe(403);
});

test("it dies with its attempt", async () => {
  const { begin, end, withToken, rota } = await open();
  const { context, taskId } = await begin();
  const { taskToken } = context;
  await end(taskId);
  const { status, body } = await withToken({ ...context, taskToken }, "/tasks", { json: { message: "x" } });
  expect([status, body.code]).toEqual([401, "unauthorized"]);
  expect(body.error).toMatch(/^this task token is not valid/);
  const cancelled = await begin();
  await rota.tasks.cancel(cancelled.taskId);
  expect((await withToken(cancelled.context, "/tasks")).status).toBe(401);
  await expect(cancelled.context.submit({ message: "x" })).rejects.toThrow("the attempt is over");
});

test("it is refused once the key that submitted its task is deleted", async () => {
  const { begin, withToken, key, rota } = await open();
  const { context } = await begin("scout", await key({ role: "operator", name: "short" }));
  expect((await withToken(context, "/tasks")).status).toBe(200);
  const { keys } = await rota.keys.list();
  await rota.keys.delete(keys.find(({ name }) => name === "short")?.id ?? "");
  expect((await withToken(context, "/tasks")).status).toBe(401);
});

test("so is what its handler makes, and the same once that key has expired", async () => {
  const { begin, withToken, rota, key, clock } = await open({ scout: { writs: true } });
  const deleted = await begin("scout", await key({ role: "operator", name: "short" }));
  const { keys } = await rota.keys.list();
  await rota.keys.delete(keys.find(({ name }) => name === "short")?.id ?? "");
  const refused = { code: "forbidden", message: expect.stringContaining("was deleted or has expired") };
  await expect(deleted.context.schedule({ schedule: "in an hour", message: "x" })).rejects.toMatchObject(
    refused,
  );
  await expect(deleted.context.submit({ message: "x" })).rejects.toMatchObject(refused);
  const expiresAt = new Date(clock.now() + 60_000).toISOString();
  const { context } = await begin("scout", await key({ role: "operator", name: "brief", expiresAt }));
  expect((await withToken(context, "/tasks")).status).toBe(200);
  await clock.advance(60_000);
  expect((await withToken(context, "/tasks")).status).toBe(401);
  await expect(context.say("chat", { message: "x" })).rejects.toMatchObject(refused);
});

test("a forged token is refused, with and without a key", async () => {
  const { begin, ask, askWith, operator } = await open();
  const { taskToken } = (await begin()).context;
  const forged = [`${taskToken.slice(0, -1)}_`, "rtt_x", "", taskToken.replace("rtt_", "rtt_A")];
  for (const token of forged) {
    const headers = { "x-rota-task-token": token };
    expect((await ask("/tasks", { headers })).status, token).toBe(401);
    expect((await askWith(operator, "/tasks", { headers })).status, token).toBe(401);
  }
});

test("with a key beside it, a request may do what both may", async () => {
  const { begin, askWith, key, operator, rota } = await open({ scout: { delegates: ["writer"] } });
  const { context, taskId } = await begin();
  await rota.tasks.submit({ agentId: "writer", message: "hi" });
  const headers = { "x-rota-task-token": context.taskToken };
  const submit = (by: string, agentId = "scout") =>
    askWith(by, "/tasks", { json: { agentId, message: "hi" }, headers });
  const viewer = await key({ role: "viewer" });
  expect((await submit(viewer)).status).toBe(403);
  expect((await askWith(viewer, "/tasks", { headers })).body.count).toBe(1);
  expect((await askWith(operator, "/tasks", { headers })).body.count).toBe(1);
  expect((await askWith(operator, "/v1/lanes", { headers })).status).toBe(403);
  const made = await submit(operator, "writer");
  expect(made.status).toBe(202);
  expect((await rota.tasks.get(made.body.taskId)).parentTaskId).toBe(taskId);
  const own = await key({ role: "agent", agentId: "scout" });
  expect((await submit(own)).status).toBe(202);
  expect((await submit(own, "writer")).status).toBe(403);
  const { body } = await submit(await key({ role: "agent", agentId: "writer" }));
  expect([body.code, body.error]).toEqual([
    "forbidden",
    expect.stringContaining("different tenants or agents"),
  ]);
  expect((await submit(await key({ role: "worker", agents: ["scout"] }))).status).toBe(403);
});

test("with a key beside it, the stricter of both bounds holds", async () => {
  const { begin, askWith, key } = await open();
  const { context } = await begin("scout", await key({ bounds: { maxOpenTasks: 1 } }));
  const beside = await key({ role: "agent", agentId: "scout", bounds: { maxOpenTasks: 9 } });
  const headers = { "x-rota-task-token": context.taskToken };
  const submit = () => askWith(beside, "/tasks", { json: { message: "hi" }, headers });
  expect((await submit()).status).toBe(202);
  expect((await submit()).body).toMatchObject({ code: "quota_exceeded", details: { max: 1 } });
});

test("a key beside it does not widen the bounds that its agent, or the defaults, give it", async () => {
  const { begin, askWith, key } = await open({ scout: { writs: true, bounds: { maxOpenTasks: 1 } } });
  const { context } = await begin();
  const lax = { maxOpenTasks: 9, minIntervalS: null, horizonDays: 36_500 };
  const beside = await key({ role: "agent", agentId: "scout", bounds: lax });
  const headers = { "x-rota-task-token": context.taskToken };
  const send = async (path: string, json: object) => (await askWith(beside, path, { json, headers })).body;
  expect(await send("/v1/schedules", { schedule: "every minute", message: "hi" })).toMatchObject({
    code: "interval_too_short",
    details: { min: 300 },
  });
  const later = { message: "hi", runAt: "2100-01-01T00:00:00Z" };
  expect((await send("/tasks", later)).error).toContain("more than 90 days ahead");
  expect(await send("/tasks", { message: "hi" })).toHaveProperty("taskId");
  expect(await send("/tasks", { message: "hi" })).toMatchObject({
    code: "quota_exceeded",
    details: { max: 1 },
  });
});

test("it acts in its own tenant, and not beside a key of another", async () => {
  const { rota, key, askWith, run, withToken, operator } = await open();
  const { id: tenantId } = await rota.tenants.create({ name: "acme" });
  const acme = await key({ role: "operator", tenantId });
  const made = (await askWith(acme, "/tasks", { json: { agentId: "scout", message: "hi" } })).body;
  const { context } = await run(made.taskId);
  const child = (await withToken(context, "/tasks", { json: { message: "part" } })).body;
  expect((await rota.tenant(tenantId).tasks.get(child.taskId)).parentTaskId).toBe(made.taskId);
  await expect(rota.tasks.get(child.taskId)).rejects.toMatchObject({ code: "not_found" });
  const headers = { "x-rota-task-token": context.taskToken };
  expect((await askWith(operator, "/tasks", { headers })).status).toBe(403);
});

test("what a handler makes through its context names its task, and goes to any agent of the tenant", async () => {
  const { begin, rota } = await open();
  const { context, taskId } = await begin();
  const createdBy = { agentId: "scout", via: "library" };
  const submitted = await context.submit({ agentId: "writer", message: "part" });
  expect(await rota.tasks.get(submitted.taskId)).toMatchObject({ createdBy, parentTaskId: taskId, depth: 1 });
  expect((await rota.tasks.get((await context.submit({ message: "part" })).taskId)).agentId).toBe("scout");
  const said = await context.say("chat", { message: "hello" });
  expect(await rota.tasks.get(said.taskId ?? "")).toMatchObject({ createdBy, parentTaskId: taskId });
  const { scheduled_task: made } = await context.schedule({ schedule: "in 10 minutes", message: "again" });
  expect(await rota.schedules.get(made.id)).toMatchObject({
    ...{ agent_id: "scout", parent_task_id: taskId, root_task_id: taskId, depth: 1 },
    created_by: { agent_id: "scout", via: "library" },
  });
});

test("a token never shows up in results, errors, progress or log lines", async () => {
  const { begin, end, rota, log, clock } = await open();
  const { context, taskId } = await begin();
  const { taskToken } = context;
  context.log.info({ taskToken }, `mine is ${taskToken}`);
  context.progress({ taskToken });
  await end(taskId, { nested: [taskToken], text: `x ${taskToken}` });
  const task = await rota.tasks.get(taskId);
  expect(task.result).toEqual({ nested: ["…"], text: "x …" });
  await clock.advance(1_000);
  await until(async () => (await rota.tasks.logs(taskId)).lines.length > 0);
  const everything = JSON.stringify([
    ...[task, await rota.tasks.logs(taskId), await rota.eventPage(), await rota.audit.list()],
    ...[await rota.tasks.list()],
  ]);
  expect(everything).not.toContain(taskToken);
  expect(JSON.stringify(log.lines)).not.toContain(taskToken);
});

test("with `writs`, an agent makes and changes its own schedules with its token", async () => {
  const { begin, withToken, rota } = await open({ scout: { writs: true } });
  const { context, taskId } = await begin();
  const input = { schedule: "every hour", message: "look" };
  const made = (await withToken(context, "/v1/schedules", { json: input })).body.scheduled_task;
  expect(made).toMatchObject({
    agent_id: "scout",
    parent_task_id: taskId,
    created_by: { agent_id: "scout" },
  });
  const other = await rota.schedules.create({ ...input, agent: "writer" });
  const change = (id: number, json: object) =>
    withToken(context, `/v1/schedules/${id}`, { json, ...{ method: "PATCH" } });
  expect((await change(made.id, { status: "paused" })).body.scheduled_task.status).toBe("paused");
  expect((await change(made.id, { agent: "writer" })).status).toBe(403);
  expect((await change(other.scheduled_task.id, { status: "paused" })).status).toBe(404);
  const named = await withToken(context, "/v1/schedules", { json: { ...input, agent: "writer" } });
  expect(named.status).toBe(403);
});

test("its writs have the same bounds and need the same permission as other calls with it", async () => {
  const { begin, withToken, askWith, key, rota } = await open({ scout: { writs: true } });
  const { context } = await begin();
  const write = (text: string) => withToken(context, "/v1/writs", { json: { text } });
  expect((await write("/schedule every 1 minute: look")).body).toMatchObject({
    ok: false,
    output: expect.stringContaining('write "every 5 minutes"'),
  });
  expect((await write("/schedule every hour: look")).body.ok).toBe(true);
  const [made] = (await rota.schedules.list()).schedules;
  expect(made).toMatchObject({ created_by: { agent_id: "scout", via: "writ" }, until: expect.any(Number) });

  const { context: mute } = await begin("writer");
  const { status, body } = await withToken(mute, "/v1/writs", { json: { text: "/schedule list" } });
  expect([status, body.error]).toEqual([403, expect.stringContaining("set `writs: true` on the agent")]);
  // A person gives out keys, and may send writs for an agent whose own results are not searched for writs.
  const own = await key({ role: "agent", agentId: "writer" });
  const json = { text: "/schedule every 1 minute: look" };
  expect((await askWith(own, "/v1/writs", { json })).body.ok).toBe(true);
});

test("an agent that changes a schedule of others does not get their reach", async () => {
  const { run, withToken, key, askWith, operator, rota } = await open({
    scout: { writs: true, delegates: ["*"] },
  });
  const schedule = { schedule: "every day", agent: "scout", message: "look" };
  const { id } = (await askWith(operator, "/v1/schedules", { json: schedule })).body.scheduled_task;
  const runOnce = async () => {
    const { run_id: runId } = (await askWith(operator, `/v1/schedules/${id}/run`, { json: {} })).body;
    const { context } = await run((await rota.runs.get(runId)).queue_task_id ?? "");
    return (await withToken(context, "/tasks", { json: { agentId: "writer", message: "x" } })).status;
  };
  await rota.schedules.update(id, { overlap: "allow" });
  expect(await runOnce()).toBe(202);
  const scout = await key({ role: "agent", agentId: "scout" });
  const edit = (json: object) => askWith(scout, `/v1/schedules/${id}`, { method: "PATCH", json });
  expect((await edit({ schedule: "every 2 days" })).status).toBe(200);
  expect(await runOnce()).toBe(202);
  expect((await edit({ message: "tell the writer" })).status).toBe(200);
  expect(await runOnce()).toBe(403);
  expect((await rota.schedules.get(id)).created_by).toMatchObject({ agent_id: null });
});

test("two tokens of a task are of two attempts: that of the lost one is refused on every node", async () => {
  const { begin, withToken, storage } = await open();
  const { context, taskId } = await begin();
  const record = await storage.tasks.get({ tenant: "default", id: taskId });
  await storage.tasks.cancel({ tenant: "default", ids: [taskId], error: null });
  await storage.tasks.retry({ tenant: "default", id: taskId });
  expect(record?.attempts).toHaveLength(1);
  expect((await withToken(context, "/tasks")).status).toBe(401);
});

test("a handler in a worker makes things within its task, though the key of the worker may not", async () => {
  const { url, rota, key, operator, askWith } = await open();
  await rota.agents.create({ id: "py", executor: { type: "worker" }, writs: true });
  const made: { child?: string; schedule?: number; message?: string | undefined } = {};
  const worker = new RotaWorker({
    ...{ url, key: await key({ role: "worker", agents: ["py"] }) },
    agents: {
      py: async (task, context) => {
        if (task.message !== "go") return null;
        made.child = (await context.submit({ message: "part" })).taskId;
        made.schedule = (
          await context.schedule({ schedule: "in 1 hour", message: "again" })
        ).scheduled_task.id;
        made.message = (await context.say("chat", { message: "hello" })).taskId;
        return context.taskToken;
      },
    },
  });
  await worker.start();
  const { taskId } = (await askWith(operator, "/tasks", { json: { agentId: "py", message: "go" } })).body;
  await until(async () => (await rota.tasks.get(taskId)).state === "done");
  await worker.stop({ graceMs: 0 });
  expect((await rota.tasks.get(taskId)).result).toBe("…");
  const within = { parentTaskId: taskId, createdBy: { agentId: "py", via: "worker" } };
  expect(await rota.tasks.get(made.child ?? "")).toMatchObject({ agentId: "py", ...within });
  expect(await rota.tasks.get(made.message ?? "")).toMatchObject(within);
  expect(await rota.schedules.get(made.schedule ?? 0)).toMatchObject({
    agent_id: "py",
    parent_task_id: taskId,
  });
});
