import { expect, test } from "vitest";
import { openTestServer } from "../../../test/support/http.ts";
import { agent, agentList, deletedAgent } from "../../api/agents.ts";
import { errorAnswer } from "../../api/error.ts";

const URL = "https://agents.example.com/research";

test("an agent is made, listed, shown, changed and forgotten", async () => {
  const { ask } = await openTestServer({ options: { agents: { fixed: { lane: "main" } } } });
  const executor = { type: "http", url: URL };
  const made = await ask("/v1/agents", { json: { id: "research", executor, maxInflight: 2 } });
  const expected = { id: "research", executor, maxInflight: 2, source: "stored" };
  expect([made.status, agent.parse(made.body)]).toEqual([201, expected]);

  const listed = await ask("/v1/agents");
  expect([listed.status, agentList.parse(listed.body).count]).toEqual([200, 3]);
  expect(listed.body.agents.map(({ id, source }: { id: string; source: string }) => [id, source])).toEqual([
    ["fixed", "config"],
    ["index", "built-in"],
    ["research", "stored"],
  ]);
  expect(agent.parse((await ask("/v1/agents/research")).body)).toEqual(expected);

  const changed = await ask("/v1/agents/research", {
    method: "PATCH",
    json: { maxInflight: null, lane: "main" },
  });
  expect([changed.status, agent.parse(changed.body)]).toEqual([
    200,
    { id: "research", executor, lane: "main", source: "stored" },
  ]);

  const forgotten = await ask("/v1/agents/research", { method: "DELETE" });
  expect([forgotten.status, deletedAgent.parse(forgotten.body)]).toEqual([200, { deleted: true }]);
  expect((await ask("/v1/agents/research")).status).toBe(404);
});

test.each(["team/a", "mail:a@example.com", "a.b-c_d", "/", "@"])(
  "an agent called %s is reached by its name, URL-encoded",
  async (id) => {
    const { ask } = await openTestServer({ start: false });
    expect((await ask("/v1/agents", { json: { id } })).status).toBe(201);
    const path = `/v1/agents/${encodeURIComponent(id)}`;
    expect((await ask(path)).body).toMatchObject({ id });
    expect(
      (await ask(path, { method: "PATCH", json: { maxQueued: 5, contextWindow: 8_000 } })).body,
    ).toMatchObject({
      id,
      maxQueued: 5,
      contextWindow: 8_000,
    });
    expect((await ask(path, { method: "DELETE" })).status).toBe(200);
    expect((await ask(path)).status).toBe(404);
  },
);

test.each([
  ["POST", "/v1/agents", { id: "index" }, 409, "conflict"],
  ["POST", "/v1/agents", { id: "fixed" }, 409, "conflict"],
  ["PATCH", "/v1/agents/fixed", { lane: "main" }, 409, "conflict"],
  ["DELETE", "/v1/agents/fixed", undefined, 409, "conflict"],
  ["GET", "/v1/agents/unknown", undefined, 404, "not_found"],
  ["PATCH", "/v1/agents/unknown", { lane: "main" }, 404, "not_found"],
  ["DELETE", "/v1/agents/unknown", undefined, 404, "not_found"],
  ["GET", "/v1/agents/a%00b", undefined, 404, "not_found"],
  ["GET", "/v1/agents/%F0%9F%A6%89", undefined, 404, "not_found"],
  ["POST", "/v1/agents", {}, 400, "invalid_field"],
  ["POST", "/v1/agents", { id: "a\nb" }, 400, "invalid_field"],
  ["POST", "/v1/agents", { id: "a", source: "stored" }, 400, "invalid_field"],
  ["POST", "/v1/agents", { id: "a", maxInflight: 0 }, 400, "invalid_field"],
  ["POST", "/v1/agents", { id: "a", executor: { type: "command" } }, 400, "invalid_field"],
  [
    "POST",
    "/v1/agents",
    { id: "a", executor: { type: "http", url: "http://127.0.0.1:1" } },
    400,
    "invalid_field",
  ],
  ["POST", "/v1/agents", [], 400, "invalid_field"],
  ["POST", "/v1/agents", null, 400, "invalid_field"],
  ["PATCH", "/v1/agents/stored", { id: "b" }, 400, "invalid_field"],
  ["PATCH", "/v1/agents/stored", null, 400, "invalid_field"],
  ["DELETE", "/v1/agents/stored", { force: true }, 400, "invalid_field"],
])("%s %s with %j is refused and changes nothing", async (method, path, json, status, code) => {
  const { ask } = await openTestServer({ start: false, options: { agents: { fixed: {} } } });
  await ask("/v1/agents", { json: { id: "stored", maxQueued: 7 } });
  const before = (await ask("/v1/agents")).body;
  const answer = await ask(path, { method, ...(json === undefined ? {} : { json }) });
  expect([answer.status, errorAnswer.parse(answer.body).code]).toEqual([status, code]);
  expect((await ask("/v1/agents")).body).toEqual(before);
});

test("a task runs as its agent says from the moment the agent is known", async () => {
  const { ask, rota } = await openTestServer();
  await ask("/v1/agents", { json: { id: "parrot", executor: { type: "echo" }, lane: "main" } });
  const { taskId } = (await ask("/tasks", { json: { agentId: "parrot", payload: "hello" } })).body;
  expect(await rota.tasks.wait(taskId)).toMatchObject({ state: "done", lane: "main", result: "hello" });
});
