import { expect, test } from "vitest";
import { openKeyedServer } from "../../test/support/keyed-server.ts";

const AGENTS = { scout: { executor: { type: "echo" } } } as const;

/** A server with keys, and the ids of two of them. */
async function open() {
  const server = await openKeyedServer({ options: { agents: AGENTS }, start: false });
  const { rota, key } = server;
  const operator = await key({ role: "operator", name: "gateway" });
  const agent = await key({ role: "agent", agentId: "scout", name: "scout" });
  const { keys } = await rota.keys.list();
  const idOf = (name: string) => keys.find((each) => each.name === name)?.id as string;
  return { ...server, operator, agent, ids: { operator: idOf("gateway"), agent: idOf("scout") } };
}

test("a task says which key submitted it, and how", async () => {
  const { askWith, operator, agent, ids } = await open();
  const submit = async (key: string, headers: Record<string, string> = {}) => {
    const { status, body } = await askWith(key, "/tasks", { json: { message: "hi" }, headers });
    expect(status).toBe(202);
    return (await askWith(key, `/tasks/${body.taskId}`)).body.createdBy;
  };
  expect(await submit(operator)).toEqual({ keyId: ids.operator, agentId: null, via: "http" });
  expect(await submit(agent)).toEqual({ keyId: ids.agent, agentId: "scout", via: "http" });
  const headers = { "x-rota-via": "cli", "x-rota-client": "rota/1.0\t" };
  expect(await submit(operator, headers)).toEqual({
    ...{ keyId: ids.operator, agentId: null, via: "cli", client: "rota/1.0" },
  });
  const { body } = await askWith(operator, "/tasks?view=row");
  expect(body.tasks.every((task: object) => !("createdBy" in task))).toBe(true);
});

test("tasks of a batch, messages, copies of tasks, schedules and their runs say who made them", async () => {
  const { askWith, operator, ids, rota } = await open();
  const createdBy = { keyId: ids.operator, agentId: null, via: "http" };
  const post = async (path: string, json: object) => (await askWith(operator, path, { json })).body;
  const batch = await post("/tasks/batch", { tasks: [{ payload: 1 }] });
  const message = await post("/v1/sessions/s/messages", { message: "hi" });
  const copy = await post(`/tasks/${batch.taskIds[0]}/submit-again`, { payload: 2 });
  for (const id of [batch.taskIds[0], message.taskId, copy.taskId]) {
    expect((await rota.tasks.get(id)).createdBy).toEqual(createdBy);
  }
  const { scheduled_task: made } = await post("/v1/schedules", { schedule: "every hour", message: "hi" });
  expect(made.created_by).toEqual({ key_id: ids.operator, agent_id: null, via: "http" });
  await post(`/v1/schedules/${made.id}/run`, {});
  const [run] = (await rota.tasks.list({ scheduleId: made.id })).tasks;
  expect(run?.createdBy).toEqual({ ...createdBy, via: "schedule" });
  await post("/v1/writs", { text: "/schedule every day: look" });
  const { schedules } = await rota.schedules.list();
  expect(schedules[0]?.created_by).toEqual({ key_id: ids.operator, agent_id: null, via: "writ" });
});

test("the audit log says how a change came in", async () => {
  const { askWith, operator, ids, rota } = await open();
  await askWith(operator, "/tasks", { json: { message: "hi" }, headers: { "x-rota-via": "dashboard" } });
  const { entries } = await rota.audit.list();
  expect(entries.find(({ route }) => route === "POST /tasks")).toMatchObject({
    createdBy: { keyId: ids.operator, agentId: null, via: "dashboard" },
  });
  expect((await rota.doctor()).checks.filter(({ ok }) => !ok)).toEqual([]);
});

test("a client cannot call itself a writ", async () => {
  const { askWith, operator } = await open();
  const headers = { "x-rota-via": "writ" };
  const { status, body } = await askWith(operator, "/tasks", { json: { message: "hi" }, headers });
  expect([status, body.code]).toEqual([400, "invalid_field"]);
  expect(body.error).toBe("the header `X-Rota-Via` must be one of http, mcp, cli, worker, dashboard");
});

test("what the embedding program makes is made by the library", async () => {
  const { rota } = await open();
  const { taskId } = await rota.tasks.submit({ message: "hi" });
  expect((await rota.tasks.get(taskId)).createdBy).toEqual({ keyId: null, agentId: null, via: "library" });
});
