import { expect, test } from "vitest";
import { openTestServer } from "../../../test/support/http.ts";
import { openKeyedServer } from "../../../test/support/keyed-server.ts";
import { batch as batchSchema, submittedBatch } from "../../api/batches.ts";
import { scheduleDryRun } from "../../api/schedules.ts";
import { cancelledTask, submittedTask, task, taskCounts, taskDryRun, taskPage } from "../../api/tasks.ts";
import { Latch } from "../../testing/signals.ts";

const PREFIXES = ["", "/v1"];

test.each(PREFIXES)("%s/tasks takes a task, runs it and shows it", async (prefix) => {
  const { ask, rota } = await openTestServer();
  const submitted = await ask(`${prefix}/tasks`, { json: { message: "hello", metadata: { mine: 1 } } });
  expect(submitted.status).toBe(202);
  expect(submittedTask.parse(submitted.body)).toMatchObject({ state: "queued", position: 1 });

  const { taskId } = submitted.body;
  await rota.tasks.wait(taskId);
  const shown = await ask(`${prefix}/tasks/${taskId}`);
  expect(shown.status).toBe(200);
  expect(task.parse(shown.body)).toMatchObject({
    taskId,
    agentId: "index",
    kind: "message",
    lane: "main",
    state: "done",
    result: "hello",
    metadata: { mine: 1 },
    attempts: [{ number: 1, outcome: "done" }],
  });
});

test("every kind of task is shown as the schema says, waiting, running, done and failed", async () => {
  const { ask, rota } = await openTestServer();
  const latch = new Latch();
  rota.agent("slow", () => latch.opened);
  rota.agent("broken", () => {
    throw new Error("broken");
  });
  const inputs = [
    {
      agentId: "index",
      action: "click",
      tabId: "t",
      ref: "e1",
      selector: "a",
      params: { x: 1 },
      priority: 5,
    },
    { instruction: "do it", llmConfig: { model: "m" }, deadline: "2030-01-31T09:00:00+01:00" },
    { message: "hello", runAt: "2030-01-31T09:00:00Z" },
    { payload: null },
    { agentId: "broken", payload: 1, retryPolicy: { maxRetries: 0, jitter: 0.5 } },
    { agentId: "slow", payload: [1], timeout: 1_000 },
  ];
  const ids = await Promise.all(inputs.map(async (json) => (await ask("/tasks", { json })).body.taskId));
  await rota.tasks.wait(ids[0]);
  await rota.tasks.wait(ids[4]);
  const { body } = await ask("/tasks");
  expect(taskPage.parse(body).count).toBe(6);
  latch.open();
});

test("lists newest first, page by page, by every filter", async () => {
  const { ask } = await openTestServer({ start: false });
  const submit = async (json: object) => (await ask("/tasks", { json })).body.taskId as string;
  const a1 = await submit({ agentId: "a", payload: 1 });
  const b1 = await submit({ agentId: "b", message: "x", priority: "high" });
  const a2 = await submit({ agentId: "a", payload: 2 });
  await ask(`/tasks/${a1}`, { method: "DELETE" });
  const ids = async (query: string) =>
    ((await ask(`/tasks?${query}`)).body.tasks as { taskId: string }[]).map(({ taskId }) => taskId);

  expect(await ids("")).toEqual([a2, b1, a1]);
  expect(await ids("agentId=a")).toEqual([a2, a1]);
  expect(await ids("state=queued")).toEqual([a2, b1]);
  expect(await ids("state=pending,cancelled")).toEqual([a2, b1, a1]);
  expect(await ids("state=cancelled&state=queued")).toEqual([a2, b1, a1]);
  expect(await ids("lane=main")).toEqual([b1]);
  expect(await ids("priority=1")).toEqual([b1]);
  expect(await ids("priority=high")).toEqual([b1]);
  expect(await ids("agentId=unknown")).toEqual([]);

  const first = (await ask("/tasks?limit=2")).body;
  expect(first).toMatchObject({ count: 2, tasks: [{ taskId: a2 }, { taskId: b1 }] });
  const second = (await ask(`/tasks?limit=2&cursor=${first.nextCursor}`)).body;
  expect(second).toMatchObject({ count: 1, tasks: [{ taskId: a1 }], nextCursor: null });

  const c1 = await submit({ payload: 1, priority: "critical" });
  const c2 = await submit({ payload: 1, priority: -5 });
  expect(await ids("priority=critical")).toEqual([c2, c1]);
  expect(await ids("priority=0")).toEqual([c1]);
  expect(await ids("priority=-5")).toEqual([c2]);
});

test.each(PREFIXES)("%s/tasks/{id} cancels by POST …/cancel and by DELETE, once", async (prefix) => {
  const { ask } = await openTestServer({ start: false });
  const ways = [
    (id: string) => ask(`${prefix}/tasks/${id}/cancel`, { method: "POST" }),
    (id: string) => ask(`${prefix}/tasks/${id}`, { method: "DELETE" }),
  ];
  for (const cancel of ways) {
    const { taskId } = (await ask("/tasks", { json: { payload: 1 } })).body;
    const cancelled = await cancel(taskId);
    expect([cancelled.status, cancelledTask.parse(cancelled.body)]).toEqual([
      200,
      { status: "cancelled", taskId },
    ]);
    const again = await cancel(taskId);
    expect([again.status, again.body]).toEqual([
      409,
      { code: "conflict", error: "task is already cancelled", details: { state: "cancelled" } },
    ]);
    expect((await ask(`/tasks/${taskId}`)).body.state).toBe("cancelled");
  }
});

test("cancelling aborts what runs", async () => {
  const { ask, rota } = await openTestServer();
  const aborted = new Latch<unknown>();
  const started = new Latch();
  rota.agent("slow", (_task, { signal }) => {
    signal.addEventListener("abort", () => aborted.open(signal.reason));
    started.open();
    return aborted.opened;
  });
  const { taskId } = (await ask("/tasks", { json: { agentId: "slow", payload: 1 } })).body;
  await started.opened;
  expect((await ask(`/tasks/${taskId}`)).body.state).toBe("running");
  expect((await ask(`/tasks/${taskId}/cancel`, { method: "POST" })).status).toBe(200);
  await aborted.opened;
  expect((await ask(`/tasks/${taskId}`)).body.state).toBe("cancelled");
});

test("a task that has ended is not cancelled", async () => {
  const { ask, rota } = await openTestServer();
  const { taskId } = (await ask("/tasks", { json: { payload: 1 } })).body;
  await rota.tasks.wait(taskId);
  const answer = await ask(`/tasks/${taskId}/cancel`, { method: "POST" });
  const details = { state: "done" };
  expect([answer.status, answer.body]).toEqual([
    409,
    { code: "conflict", error: "task is already done", details },
  ]);
});

test.each([
  ["GET", "/tasks/tsk_nope"],
  ["DELETE", "/tasks/tsk_nope"],
  ["POST", "/tasks/tsk_nope/cancel"],
  ["POST", "/tasks/tsk_nope/retry"],
  ["GET", `/tasks/${"x".repeat(5_000)}`],
  ["GET", "/tasks/a%00b"],
  ["GET", "/tasks/%F0%9F%A6%89"],
  ["GET", "/v1/tasks/tsk_nope"],
])("%s %s is not found", async (method, path) => {
  const { ask } = await openTestServer({ start: false });
  const answer = await ask(path, { method });
  expect([answer.status, answer.body]).toEqual([404, { code: "not_found", error: "task not found" }]);
});

test.each(PREFIXES)("%s/tasks/batch takes many tasks at once, and each knows its batch", async (prefix) => {
  const { ask, rota } = await openTestServer();
  const { status, body } = await ask(`${prefix}/tasks/batch`, {
    json: {
      agentId: "index",
      tasks: [{ payload: 1 }, { message: "two" }, { agentId: "b", instruction: "three" }],
    },
  });
  expect(status).toBe(202);
  const batch = submittedBatch.parse(body);
  expect(batch).toMatchObject({ submitted: 3, count: 3, tasks: Array(3).fill({ state: "queued" }) });
  expect(batch.taskIds).toEqual(batch.tasks.map(({ taskId }) => taskId));
  await rota.tasks.wait(batch.taskIds[0] as string);
  const listed = (await ask(`${prefix}/tasks?batchId=${batch.batchId}`)).body;
  expect(taskPage.parse(listed).tasks.map(({ taskId, batchId }) => [taskId, batchId])).toEqual(
    batch.taskIds.map((taskId) => [taskId, batch.batchId]).reverse(),
  );
});

test.each(PREFIXES)(
  "%s/tasks/batches/{id} shows how far a batch is, and that it has ended",
  async (prefix) => {
    const { ask, clock } = await openTestServer({ start: false });
    const { batchId, createdAt } = (
      await ask(`${prefix}/tasks/batch`, {
        json: { parallelism: 3, tasks: [{ payload: 1 }, { payload: 2 }] },
      })
    ).body;
    const look = async () => batchSchema.parse((await ask(`${prefix}/tasks/batches/${batchId}`)).body);
    expect(await look()).toMatchObject({ batchId, parallelism: 3, createdAt, counts: { queued: 2 } });
    await clock.advance(1_000);
    const cancelled = await ask(`${prefix}/tasks/batches/${batchId}/cancel`, { method: "POST" });
    expect([cancelled.status, cancelled.body]).toEqual([200, { cancelled: 2 }]);
    expect(await look()).toMatchObject({ completedAt: new Date(clock.now()).toISOString() });
    expect((await ask(`${prefix}/tasks/batches/bat_none`)).status).toBe(404);
  },
);

test("the same key gives the same task, by field or by header, and another request with it is refused", async () => {
  const { ask, rota } = await openTestServer({ start: false });
  const submit = (json: unknown, headers = {}) => ask("/tasks", { json, headers });
  const first = (await submit({ payload: { a: 1, b: 2 }, idempotencyKey: "order 7" })).body;
  const again = await submit({ payload: { b: 2, a: 1 } }, { "idempotency-key": "order 7" });
  expect([again.status, again.body]).toEqual([202, first]);
  const other = await submit({ payload: 2 }, { "idempotency-key": "order 7" });
  expect([other.status, other.body]).toMatchObject([
    409,
    { code: "idempotency_conflict", details: { taskId: first.taskId } },
  ]);
  for (const [json, key] of [
    [{ payload: 1, idempotencyKey: "a" }, "b"],
    [{ payload: 1, idempotencyKey: "" }, undefined],
    [{ payload: 1, idempotencyKey: 7 }, undefined],
    [{ payload: 1 }, "x".repeat(129)],
  ] as const) {
    const { status, body } = await submit(json, key === undefined ? {} : { "idempotency-key": key });
    expect([status, body.code, body.details.field]).toEqual([400, "invalid_field", "idempotencyKey"]);
  }
  expect((await rota.tasks.counts()).total).toBe(1);
  expect((await rota.stats()).metrics.tasksSubmitted).toBe(1);
});

test("a dry run is checked and shown as the schema says, and leaves no trace", async () => {
  const { rota, key, askWith } = await openKeyedServer();
  const operator = await key({});
  const ask = (path: string, json: unknown) => askWith(operator, path, { json });
  const task = await ask("/tasks?dryRun=true", { message: "hi", runAt: "2100-01-01T00:00:00Z" });
  expect([task.status, taskDryRun.parse(task.body).task.state]).toEqual([200, "delayed"]);
  const schedule = await ask("/v1/schedules?dryRun=true", { schedule: "every day", message: "x" });
  expect([schedule.status, scheduleDryRun.parse(schedule.body).next.length]).toEqual([200, 5]);
  for (const path of ["/tasks", "/v1/schedules"]) {
    const { status, body } = await ask(`${path}?dryRun=yes`, { message: "hi" });
    expect([status, body.error], path).toEqual([400, '`dryRun` must be true or false, not "yes"']);
  }
  expect((await ask("/tasks?dryRun=false", { message: "hi" })).status).toBe(202);
  expect((await rota.tasks.counts()).total).toBe(1);
  expect((await rota.schedules.list()).count).toBe(0);
  expect((await rota.audit.list()).entries.map(({ route }) => route)).toEqual(["POST /tasks"]);
});

test("the same key gives the same task when the tenant may store nothing more", async () => {
  const { ask, rota } = await openTestServer({ start: false });
  const submit = (json: unknown, key: string) => ask("/tasks", { json, headers: { "idempotency-key": key } });
  const first = await submit({ payload: 1 }, "a");
  await rota.tenants.update("default", { limits: { maxStoredBytes: 1_100 } });
  const again = await submit({ payload: 1 }, "a");
  expect([again.status, again.body.taskId]).toEqual([202, first.body.taskId]);
  const other = await submit({ payload: 1 }, "b");
  expect([other.status, other.body.code]).toEqual([429, "quota_exceeded"]);
});

test("a batch is refused as a whole for what is wrong in it, and task by task for want of room", async () => {
  const { ask, rota } = await openTestServer({ start: false, options: { scheduler: { maxPerAgent: 2 } } });
  const submit = (json: unknown) => ask("/tasks/batch", { json });
  for (const [json, code, sentence] of [
    [{ tasks: [{ payload: 1 }, { mesage: "x" }] }, "invalid_field", "tasks[1]: unknown field `mesage`"],
    [{ tasks: [] }, "invalid_field", "`tasks` is empty"],
    [
      { tasks: [{ payload: 1 }], parallelism: 11 },
      "invalid_field",
      "`parallelism` must be an integer from 1 to 10",
    ],
    [
      { tasks: [{ payload: 1, key: "tsk_1" }] },
      "invalid_field",
      "tasks[0]: `key` must be 1 to 128 characters",
    ],
    [{ tasks: [{ payload: 1, dependsOn: ["b"] }] }, "unknown_key", '`dependsOn` names "b"'],
    [
      {
        tasks: [
          { payload: 1, key: "a", dependsOn: ["b"] },
          { payload: 2, key: "b", dependsOn: ["a"] },
        ],
      },
      "dependency_cycle",
      "a → b → a",
    ],
    [{ tasks: Array(101).fill({ payload: 1 }) }, "batch_too_large", "at most 100"],
    [{ agentId: "a", tasks: Array(51).fill({ action: "click" }) }, "batch_too_large", "at most 50"],
    [[], "invalid_field", "a batch must be an object"],
    [null, "invalid_field", "a batch must be an object"],
  ] as const) {
    const { status, body } = await submit(json);
    expect([status, body.code]).toEqual([400, code]);
    expect(body.error).toContain(sentence);
  }
  expect((await rota.tasks.counts()).total).toBe(0);

  const { status, body, headers } = await submit({
    agentId: "a",
    tasks: [{ payload: 1 }, { payload: 2 }, { payload: 3 }],
  });
  expect(headers.get("retry-after")).toBe("1");
  expect([status, submittedBatch.parse(body).submitted, body.tasks[2]]).toEqual([
    202,
    2,
    { taskId: body.taskIds[2], state: "rejected", position: 0, error: "rejected: agent queue full" },
  ]);
});

test.each(PREFIXES)(
  "%s/tasks/{id}/retry runs a failed or cancelled task again, and no other",
  async (prefix) => {
    const { ask, rota } = await openTestServer();
    let fails = true;
    rota.agent("moody", () => {
      if (fails) throw new Error("not today");
      return "fine";
    });
    const { taskId } = (await ask("/tasks", { json: { agentId: "moody", payload: 1 } })).body;
    expect((await rota.tasks.wait(taskId)).state).toBe("failed");
    fails = false;
    const again = await ask(`${prefix}/tasks/${taskId}/retry`, { method: "POST" });
    expect([again.status, submittedTask.parse(again.body).state]).toEqual([202, "queued"]);
    expect(await rota.tasks.wait(taskId)).toMatchObject({ state: "done", attempts: [{}, {}] });
    const refused = await ask(`${prefix}/tasks/${taskId}/retry`, { method: "POST" });
    expect([refused.status, refused.body]).toEqual([
      409,
      { code: "conflict", error: "task is done: only a failed or cancelled one can be retried" },
    ]);
  },
);

test.each(PREFIXES)("%s/tasks/stats counts tasks by state", async (prefix) => {
  const { ask } = await openTestServer({ start: false });
  expect((await ask(`${prefix}/tasks/stats`)).body).toEqual({ counts: {}, total: 0 });
  const { taskId } = (await ask("/tasks", { json: { payload: 1 } })).body;
  await ask("/tasks", { json: { payload: 2 } });
  await ask(`/tasks/${taskId}`, { method: "DELETE" });
  const { status, body } = await ask(`${prefix}/tasks/stats`);
  expect([status, taskCounts.parse(body)]).toEqual([200, { counts: { queued: 1, cancelled: 1 }, total: 2 }]);
});

test("a full queue gets 429 with Retry-After, and the task is kept as rejected", async () => {
  const { ask } = await openTestServer({ start: false, options: { scheduler: { maxPerAgent: 1 } } });
  await ask("/tasks", { json: { agentId: "a", payload: 1 } });
  const { status, headers, body } = await ask("/tasks", { json: { agentId: "a", payload: 2 } });
  expect(status).toBe(429);
  expect(headers.get("retry-after")).toBe("1");
  expect(body).toEqual({
    code: "queue_full",
    error: "rejected: agent queue full",
    retryable: true,
    details: { agentId: "a", queued: 1, maxQueue: 1_000, maxPerAgent: 1 },
  });
  expect((await ask("/tasks?state=rejected")).body).toMatchObject({ count: 1, tasks: [{ payload: 2 }] });
});

test("the agent index, which stands for none named, has no share of the queue that could be full", async () => {
  const { ask } = await openTestServer({
    start: false,
    options: { scheduler: { maxPerAgent: 1, maxQueueSize: 3 } },
  });
  const { body: batch, headers } = await ask("/tasks/batch", {
    json: { tasks: [{ payload: 1 }, { payload: 2 }, { payload: 3, runAt: "2100-01-01T00:00:00Z" }] },
  });
  expect([batch.submitted, headers.get("retry-after")]).toEqual([3, null]);
  const refused = await ask("/tasks", { json: { payload: 4 } });
  expect([refused.status, refused.body.details]).toEqual([
    429,
    { agentId: "index", queued: 3, maxQueue: 3, maxPerAgent: 1 },
  ]);
  // Both routes return the same counts.
  const { queue } = (await ask("/scheduler/stats")).body;
  expect(queue).toEqual({ totalQueued: 3, totalInflight: 0, agentCounts: { index: 3 } });
});

test("a disabled scheduler takes nothing in, and reads work", async () => {
  const { ask } = await openTestServer({ options: { scheduler: { enabled: false } } });
  const { status, headers, body } = await ask("/tasks", { json: { payload: 1 } });
  expect([status, body.code, headers.get("retry-after")]).toEqual([503, "scheduler_disabled", null]);
  expect((await ask("/tasks")).body).toEqual({ tasks: [], count: 0, nextCursor: null });
});

test("what is free-form comes back as it was sent, also a key that JavaScript gives a meaning", async () => {
  const { ask } = await openTestServer({ start: false });
  const body =
    '{"payload":{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}},"toString":1},"metadata":{"__proto__":[]}}';
  const { taskId } = (
    await ask("/tasks", { method: "POST", body, headers: { "content-type": "application/json" } })
  ).body;
  const shown = await ask(`/tasks/${taskId}`);
  expect(JSON.stringify(shown.body.payload)).toBe(JSON.stringify(JSON.parse(body).payload));
  expect(JSON.stringify(shown.body.metadata)).toBe('{"__proto__":[]}');
  expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
});

test("a task is submitted again as it was, or as the body says", async () => {
  const { ask } = await openTestServer({ start: false });
  const json = { instruction: "go", llmConfig: { apiKey: "sk-1234567890" }, priority: 1 };
  const { body: first } = await ask("/tasks", { json });
  const path = `/tasks/${first.taskId}/submit-again`;
  const same = await ask(path, { method: "POST" });
  expect([same.status, same.body.state]).toEqual([202, "queued"]);
  const shown = (await ask(`/tasks/${same.body.taskId}`)).body;
  expect(shown).toMatchObject({ instruction: "go", llmConfig: { apiKey: "…" }, priority: 1 });
  const edited = await ask(`/v1${path}`, { json: { instruction: "stop", llmConfig: { apiKey: "…" } } });
  expect(edited.status).toBe(202);
  expect((await ask(`/tasks/${edited.body.taskId}`)).body).toMatchObject({
    instruction: "stop",
    priority: 2,
  });
  const masked = await ask("/tasks", { json: { instruction: "go", llmConfig: shown.llmConfig } });
  expect([masked.status, masked.body.error]).toEqual([400, "`llmConfig.apiKey` is masked: write the value"]);
  const keyed = await ask(path, { method: "POST", headers: { "idempotency-key": "x" } });
  expect([keyed.status, keyed.body.details.field]).toEqual([400, "Idempotency-Key"]);
  expect((await ask("/tasks/tsk_gone/submit-again", { method: "POST" })).status).toBe(404);
});
