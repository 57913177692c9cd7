import { describe, expect, test } from "vitest";
import { openStream } from "../../test/support/event-stream.ts";
import { openKeyedServer } from "../../test/support/keyed-server.ts";
import type { TestRotaParams } from "../../test/support/rota.ts";
import { until } from "../testing/signals.ts";

const AGENTS = { scout: { executor: { type: "echo" } }, writer: { executor: { type: "echo" } } } as const;

/** A server with work of two agents, and a key for one of them. */
async function openForScout(meddler?: TestRotaParams["meddler"]) {
  const server = await openKeyedServer({
    options: { agents: AGENTS },
    start: false,
    ...(meddler === undefined ? {} : { meddler }),
  });
  const { rota, key, askWith } = server;
  const own = await key({ role: "agent", agentId: "scout" });
  const submit = async (agentId: string) => (await rota.tasks.submit({ agentId, message: "hello" })).taskId;
  const tasks = { own: await submit("scout"), others: await submit("writer") };
  return { ...server, tasks, ask: (...args: [string, object?]) => askWith(own, ...args) };
}

describe("a key of the role agent", () => {
  test("submits work for its agent, whether it names it or not", async () => {
    const { ask, rota } = await openForScout();
    for (const input of [
      { message: "hi" },
      { message: "hi", agentId: "scout" },
      { message: "hi", agentId: null },
      { action: "click" },
    ]) {
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
  ])("is refused when it submits work for another: %s %j", async (path, json) => {
    const { ask, rota } = await openForScout();
    const before = (await rota.tasks.counts()).total;
    const { status, body } = await ask(path, { json });
    expect([status, body.code]).toEqual([403, "forbidden"]);
    expect(body.error).toBe('this API key is for the agent "scout" alone: name that one, or none');
    expect((await rota.tasks.counts()).total).toBe(before);
  });

  test("submits tasks of its own agent again, and no others", async () => {
    const { ask, rota, tasks } = await openForScout();
    const again = (taskId: string, json?: object) =>
      ask(`/tasks/${taskId}/submit-again`, { method: "POST", ...(json && { json }) });
    const { status, body } = await again(tasks.own);
    expect([status, (await rota.tasks.get(body.taskId)).agentId]).toEqual([202, "scout"]);
    expect((await again(tasks.own, { message: "hi" })).status).toBe(202);
    expect((await again(tasks.own, { message: "hi", agentId: "writer" })).status).toBe(403);
    expect((await again(tasks.others)).status).toBe(404);
    expect((await again(tasks.others, { message: "hi" })).status).toBe(404);
  });

  test("gets the same errors for invalid input as other callers", async () => {
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

  test("waits for a task once, however often it names it, and for no longer than other callers may", async () => {
    const reads: unknown[] = [];
    const server = await openForScout({
      before: ({ operation, params }) => {
        if (operation === "tasks.get") reads.push(params);
      },
    });
    const { ask, tasks } = server;
    const often = Array.from({ length: 26_000 }, () => tasks.own);
    expect((await ask("/tasks", { json: { message: "hi", dependsOn: often } })).status).toBe(202);
    expect(reads).toHaveLength(1);
    const many = Array.from({ length: 101 }, (_, index) => `tsk_${index}`);
    const refused = await ask("/tasks", { json: { message: "hi", dependsOn: many } });
    expect([refused.status, refused.body.details]).toEqual([400, { field: "dependsOn" }]);
    const inBatch = await ask("/tasks/batch", {
      json: { tasks: [{ payload: 1 }, { payload: 2, dependsOn: many }] },
    });
    expect([inBatch.status, inBatch.body.details]).toEqual([400, { field: "dependsOn", index: 1 }]);
    const all = Array.from({ length: 20 }, (_, task) => ({
      payload: task,
      dependsOn: many.slice(0, 60).map((id) => `${id}_${task}`),
    }));
    expect((await ask("/tasks/batch", { json: { tasks: all } })).body.error).toBe(
      "`dependsOn` names 1200 tasks in all, and may name 1000 with a key of the role `agent`",
    );
    expect(reads).toHaveLength(1);
  });

  test("has the size of its batches looked at before anything else", async () => {
    let sessions = 0;
    const { ask } = await openForScout({
      before: ({ operation }) => {
        if (operation === "sessions.get") sessions += 1;
      },
    });
    const said = (length: number) =>
      Array.from({ length }, () => ({ message: "x".repeat(10), sessionKey: "s" }));
    expect((await ask("/tasks/batch", { json: { tasks: said(10_000) } })).body.code).toBe("batch_too_large");
    expect(sessions).toBe(0);
    expect((await ask("/tasks/batch", { json: { tasks: said(100) } })).status).toBe(202);
    expect(sessions).toBe(1);
  });

  test("does not learn which task another agent's idempotency key made", async () => {
    const { ask, rota, tasks } = await openForScout();
    const theirs = await rota.tasks.submit({ agentId: "writer", message: "x", idempotencyKey: "order-1" });
    const { status, body } = await ask("/tasks", { json: { message: "x", idempotencyKey: "order-1" } });
    expect([status, body.details]).toEqual([409, { field: "idempotencyKey" }]);
    expect(body.error).not.toContain(theirs.taskId);
    expect(tasks.own).not.toBe(theirs.taskId);
    const own = await ask("/tasks", { json: { message: "x", idempotencyKey: "order-2" } });
    const again = await ask("/tasks", { json: { message: "y", idempotencyKey: "order-2" } });
    expect(again.body.details.taskId).toBe(own.body.taskId);
  });

  test("is not shown that task by a batch either", async () => {
    const { ask, rota } = await openForScout();
    const theirs = await rota.tasks.submit({ agentId: "writer", message: "x", idempotencyKey: "order-1" });
    const ours = await ask("/tasks", { json: { message: "x", idempotencyKey: "order-2" } });
    const submit = (idempotencyKey: string) =>
      ask("/tasks/batch", { json: { tasks: [{ message: "a" }, { message: "y", idempotencyKey }] } });
    const { status, body } = await submit("order-1");
    expect([status, body.details]).toEqual([409, { field: "idempotencyKey", index: 1 }]);
    expect(JSON.stringify(body)).not.toContain(theirs.taskId);
    expect((await submit("order-2")).body.details).toMatchObject({ taskId: ours.body.taskId, index: 1 });
  });

  test("learns no names of other agents from warnings and hints", async () => {
    const { key, askWith, rota } = await openKeyedServer({ options: { agents: AGENTS } });
    const scouts = await key({ role: "agent", agentId: "scouts" });
    const submitted = await askWith(scouts, "/tasks", { json: { instruction: "hi" } });
    expect(submitted.body.warnings).toEqual([expect.stringContaining('agent "scouts" has no executor')]);
    const asOperator = await rota.tasks.submit({ agentId: "scouts", instruction: "hi" });
    expect(asOperator.warnings?.join()).toContain('did you mean "scout"?');
    const text = "/schedule every 1 h: look";
    const writs = await askWith(scouts, "/v1/writs", { json: { text } });
    expect(writs.status).toBe(404);
    expect(JSON.stringify([submitted.body, writs.body])).not.toMatch(/\bscout\b|writer/);
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
    expect((await ask("/v1/sessions/theirs/messages", { json: { message: "hi" } })).status).toBe(404);
    const joining = { message: "hi", sessionKey: "theirs" };
    expect((await ask("/tasks", { json: joining })).body.error).toBe("session not found");
    expect((await ask("/tasks/batch", { json: { tasks: [joining] } })).status).toBe(404);
    expect((await ask("/tasks", { json: { ...joining, sessionKey: "mine" } })).status).toBe(202);
    expect((await ask("/v1/sessions/theirs")).status).toBe(404);
    expect((await ask("/v1/sessions/mine")).body).toMatchObject({ key: "mine", agentId: "scout" });
    expect((await ask("/v1/sessions")).body).toMatchObject({ sessions: [{ key: "mine" }], count: 1 });
    const begun = { message: "hi", sessionKey: "begun" };
    expect((await ask("/tasks", { json: begun })).status).toBe(202);
    expect((await ask("/tasks", { json: begun })).status).toBe(202);
    expect((await ask("/v1/sessions/begun/messages", { json: { message: "hi" } })).status).toBe(202);
  });

  test.each(["mine", "theirs", "unknown"])(
    "stops nothing by a word, in a session that is %s",
    async (name) => {
      const { ask, rota } = await openForScout();
      await rota.sessions.send("mine", { message: "hi", agentId: "scout" });
      await rota.sessions.send("theirs", { message: "hi", agentId: "writer" });
      for (const message of ["/stop", " /stopall\n"]) {
        const path = `/v1/sessions/${encodeURIComponent(name)}/messages`;
        expect((await ask(path, { json: { message } })).body.code).toBe("forbidden");
      }
      expect((await rota.tasks.counts()).counts).not.toHaveProperty("cancelled");
    },
  );

  test("takes the place of nothing that another agent got, where both were in one session", async () => {
    const { ask, rota } = await openForScout();
    const say = (key: string, json: object) => ask(`/v1/sessions/${key}/messages`, { json });
    for (const key of ["mixed", "full"]) {
      await rota.sessions.update(key, { cap: 2, debounceMs: 0 });
      await rota.sessions.send(key, { message: "theirs", agentId: "writer" });
      await rota.sessions.send(key, { message: "ours", agentId: "scout" });
    }
    expect((await say("mixed", { message: "hi", mode: "interrupt" })).status).toBe(404);
    expect((await say("full", { message: "hi" })).status).toBe(404);
    await rota.sessions.update("mixed", { mode: "interrupt" });
    expect((await say("mixed", { message: "hi" })).status).toBe(404);
    expect((await say("mixed", { message: "hi", mode: null, agentId: null })).status).toBe(404);
    expect((await rota.tasks.counts()).counts).not.toHaveProperty("cancelled");
    await rota.sessions.send("own", { message: "ours", agentId: "scout" });
    expect((await say("own", { message: "hi", mode: "interrupt" })).status).toBe(202);
    expect((await rota.tasks.counts()).counts.cancelled).toBe(1);
  });

  test("and that of another agent, who begin a session at once, end and see nothing of each other", async () => {
    const { ask, askWith, key, rota } = await openForScout();
    const writer = await key({ role: "agent", agentId: "writer" });
    const json = { message: "hi", mode: "interrupt" };
    const [ours, theirs] = await Promise.all([
      ask("/v1/sessions/new/messages", { json }),
      askWith(writer, "/v1/sessions/new/messages", { json }),
    ]);
    const accepted = [ours, theirs].filter(({ status }) => status === 202);
    expect(accepted.length).toBeGreaterThan(0);
    for (const { body } of accepted) expect((await rota.tasks.get(body.taskId)).state).toBe("delayed");
    if (theirs.status === 202) expect((await ask(`/tasks/${theirs.body.taskId}`)).status).toBe(404);
    if (ours.status === 202) expect((await askWith(writer, `/tasks/${ours.body.taskId}`)).status).toBe(404);
  });

  test("sees no run that was another agent's when the schedule was, and its own behind many of others", async () => {
    const { ask, rota } = await openForScout();
    await rota.start();
    const { scheduled_task: schedule } = await rota.schedules.create({
      agent: "scout",
      schedule: "every 1 h",
      message: "look",
      overlap: "allow",
    });
    const own = (await rota.schedules.run(schedule.id)).run_id;
    await rota.schedules.update(schedule.id, { agent: "writer" });
    for (let run = 0; run < 5; run++) await rota.schedules.run(schedule.id);
    await rota.schedules.update(schedule.id, { agent: "scout" });
    for (const path of ["/v1/runs", `/v1/schedules/${schedule.id}/runs`]) {
      expect((await ask(`${path}?limit=2`)).body).toMatchObject({
        runs: [{ id: own }],
        count: 1,
        next_cursor: null,
      });
      expect((await ask(`${path}?limit=0`)).status).toBe(400);
    }
  });

  test("gets nothing of another agent for ids that it guesses, and cannot distinguish them from others", async () => {
    const { ask, rota, tasks } = await openForScout();
    await rota.start();
    const { batchId } = await rota.tasks.submitBatch({ tasks: [{ agentId: "writer", message: "x" }] });
    await rota.sessions.send("theirs", { message: "hi", agentId: "writer" });
    const made = await rota.schedules.create({ agent: "writer", schedule: "every 1 h", message: "x" });
    const { run_id } = await rota.schedules.run(made.scheduled_task.id);
    const id = made.scheduled_task.id;
    for (const [theirs, nobodys] of [
      [`/tasks/${tasks.others}`, "/tasks/tsk_nobody"],
      [`/tasks/${tasks.others}/explain`, "/tasks/tsk_nobody/explain"],
      [`/tasks/${tasks.others}/logs`, "/tasks/tsk_nobody/logs"],
      [`/tasks/${tasks.others}?wait=1`, "/tasks/tsk_nobody?wait=1"],
      [`/tasks/batches/${batchId}`, "/tasks/batches/bat_nobody"],
      ["/v1/sessions/theirs", "/v1/sessions/unknown"],
      [`/v1/schedules/${id}`, "/v1/schedules/999"],
      [`/v1/schedules/${id}/runs`, "/v1/schedules/999/runs"],
      [`/v1/runs/${run_id}`, "/v1/runs/999"],
      ["/v1/agents/writer", "/v1/agents/unknown"],
    ] as const) {
      const [given, expected] = [await ask(theirs), await ask(nobodys)];
      expect([given.status, given.body], theirs).toEqual([404, expected.body]);
    }
    for (const query of [`batchId=${batchId}`, "sessionKey=theirs", `scheduleId=${id}`, `q=${tasks.others}`])
      expect((await ask(`/tasks?${query}`)).body, query).toMatchObject({ tasks: [], count: 0 });
  });

  test("sees nothing of another agent with a cursor of that agent's key", async () => {
    const { ask, askWith, key, rota } = await openForScout();
    await rota.start();
    const writer = await key({ role: "agent", agentId: "writer" });
    for (const agent of ["scout", "writer", "scout", "writer", "writer"]) {
      await rota.sessions.send(`${agent} ${Math.random()}`, { message: "hi", agentId: agent });
      const made = await rota.schedules.create({ agent, schedule: "every 1 h", message: "look" });
      await rota.schedules.run(made.scheduled_task.id);
    }
    for (const [path, items] of [
      ["/tasks", "tasks"],
      ["/v1/sessions", "sessions"],
      ["/v1/schedules", "schedules"],
      ["/v1/runs", "runs"],
    ] as const) {
      const { body: page } = await askWith(writer, `${path}?limit=1`);
      const cursor = encodeURIComponent(page.nextCursor ?? page.next_cursor);
      const { status, body } = await ask(`${path}?cursor=${cursor}`);
      const agents = body[items].map((item: Record<string, string>) => item["agentId"] ?? item["agent_id"]);
      expect([status, new Set(agents)], path).toEqual([200, new Set(["scout"])]);
    }
  });

  test("reads events of its agent alone, from now on and of the past", async () => {
    const { ask, askWith, key, rota, url } = await openForScout();
    await rota.start();
    const own = { authorization: `Bearer ${await key({ role: "agent", agentId: "scout" })}` };
    const { batchId } = await rota.tasks.submitBatch({ tasks: [{ agentId: "writer", message: "x" }] });
    expect((await ask("/tasks/events?agentId=writer")).body.error).toBe("agent not found");
    const past = await openStream(`${url}/tasks/events?lastEventId=0`, own);
    const live = await openStream(`${url}/tasks/events`, own);
    const ofBatch = await openStream(`${url}/tasks/events?batchId=${batchId}&lastEventId=0`, own);
    const make = (agent: string) => rota.schedules.create({ agent, schedule: "every 1 h", message: "look" });
    const [ours, theirs] = [await make("scout"), await make("writer")];
    const liveStream = await openStream(`${url}/v1/notifications/stream`, own);
    for (const { scheduled_task } of [theirs, ours]) await rota.schedules.run(scheduled_task.id);
    await until(async () => (await rota.runs.list({ status: "succeeded" })).count === 2);
    const pastStream = await openStream(`${url}/v1/notifications/stream?lastEventId=0`, own);
    // The last thing of the agent: everything before it has come by then.
    const last = await askWith(await key({}), "/tasks", { json: { agentId: "scout", message: "last" } });
    for (const stream of [past, live]) {
      const agents: string[] = [];
      for (let isLast = false; !isLast; ) {
        const data = (await stream.next())?.data;
        if (data === undefined) continue;
        agents.push(data.agentId);
        isLast = data.taskId === last.body.taskId && data.type === "task.completed";
      }
      expect(new Set(agents)).toEqual(new Set(["scout"]));
    }
    for (const stream of [pastStream, liveStream]) {
      const [, started, completed] = await stream.take(3);
      expect([started?.data, completed?.data]).toMatchObject([
        { kind: "run.started", agent_id: "scout", task_id: ours.scheduled_task.id },
        { kind: "run.completed", agent_id: "scout", task_id: ours.scheduled_task.id },
      ]);
    }
    // With a filter for something of another agent: nothing but the opening.
    expect((await ofBatch.take(1)).every(({ data }) => data === undefined)).toBe(true);
  });

  test("reads a page at once, and a full one, however much others have", async () => {
    const reads: string[] = [];
    const { ask, rota } = await openForScout({
      before: ({ operation }) => {
        if (/^(sessions|schedules)\.(list|listRuns)$/.test(operation)) reads.push(operation);
      },
    });
    await rota.start();
    const { scheduled_task: schedule } = await rota.schedules.create({
      agent: "scout",
      schedule: "every 1 h",
      message: "look",
      overlap: "allow",
    });
    const runFor = async (agent: string, times: number) => {
      await rota.schedules.update(schedule.id, { agent });
      for (let run = 0; run < times; run++) await rota.schedules.run(schedule.id);
    };
    const talk = async (agentId: string, times: number) => {
      for (let n = 0; n < times; n++) await rota.sessions.send(`${agentId} ${n}`, { message: "hi", agentId });
    };
    await runFor("scout", 3);
    await talk("scout", 3);
    await runFor("writer", 30);
    await talk("writer", 30);
    await rota.schedules.update(schedule.id, { agent: "scout" });
    for (const path of ["/v1/sessions", "/v1/runs", `/v1/schedules/${schedule.id}/runs`]) {
      reads.length = 0;
      const { body } = await ask(`${path}?limit=1`);
      expect([body.count, reads.length], path).toEqual([1, 1]);
      const rest = await ask(`${path}?limit=9&cursor=${body.nextCursor ?? body.next_cursor}`);
      // A session of the runs is the agent's, too.
      expect([rest.body.count >= 2, rest.body.nextCursor ?? rest.body.next_cursor ?? null], path).toEqual([
        true,
        null,
      ]);
    }
  });

  test("may do in the library what its routes do, and nothing else", async () => {
    const { rota, tasks } = await openForScout();
    const own = rota.tenant("default", { agentId: "scout" });
    const permitted: Record<string, readonly string[]> = {
      tasks: [
        ...["submit", "submitAgain", "submitBatch", "get", "getBatch", "explain", "logs", "list", "listRows"],
        ...["dryRun", "wait", "cancel", "retry"],
      ],
      sessions: ["send", "get", "list"],
      schedules: [...["get", "list", "runs", "preview"], ...["create", "dryRun", "update", "delete", "run"]],
      runs: ["get", "list"],
      writs: ["carryOut"],
      agents: ["get", "list"],
      ...{ bulks: [], lanes: [], webhooks: [] },
    };
    for (const [name, methods] of Object.entries(permitted)) {
      const api = own[name as keyof typeof own] as unknown as Record<string, () => Promise<unknown>>;
      for (const [method, call] of Object.entries(api)) {
        if (methods.includes(method)) continue;
        await expect(call(), `${name}.${method}`).rejects.toMatchObject({ code: "forbidden" });
      }
    }
    for (const method of ["stats", "statsSeries", "waiting", "metrics", "eventPage"] as const)
      await expect(own[method](), method).rejects.toMatchObject({ code: "forbidden" });
    // Without `writs` of its agent it changes no schedules: `schedules` above.
    await expect(own.tasks.retry(tasks.others)).rejects.toMatchObject({ code: "not_found" });
    await expect(own.tasks.cancel(tasks.others)).rejects.toMatchObject({ code: "not_found" });
    await expect(own.tasks.wait(tasks.others)).rejects.toMatchObject({ code: "not_found" });
    expect(await own.tasks.cancel(tasks.own)).toMatchObject({ status: "cancelled" });
    // Neither is found under the name of the other.
    expect(() => rota.tenant("default\nscout")).toThrow("the id of a tenant");
    expect((await rota.tenant("default").tasks.list()).count).toBe(2);
  });

  test("cancels and retries tasks of its agent, and no others", async () => {
    const { ask, rota, tasks } = await openForScout();
    const post = (path: string) => ask(path, { method: "POST" });
    for (const order of ["cancel", "retry"]) {
      expect((await post(`/tasks/${tasks.others}/${order}`)).body.error, order).toBe("task not found");
    }
    expect((await ask(`/tasks/${tasks.others}`, { method: "DELETE" })).status).toBe(404);
    expect((await rota.tasks.get(tasks.others)).state).toBe("queued");
    expect((await post(`/tasks/${tasks.own}/cancel`)).status).toBe(200);
    const withOthers = await post(`/tasks/${tasks.own}/retry?dependants=true`);
    expect([withOthers.status, withOthers.body.code]).toEqual([403, "forbidden"]);
    expect((await post(`/tasks/${tasks.own}/retry`)).status).toBe(202);
    expect((await rota.tasks.get(tasks.own)).state).toBe("queued");
  });

  test("makes and changes schedules of its agent alone, if that may schedule work", async () => {
    const { key, askWith, rota } = await openKeyedServer({
      options: { agents: { scout: { writs: true }, writer: {} } },
    });
    const own = await key({ role: "agent", agentId: "scout" });
    const withoutWrits = await key({ role: "agent", agentId: "writer" });
    const json = { schedule: "every 1 h", message: "look" };
    const ofWriter = (await rota.schedules.create({ ...json, agent: "writer" })).scheduled_task;
    const ask = (path: string, init: object) => askWith(own, `/v1/schedules${path}`, init);
    const planned = await ask("?dryRun=true", { json });
    expect([planned.status, planned.body.scheduled_task.agent_id]).toEqual([200, "scout"]);
    const made = await ask("", { json });
    expect([made.status, made.body.scheduled_task.agent_id]).toEqual([201, "scout"]);
    const { id } = made.body.scheduled_task;
    expect((await ask("", { json: { ...json, agent: "writer" } })).status).toBe(403);
    await rota.sessions.send("theirs", { message: "hi", agentId: "writer" });
    expect((await ask("", { json: { ...json, session_key: "theirs" } })).status).toBe(404);
    expect((await ask(`/${id}`, { method: "PATCH", json: { status: "paused" } })).status).toBe(200);
    expect((await ask(`/${id}`, { method: "PATCH", json: { agent: "writer" } })).status).toBe(403);
    expect((await ask(`/${id}`, { method: "PATCH", json: { session_key: "theirs" } })).status).toBe(404);
    for (const [path, init] of [
      [`/${ofWriter.id}`, { method: "PATCH", json: { status: "paused" } }],
      [`/${ofWriter.id}/run`, { method: "POST" }],
      [`/${ofWriter.id}`, { method: "DELETE" }],
    ] as const) {
      expect((await ask(path, init)).status, path).toBe(404);
      const refused = await askWith(withoutWrits, `/v1/schedules${path}`, init);
      expect([refused.status, refused.body.error], path).toEqual([
        403,
        'agent "writer" is not allowed to schedule work: set `writs: true` on the agent',
      ]);
    }
    expect((await askWith(withoutWrits, "/v1/schedules", { json })).status).toBe(403);
    expect((await rota.schedules.get(ofWriter.id)).status).toBe("active");
    expect((await ask(`/${id}/run`, { method: "POST" })).body.ran).toBe(true);
    expect((await ask(`/${id}`, { method: "DELETE" })).status).toBe(200);
  });

  test("sees its sessions behind many of others, page by page", async () => {
    const { ask, rota } = await openForScout();
    const send = (key: string, agentId: string) => rota.sessions.send(key, { message: "hi", agentId });
    for (const key of ["1", "2", "3"]) await send(`mine ${key}`, "scout");
    for (const key of ["1", "2", "3", "4", "5"]) await send(`theirs ${key}`, "writer");
    const first = (await ask("/v1/sessions?limit=2")).body;
    expect(first).toMatchObject({ sessions: [{ key: "mine 3" }, { key: "mine 2" }], count: 2 });
    const second = (await ask(`/v1/sessions?limit=2&cursor=${first.nextCursor}`)).body;
    expect(second).toMatchObject({ sessions: [{ key: "mine 1" }], count: 1, nextCursor: null });
  });

  test("sees its schedules however many others have changed since", async () => {
    const { ask, rota } = await openForScout();
    const make = (agent: string) => rota.schedules.create({ agent, schedule: "every 1 h", message: "look" });
    const { scheduled_task } = await make("scout");
    for (let count = 0; count < 200; count++) await make("writer");
    expect((await ask("/v1/schedules")).body).toMatchObject({
      schedules: [{ id: scheduled_task.id }],
      count: 1,
    });
    expect((await ask("/v1/schedules?agent=scout")).body).toMatchObject({ count: 1 });
    expect((await ask("/v1/schedules?agent=writer")).body).toEqual({
      schedules: [],
      count: 0,
      next_cursor: null,
    });
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

  test("writes writs in sessions of its agent and new ones, not in those of another", async () => {
    const { ask, rota } = await openForScout();
    await rota.sessions.send("theirs", { agentId: "writer", message: "hi" });
    await rota.sessions.send("ours", { agentId: "scout", message: "hi" });
    const text = "/schedule every 1 h: look";
    expect((await ask("/v1/writs", { json: { text, session_key: "theirs" } })).status).toBe(404);
    expect((await rota.schedules.list()).count).toBe(0);
    for (const session_key of ["ours", "new"]) {
      expect((await ask("/v1/writs", { json: { text, session_key } })).body.ok).toBe(true);
    }
  });

  test("knows of its agent alone", async () => {
    const { ask } = await openForScout();
    expect((await ask("/v1/agents")).body).toMatchObject({ agents: [{ id: "scout" }], count: 1 });
    expect((await ask("/v1/agents/scout")).status).toBe(200);
    for (const id of ["writer", "index", "unknown"]) {
      expect((await ask(`/v1/agents/${id}`)).body).toEqual({ code: "not_found", error: "agent not found" });
    }
  });
});
