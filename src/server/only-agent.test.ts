import { describe, expect, test } from "vitest";
import { openKeyedServer } from "../../test/support/keyed-server.ts";

const AGENTS = { scout: { executor: { type: "echo" } }, writer: { executor: { type: "echo" } } } as const;

/** A server with work of two agents, and a key for one of them. */
async function openForScout() {
  const server = await openKeyedServer({ options: { agents: AGENTS }, start: false });
  const { rota, key, askWith } = server;
  const own = await key({ role: "agent", agentId: "scout" });
  const submit = async (agentId: string) => (await rota.tasks.submit({ agentId, message: "hello" })).taskId;
  const tasks = { own: await submit("scout"), others: await submit("writer") };
  return { ...server, tasks, ask: (...args: [string, object?]) => askWith(own, ...args) };
}

describe("a key of the role agent", () => {
  test("hands in work for its agent, whether it names it or not", async () => {
    const { ask, rota } = await openForScout();
    for (const input of [{ message: "hi" }, { message: "hi", agentId: "scout" }, { action: "click" }]) {
      const { status, body } = await ask("/tasks", { json: input });
      expect(status).toBe(202);
      expect((await rota.tasks.get(body.taskId)).agentId).toBe("scout");
    }
    const { status, body } = await ask("/tasks/batch", { json: { tasks: [{ payload: 1 }, { payload: 2 }] } });
    expect(status).toBe(202);
    const batch = await rota.tasks.getBatch(body.batchId);
    expect(batch.tasks.map(({ agentId }) => agentId)).toEqual(["scout", "scout"]);
  });

  test.each([
    ["/tasks", { agentId: "writer", message: "hi" }],
    ["/v1/tasks/batch", { agentId: "writer", tasks: [{ message: "hi" }] }],
    ["/tasks/batch", { tasks: [{ message: "hi" }, { agentId: "writer", message: "hi" }] }],
    ["/v1/sessions/chat/messages", { agentId: "writer", message: "hi" }],
    ["/v1/writs", { agent: "writer", text: "/schedule list" }],
  ])("is refused when it hands in work for another: %s %j", async (path, json) => {
    const { ask, rota } = await openForScout();
    const before = (await rota.tasks.counts()).total;
    const { status, body } = await ask(path, { json });
    expect([status, body.code]).toEqual([403, "forbidden"]);
    expect(body.error).toBe('this API key is for the agent "scout" alone: name that one, or none');
    expect((await rota.tasks.counts()).total).toBe(before);
  });

  test("is told what is wrong with what it hands in, as everybody is", async () => {
    const { ask } = await openForScout();
    for (const json of [{}, [], null, "text", { message: 5 }]) {
      const { status, body } = await ask("/tasks", { method: "POST", json });
      expect([status, body.code], JSON.stringify(json)).toEqual([400, "invalid_field"]);
    }
    for (const json of [{}, [], null, { tasks: [] }, { tasks: [null] }, { tasks: "x" }]) {
      expect((await ask("/tasks/batch", { method: "POST", json })).status, JSON.stringify(json)).toBe(400);
    }
    expect((await ask("/v1/writs", { json: [] })).status).toBe(400);
  });

  test("reads the tasks of its agent, and those of others are not there", async () => {
    const { ask, tasks } = await openForScout();
    for (const path of ["", "/explain", "?wait=1"]) {
      const other = await ask(`/tasks/${tasks.others}${path}`);
      expect([other.status, other.body]).toEqual([404, { code: "not_found", error: "task not found" }]);
    }
    for (const path of ["", "/explain"]) expect((await ask(`/tasks/${tasks.own}${path}`)).status).toBe(200);
    const ids = async (query: string) =>
      (await ask(`/tasks${query}`)).body.tasks.map(({ taskId }: { taskId: string }) => taskId);
    expect(await ids("")).toEqual([tasks.own]);
    expect(await ids("?agentId=scout")).toEqual([tasks.own]);
    expect(await ids("?agentId=writer")).toEqual([]);
    expect((await ask("/tasks?limit=0")).status).toBe(400);
  });

  test("does not get at the result of another agent by waiting for it", async () => {
    const { ask, tasks } = await openForScout();
    const refused = await ask("/tasks", { json: { message: "hi", dependsOn: [tasks.others] } });
    expect([refused.status, refused.body.error]).toEqual([404, "task not found"]);
    const inBatch = { tasks: [{ message: "hi", dependsOn: [tasks.others] }] };
    expect((await ask("/tasks/batch", { json: inBatch })).status).toBe(404);
    expect((await ask("/tasks", { json: { message: "hi", dependsOn: [tasks.own] } })).status).toBe(202);
  });

  test("sees a batch that is its own, and none in which another has a part", async () => {
    const { ask, rota } = await openForScout();
    const batchOf = async (...agents: string[]) => {
      const tasks = agents.map((agentId) => ({ agentId, message: "hi" }));
      return (await rota.tasks.submitBatch({ tasks })).batchId;
    };
    expect((await ask(`/tasks/batches/${await batchOf("scout", "scout")}`)).status).toBe(200);
    expect((await ask(`/tasks/batches/${await batchOf("scout", "writer")}`)).status).toBe(404);
  });

  test("talks in sessions of its agent alone", async () => {
    const { ask, rota } = await openForScout();
    await rota.sessions.send("theirs", { message: "hi", agentId: "writer" });
    const said = await ask("/v1/sessions/mine/messages", { json: { message: "hi" } });
    expect(said.status).toBe(202);
    expect((await rota.tasks.get(said.body.taskId)).agentId).toBe("scout");
    for (const message of ["hi", "/stopall"]) {
      expect((await ask("/v1/sessions/theirs/messages", { json: { message } })).status).toBe(404);
    }
    const joining = { message: "hi", sessionKey: "theirs" };
    expect((await ask("/tasks", { json: joining })).body.error).toBe("session not found");
    expect((await ask("/tasks/batch", { json: { tasks: [joining] } })).status).toBe(404);
    expect((await ask("/tasks", { json: { ...joining, sessionKey: "mine" } })).status).toBe(202);
    expect((await ask("/v1/sessions/theirs")).status).toBe(404);
    expect((await ask("/v1/sessions/mine")).body).toMatchObject({ key: "mine", agentId: "scout" });
    expect((await ask("/v1/sessions")).body).toMatchObject({ sessions: [{ key: "mine" }], count: 1 });
  });

  test("sees schedules and runs of its agent alone, and makes them with writs", async () => {
    const { ask, rota } = await openForScout();
    await rota.start();
    const make = async (agent: string) => {
      const made = await rota.schedules.create({ agent, schedule: "every 1 h", message: "look" });
      const { run_id } = await rota.schedules.run(made.scheduled_task.id);
      return { id: made.scheduled_task.id, run: run_id };
    };
    const [own, others] = [await make("scout"), await make("writer")];
    expect((await ask(`/v1/schedules/${own.id}`)).status).toBe(200);
    for (const path of [`/schedules/${others.id}`, `/schedules/${others.id}/runs`, `/runs/${others.run}`]) {
      expect((await ask(`/v1${path}`)).status, path).toBe(404);
    }
    expect((await ask(`/v1/schedules/${own.id}/runs`)).body.count).toBe(1);
    expect((await ask("/v1/schedules")).body).toMatchObject({ schedules: [{ id: own.id }], count: 1 });
    expect((await ask("/v1/runs")).body).toMatchObject({ runs: [{ id: own.run }], count: 1 });
    const { status, body } = await ask("/v1/writs", { json: { text: "/schedule list" } });
    expect(status).toBe(200);
    expect(body.output).toContain(`#${own.id} `);
    expect(body.output).not.toContain(`#${others.id} `);
  });

  test("knows of its agent alone", async () => {
    const { ask } = await openForScout();
    expect((await ask("/v1/agents")).body).toMatchObject({ agents: [{ id: "scout" }], count: 1 });
    expect((await ask("/v1/agents/scout")).status).toBe(200);
    for (const id of ["writer", "index", "nobody"]) {
      expect((await ask(`/v1/agents/${id}`)).body).toEqual({ code: "not_found", error: "agent not found" });
    }
  });
});
