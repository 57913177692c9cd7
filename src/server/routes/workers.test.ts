import { randomUUID } from "node:crypto";
import { connect } from "node:net";
import { expect, test } from "vitest";
import { openTestServer } from "../../../test/support/http.ts";
import { meddle, openMemory } from "../../../test/support/storages.ts";
import {
  claimTasks as claim,
  claimOne,
  claimsWait,
  registerWorker as register,
  submitTask as submit,
} from "../../../test/support/workers.ts";
import { ManualClock } from "../../testing/manual-clock.ts";
import { until } from "../../testing/signals.ts";

test("a worker registers, claims a task, and its result ends the task", async () => {
  const { ask, clock } = await openTestServer();
  const { status, body } = await ask("/v1/workers", { json: { name: "sh", agents: ["py"], slots: 1 } });
  expect([status, body]).toEqual([
    201,
    {
      workerId: expect.stringMatching(/^wrk_/),
      leaseMs: 15_000,
      heartbeatMs: 5_000,
      maxWaitS: 25,
      finishesPerClaim: 100,
      now: expect.any(String),
    },
  ]);
  const waiting = claim(ask, body.workerId);
  const taskId = await submit(ask, { timeout: 60_000, metadata: { a: 1 } });
  const { attempts } = await waiting;
  expect(attempts).toMatchObject([
    {
      attemptToken: expect.stringMatching(/^att_[\w-]{52}$/),
      number: 1,
      leaseMs: 15_000,
      timeoutMs: expect.any(Number),
      task: {
        taskId,
        agentId: "py",
        kind: "custom",
        payload: { n: 1 },
        metadata: { a: 1 },
        state: "assigned",
      },
    },
  ]);
  expect((await ask(`/tasks/${taskId}`)).body).toMatchObject({ state: "assigned" });
  const attemptToken = attempts[0]?.attemptToken ?? "";
  const beat = await ask(`/v1/workers/${body.workerId}/heartbeat`, {
    json: {
      attempts: [
        {
          attemptToken,
          progress: { percent: 50 },
          usage: { inputTokens: 10, outputTokens: 2 },
          log: [{ at: new Date().toISOString(), level: "warn", text: "slow" }],
        },
      ],
    },
  });
  expect(beat.body).toEqual({
    attempts: [{ attemptToken, ok: true }],
    drain: false,
    now: expect.any(String),
    leaseMs: 15_000,
  });
  expect((await ask(`/tasks/${taskId}`)).body).toMatchObject({ state: "running" });
  const finish = () =>
    ask(`/v1/workers/${body.workerId}/finish`, {
      json: {
        attempts: [
          { attemptToken, outcome: "done", result: "hi", usage: { inputTokens: 4, outputTokens: 5 } },
        ],
      },
    });
  expect((await finish()).body).toEqual({ attempts: [{ attemptToken, recorded: true }] });
  expect((await finish()).body).toEqual({ attempts: [{ attemptToken, recorded: true, repeated: true }] });
  expect((await ask(`/tasks/${taskId}`)).body).toMatchObject({
    state: "done",
    result: "hi",
    usage: { inputTokens: 10, outputTokens: 5 },
    attempts: [{ number: 1, outcome: "done", node: body.workerId }],
  });
  await clock.advance(1_000);
  const logs = await ask(`/tasks/${taskId}/logs`);
  expect(logs.body.lines).toMatchObject([{ level: "warn", text: "slow" }]);
});

test("the same claim gives the same attempts again", async () => {
  const { ask } = await openTestServer();
  const worker = await register(ask);
  await submit(ask);
  const claimId = randomUUID();
  const first = await claim(ask, worker, { claimId });
  const again = await claim(ask, worker, { claimId, waitS: 0 });
  expect(first.attempts).toHaveLength(1);
  expect(again.attempts[0]?.attemptToken).toBe(first.attempts[0]?.attemptToken);
  expect(again.attempts[0]?.task.taskId).toBe(first.attempts[0]?.task.taskId);
});

test("a claim may carry the ends of attempts: their slots are free for it, and it does not wait", async () => {
  const { ask } = await openTestServer();
  const worker = await register(ask, { slots: 1 });
  const [first, second] = [await submit(ask), await submit(ask)];
  const { attemptToken } = await claimOne(ask, worker);
  const claimId = randomUUID();
  const finishes = [{ attemptToken, outcome: "done", result: "hi" }];
  const next = await claim(ask, worker, { claimId, finishes });
  expect(next).toMatchObject({
    attempts: [{ task: { taskId: second } }],
    finished: [{ attemptToken, recorded: true }],
  });
  expect((await ask(`/tasks/${first}`)).body).toMatchObject({ state: "done", result: "hi" });
  const again = await claim(ask, worker, { claimId, finishes });
  expect(again).toMatchObject({
    attempts: [{ attemptToken: next.attempts[0]?.attemptToken }],
    finished: [{ attemptToken, recorded: true, repeated: true }],
  });
  const last = { attemptToken: next.attempts[0]?.attemptToken, outcome: "failed" };
  const wrong = await ask(`/v1/workers/${worker}/claim`, {
    json: { claimId: randomUUID(), max: 1, finishes: [last] },
  });
  expect(wrong.body).toMatchObject({ code: "invalid_field", details: { field: "finishes[0].error" } });
  expect(
    await claim(ask, worker, { waitS: 20, finishes: [{ ...last, error: "broken", retryable: false }] }),
  ).toEqual({ attempts: [], finished: [{ attemptToken: last.attemptToken, recorded: true }] });
});

test("a claim with the end of an attempt does not overtake claims that wait for its limit", async () => {
  const { ask } = await openTestServer({ options: { lanes: { far: { concurrency: 0, total: 1 } } } });
  const [busy, patient] = [await register(ask), await register(ask)];
  await submit(ask, { lane: "far" });
  const second = await submit(ask, { lane: "far" });
  const { attemptToken } = await claimOne(ask, busy);
  const waiting = claim(ask, patient);
  // It has asked and found that the lane is full.
  expect(await claim(ask, busy, { waitS: 0 })).toEqual({ attempts: [] });
  const finishes = [{ attemptToken, outcome: "done" }];
  expect(await claim(ask, busy, { finishes })).toMatchObject({
    attempts: [],
    finished: [{ recorded: true }],
  });
  expect((await waiting).attempts).toMatchObject([{ task: { taskId: second } }]);
});

test("a worker that drains still ends attempts with its claims", async () => {
  const { ask } = await openTestServer();
  const worker = await register(ask, { slots: 1 });
  await submit(ask);
  const { attemptToken } = await claimOne(ask, worker);
  await ask(`/v1/workers/${worker}/drain`, { json: {} });
  expect(await claim(ask, worker, { finishes: [{ attemptToken, outcome: "done" }] })).toEqual({
    attempts: [],
    drain: true,
    finished: [{ attemptToken, recorded: true }],
  });
});

test("a claim that wants more than any worker has slots gets as many as its worker has", async () => {
  const { ask } = await openTestServer();
  const worker = await register(ask, { slots: 2 });
  for (let count = 0; count < 3; count++) await submit(ask);
  const { attempts } = await claim(ask, worker, { max: Number.MAX_SAFE_INTEGER, waitS: 0 });
  expect(attempts).toHaveLength(2);
});

test("an empty claim ends after its wait", async () => {
  const { ask, clock } = await openTestServer();
  const worker = await register(ask);
  expect(await claim(ask, worker, { waitS: 0 })).toEqual({ attempts: [] });
  const waiting = claim(ask, worker, { waitS: 20 });
  await claimsWait(ask, 1);
  await clock.advance(15_900);
  await claimsWait(ask, 1);
  await clock.advance(4_100);
  expect(await waiting).toEqual({ attempts: [] });
});

test("one attempt alone is reported with its token, as with curl", async () => {
  const { ask, clock } = await openTestServer();
  const worker = await register(ask);
  const taskId = await submit(ask, { retryPolicy: { maxRetries: 1, backoffMs: 1 } });
  const { attemptToken } = await claimOne(ask, worker);
  const beat = await ask(`/v1/attempts/${attemptToken}/heartbeat`, { json: { progress: 1 } });
  expect(beat.body).toMatchObject({ attemptToken, ok: true, drain: false });
  const failed = await ask(`/v1/attempts/${attemptToken}/finish`, {
    json: { outcome: "failed", error: "no", retryable: true },
  });
  expect(failed.body).toEqual({ attemptToken, recorded: true });
  await clock.advance(1_000);
  const second = await claim(ask, worker);
  expect(second.attempts).toMatchObject([{ number: 2, task: { taskId } }]);
  const last = await ask(`/v1/attempts/${second.attempts[0]?.attemptToken}/finish`, {
    json: { outcome: "failed", error: "no way", retryable: false },
  });
  expect(last.body.recorded).toBe(true);
  expect((await ask(`/tasks/${taskId}`)).body).toMatchObject({
    state: "failed",
    error: "no way",
    retryCount: 1,
  });
  expect((await ask("/v1/attempts/att_x/finish", { json: { outcome: "done" } })).status).toBe(404);
});

test("the next heartbeat reports that a task was cancelled, and its end is refused", async () => {
  const { ask } = await openTestServer();
  const worker = await register(ask);
  const taskId = await submit(ask);
  const { attemptToken } = await claimOne(ask, worker);
  await ask(`/tasks/${taskId}/cancel`, { method: "POST" });
  const beat = await ask(`/v1/workers/${worker}/heartbeat`, { json: { attempts: [{ attemptToken }] } });
  expect(beat.body.attempts).toEqual([{ attemptToken, ok: false, cancel: "cancelled" }]);
  const finish = await ask(`/v1/workers/${worker}/finish`, {
    json: { attempts: [{ attemptToken, outcome: "done" }] },
  });
  expect(finish.body.attempts).toEqual([{ attemptToken, recorded: false, reason: "cancelled" }]);
  expect((await ask(`/tasks/${taskId}`)).body.state).toBe("cancelled");
});

test("a task makes way for a waiting critical one as soon as its worker has named it", async () => {
  const { ask } = await openTestServer();
  const worker = await register(ask, { slots: 1 });
  const taskId = await submit(ask, { preemptible: true });
  const { attemptToken } = await claimOne(ask, worker);
  const critical = await submit(ask, { priority: "critical" });
  const json = { attempts: [{ attemptToken }] };
  await ask(`/v1/workers/${worker}/heartbeat`, { json });
  await until(async () => (await ask(`/tasks/${taskId}`)).body.state === "queued");
  const { body } = await ask(`/v1/workers/${worker}/heartbeat`, { json });
  expect(body.attempts).toEqual([{ attemptToken, ok: false, cancel: "preempted" }]);
  expect((await claimOne(ask, worker)).task.taskId).toBe(critical);
});

test("of two ends of one attempt in a request the first counts", async () => {
  const { ask } = await openTestServer();
  const worker = await register(ask);
  const taskId = await submit(ask);
  const { attemptToken } = await claimOne(ask, worker);
  const ends = [
    { attemptToken, outcome: "done", result: 1 },
    { attemptToken, outcome: "failed", error: "no" },
  ];
  expect((await ask(`/v1/workers/${worker}/finish`, { json: { attempts: ends } })).body.attempts).toEqual([
    { attemptToken, recorded: true },
    { attemptToken, recorded: true, repeated: true },
  ]);
  expect((await ask(`/tasks/${taskId}`)).body).toMatchObject({ state: "done", result: 1 });
});

test("several reports of one attempt in a heartbeat count as one, and attempts that are over are not read whole", async () => {
  const operations: string[] = [];
  const progress: unknown[] = [];
  const { ask, clock } = await openTestServer({
    meddler: {
      before: ({ operation, params }) => {
        operations.push(operation);
        if (operation === "workers.exchange") progress.push(...params.progress);
      },
    },
  });
  const worker = await register(ask);
  const taskId = await submit(ask);
  const { attemptToken } = await claimOne(ask, worker);
  const beat = async (reports: readonly object[]) => {
    const json = { attempts: reports.map((report) => ({ attemptToken, ...report })) };
    return (await ask(`/v1/workers/${worker}/heartbeat`, { json })).body.attempts;
  };
  const reports = Array.from({ length: 200 }, (_, n) => ({ progress: n, log: [{ text: `line ${n}` }] }));
  expect(await beat(reports)).toEqual([{ attemptToken, ok: true }]);
  expect(progress).toMatchObject([{ progress: 199 }]);
  await clock.advance(1_000);
  expect((await ask(`/tasks/${taskId}/logs?limit=1000`)).body.lines).toHaveLength(200);
  await ask(`/tasks/${taskId}/cancel`, { method: "POST" });
  operations.length = 0;
  expect(await beat(reports)).toEqual([{ attemptToken, ok: false, cancel: "cancelled" }]);
  expect(operations).not.toContain("tasks.get");
  expect(operations.filter((operation) => operation === "workers.ends")).toHaveLength(1);
});

test("progress that is too large is left out, and the log of the task says so", async () => {
  const { ask, clock } = await openTestServer();
  const worker = await register(ask);
  const taskId = await submit(ask);
  const { attemptToken } = await claimOne(ask, worker);
  const json = { attempts: [{ attemptToken, progress: "x".repeat(20_000) }] };
  const { body } = await ask(`/v1/workers/${worker}/heartbeat`, { json });
  expect(body.attempts).toEqual([{ attemptToken, ok: true }]);
  await clock.advance(1_000);
  expect((await ask(`/tasks/${taskId}/logs`)).body.lines).toMatchObject([
    { level: "warn", text: expect.stringMatching(/^progress is too large: 20002 bytes/) },
  ]);
});

test("a null in usage counts as left out, and the context of a session is not derived from totals", async () => {
  const usages: unknown[] = [];
  const { ask } = await openTestServer({
    meddler: {
      before: ({ operation, params }) => {
        if (operation === "workers.name") usages.push(params.attempts[0].usage);
        if (operation === "workers.exchange")
          usages.push(...params.finishes.map((end: { usage: unknown }) => end.usage));
      },
    },
  });
  const worker = await register(ask);
  const taskId = await submit(ask);
  const { attemptToken } = await claimOne(ask, worker);
  usages.length = 0;
  const attempts = [{ attemptToken, usage: { inputTokens: 10, outputTokens: null, contextTokens: null } }];
  await ask(`/v1/workers/${worker}/heartbeat`, { json: { attempts } });
  const usage = { inputTokens: 20, outputTokens: 5, contextTokens: 7 };
  await ask(`/v1/workers/${worker}/finish`, {
    json: { attempts: [{ attemptToken, outcome: "done", usage }] },
  });
  expect(usages).toEqual([{ inputTokens: 10, outputTokens: 0 }, usage]);
  expect((await ask(`/tasks/${taskId}`)).body.usage).toEqual({ inputTokens: 20, outputTokens: 5 });
});

test("an unknown field of usage is refused with the nearest name", async () => {
  const { ask } = await openTestServer();
  const worker = await register(ask);
  await submit(ask);
  const { attemptToken } = await claimOne(ask, worker);
  const attempts = [{ attemptToken, outcome: "done", usage: { outputTokn: 5 } }];
  const { status, body } = await ask(`/v1/workers/${worker}/finish`, { json: { attempts } });
  expect(status).toBe(400);
  expect(body).toMatchObject({
    error: "unknown field `attempts[0].usage.outputTokn`: did you mean `attempts[0].usage.outputTokens`?",
    details: { field: "attempts[0].usage.outputTokn" },
  });
});

test("a release that is one too many for the task is repeated like any other", async () => {
  const { ask } = await openTestServer({ options: { scheduler: { maxLost: 1 } } });
  const worker = await register(ask);
  const taskId = await submit(ask);
  const { attemptToken } = await claimOne(ask, worker);
  const release = async () => {
    const json = { attempts: [{ attemptToken, outcome: "released" }] };
    return (await ask(`/v1/workers/${worker}/finish`, { json })).body.attempts;
  };
  expect(await release()).toEqual([{ attemptToken, recorded: true }]);
  expect((await ask(`/tasks/${taskId}`)).body).toMatchObject({ state: "failed", error: "lost 1 time" });
  expect(await release()).toEqual([{ attemptToken, recorded: true, repeated: true }]);
});

test("released tasks and those of a deleted worker go back to the queue", async () => {
  const { ask } = await openTestServer();
  const worker = await register(ask);
  const taskId = await submit(ask);
  const { attemptToken } = await claimOne(ask, worker);
  const release = () =>
    ask(`/v1/workers/${worker}/finish`, { json: { attempts: [{ attemptToken, outcome: "released" }] } });
  expect((await release()).body.attempts).toEqual([{ attemptToken, recorded: true }]);
  expect((await release()).body.attempts).toEqual([{ attemptToken, recorded: true, repeated: true }]);
  expect((await claim(ask, worker)).attempts).toMatchObject([{ number: 2, task: { taskId } }]);
  const deleted = await ask(`/v1/workers/${worker}`, { method: "DELETE" });
  expect([deleted.status, deleted.body]).toEqual([200, { released: [taskId] }]);
  expect((await ask(`/tasks/${taskId}`)).body.state).toBe("queued");
  const gone = await ask(`/v1/workers/${worker}/claim`, { json: { claimId: randomUUID(), max: 1 } });
  expect([gone.status, gone.body.code]).toEqual([404, "unknown_worker"]);
});

test("a worker that gets a task while it is deleted gives that back, too", async () => {
  const clock = new ManualClock();
  const storage = await openMemory(clock);
  let beforeRemove = async () => {};
  const remove: typeof storage.workers.remove = async (params) => {
    await beforeRemove();
    return storage.workers.remove(params);
  };
  const { ask } = await openTestServer({
    clock,
    storage: { ...storage, workers: { ...storage.workers, remove } },
  });
  const worker = await register(ask);
  const taskId = await submit(ask);
  await claimOne(ask, worker);
  beforeRemove = async () => {
    beforeRemove = async () => {};
    await claimOne(ask, worker);
  };
  const { status, body } = await ask(`/v1/workers/${worker}`, { method: "DELETE" });
  expect([status, body]).toEqual([200, { released: [taskId] }]);
  expect((await ask(`/tasks/${taskId}`)).body).toMatchObject({ state: "queued" });
  expect((await ask(`/v1/workers/${worker}`)).status).toBe(404);
});

test("workers are listed, and drain on request", async () => {
  const { ask } = await openTestServer();
  const worker = await register(ask, { labels: { gpu: "a" }, version: "1", runtime: "python 3.12" });
  await submit(ask);
  await claim(ask, worker);
  const listed = (await ask("/v1/workers")).body.workers;
  expect(listed).toEqual([
    {
      id: worker,
      name: "w",
      agents: ["py"],
      slots: 2,
      running: 1,
      state: "busy",
      lastSeenAt: expect.any(String),
      version: "1",
      runtime: "python 3.12",
      labels: { gpu: "a" },
      doneLast10m: 0,
      failedLast10m: 0,
    },
  ]);
  const drained = await ask(`/v1/workers/${worker}/drain`, { method: "POST" });
  expect(drained.body).toMatchObject({ id: worker, state: "draining" });
  expect(await claim(ask, worker)).toEqual({ attempts: [], drain: true });
  const beat = await ask(`/v1/workers/${worker}/heartbeat`, { json: { attempts: [] } });
  expect(beat.body.drain).toBe(true);
  expect((await ask("/v1/workers/wrk_none")).body.code).toBe("unknown_worker");
});

test("workers are listed page by page", async () => {
  const { ask } = await openTestServer();
  const names = ["é/ 1", "b", "a", "b"];
  for (const name of names) await register(ask, { name });
  const read = async (query: string) => (await ask(`/v1/workers${query}`)).body;
  const first = await read("?limit=2");
  expect(first).toMatchObject({ workers: [{ name: "a" }, { name: "b" }], count: 2 });
  const second = await read(`?limit=1&cursor=${first.nextCursor}`);
  expect(second).toMatchObject({ workers: [{ name: "b" }], count: 1 });
  expect(second.workers[0].id).not.toBe(first.workers[1].id);
  const last = await read(`?cursor=${second.nextCursor}`);
  expect(last).toMatchObject({ workers: [{ name: "é/ 1" }], count: 1, nextCursor: null });
  for (const [query, field] of [
    ["?limit=0", "limit"],
    ["?limit=1001", "limit"],
    ["?cursor=x", "cursor"],
    [`?cursor=${Buffer.from('["a\\u0000","b"]').toString("base64url")}`, "cursor"],
    ["?agent=py", "agent"],
  ])
    expect(await read(query ?? ""), query).toMatchObject({
      code: "invalid_field",
      error: expect.stringContaining(field ?? ""),
    });
});

test("a worker that finds no room is asked to register again later", async () => {
  const clock = new ManualClock();
  const storage = await openMemory(clock);
  const register: typeof storage.workers.register = async () => ({ full: "installation" });
  const { ask } = await openTestServer({
    clock,
    storage: { ...storage, workers: { ...storage.workers, register } },
  });
  const { status, headers, body } = await ask("/v1/workers", {
    json: { name: "w", agents: ["py"], slots: 1 },
  });
  expect([status, body.code]).toEqual([429, "quota_exceeded"]);
  const afterSec = Number(headers.get("retry-after"));
  expect(afterSec).toBeGreaterThanOrEqual(5);
  expect(afterSec).toBeLessThanOrEqual(10);
});

test("a tenant sees the waiting claims and the lost workers of its own alone", async () => {
  const { ask, rota, url, clock } = await openTestServer();
  const doomed = await register(ask, { leaseMs: 3_000 });
  await claim(ask, doomed, { waitS: 0 });
  for (let second = 0; second < 10; second += 1) await clock.advance(1_000);
  const worker = await register(ask);
  const waiting = claim(ask, worker, { waitS: 25 });
  await claimsWait(ask, 1);
  const { id: tenantId } = await rota.tenants.create({ name: "other" });
  const theirs = await rota.keys.create({ role: "viewer", tenantId, name: "theirs" });
  const ours = await rota.keys.create({ role: "viewer", name: "ours" });
  const figures = async (key: string) => {
    const response = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${key}` } });
    const text = await response.text();
    return [/^rota_worker_claims_waiting (\d+)$/m, /^rota_workers_lost_total (\d+)$/m].map(
      (line) => line.exec(text)?.[1],
    );
  };
  expect(await figures(ours.key)).toEqual(["1", "1"]);
  expect(await figures(theirs.key)).toEqual(["0", "0"]);
  await rota.drain({ graceMs: 0 });
  await waiting.catch(() => undefined);
});

test("wrong input is refused with what to write instead", async () => {
  const { ask } = await openTestServer();
  const worker = await register(ask);
  const cases = [
    ["/v1/workers", { agents: ["py"], slots: 1 }, "name"],
    ["/v1/workers", { name: "w", agents: [], slots: 1 }, "agents"],
    ["/v1/workers", { name: "w", agents: ["py", "*"], slots: 1 }, '`agents`: send ["*"] alone'],
    ["/v1/workers", { name: "w", agents: ["py"], slots: 1_001 }, "slots"],
    ["/v1/workers", { name: "w", agents: ["py"], slots: 1, instanceId: "x" }, "instanceId"],
    ["/v1/workers", { name: "w", agents: ["py"], slots: 1, leaseMs: 120_001 }, "leaseMs"],
    ["/v1/workers", { name: "w", agents: ["py"], slots: 1, slot: 1 }, "slots"],
    [`/v1/workers/${worker}/claim`, { claimId: "1", max: 1 }, "claimId"],
    [`/v1/workers/${worker}/claim`, { claimId: randomUUID(), max: 1, waitS: 26 }, "waitS"],
    [
      `/v1/workers/${worker}/claim`,
      { claimId: randomUUID(), max: 1, agents: ["*"] },
      '"*" is not allowed here: list',
    ],
    ["/v1/attempts/att_x/heartbeat", [], "the body must be an object"],
    [`/v1/workers/${worker}/finish`, { attempts: [] }, "attempts"],
    [`/v1/workers/${worker}/finish`, { attempts: [{ attemptToken: "a", outcome: "failed" }] }, "error"],
    [`/v1/workers/${worker}/heartbeat`, { attempts: [{ attemptToken: "a", log: [{ text: 1 }] }] }, "text"],
    [
      `/v1/workers/${worker}/heartbeat`,
      { attempts: [{ attemptToken: "a", progress: "x".repeat(70_000) }] },
      "65536",
    ],
    [
      `/v1/workers/${worker}/heartbeat`,
      { attempts: [{ attemptToken: "a", progress: nested(600) }] },
      "`attempts[0].progress` is nested deeper than 500 levels",
    ],
    ["/v1/attempts/att_x/heartbeat", { progress: nested(600) }, "`progress` is nested deeper"],
    [`/v1/workers/${worker}/claim`, { max: 1 }, "`claimId` is missing"],
  ] as const;
  for (const [path, json, named] of cases) {
    const { status, body } = await ask(path, { json });
    expect([status, body.error], JSON.stringify(json).slice(0, 100)).toEqual([
      400,
      expect.stringContaining(named),
    ]);
  }
});

function nested(levels: number): unknown {
  return JSON.parse("[".repeat(levels) + "]".repeat(levels));
}

test("an agent that another executor runs is not for workers, and one for workers is", async () => {
  const options = {
    agents: {
      configured: { executor: { type: "http", url: "http://127.0.0.1:9" } },
      remote: { executor: { type: "worker" } },
    },
  } as const;
  const { ask, rota } = await openTestServer({ options });
  rota.agent("function", async () => 1);
  const refused = async (agent: string) => {
    const { status, body } = await ask("/v1/workers", { json: { name: "w", agents: [agent], slots: 1 } });
    return [status, body.error];
  };
  expect(await refused("configured")).toEqual([409, expect.stringContaining("`http`")]);
  expect(await refused("function")).toEqual([409, expect.stringContaining("a function of a program")]);
  expect(await refused("index")).toEqual([409, expect.stringContaining("echo")]);
  await ask("/v1/agents", { json: { id: "stored", executor: { type: "worker" } } });
  const worker = await register(ask, { agents: ["remote", "stored"] });
  const taskId = await submit(ask, { agentId: "remote" });
  await submit(ask, { agentId: "stored" });
  const { attempts } = await claim(ask, worker);
  expect(attempts.map(({ task }) => task.agentId).toSorted()).toEqual(["remote", "stored"]);
  expect(attempts[0]?.task.taskId).toBe(taskId);
});

test("with executors by kind, a worker needs an agent with the executor worker", async () => {
  const { ask } = await openTestServer({ options: { executors: { instruction: { type: "echo" } } } });
  const { status, body } = await ask("/v1/workers", { json: { name: "w", agents: ["py"], slots: 1 } });
  expect([status, body.error]).toEqual([409, expect.stringContaining("executors.instruction")]);
});

test("a third claim of a worker ends the oldest, and so does one with the same id", async () => {
  const { ask } = await openTestServer();
  const worker = await register(ask);
  const oldest = claim(ask, worker, { waitS: 25 });
  await claimsWait(ask, 1);
  const claimId = randomUUID();
  const second = claim(ask, worker, { waitS: 25, claimId });
  await claimsWait(ask, 2);
  const third = claim(ask, worker, { waitS: 25, claimId });
  expect(await second).toEqual({ attempts: [] });
  const fourth = claim(ask, worker, { waitS: 25 });
  expect(await oldest).toEqual({ attempts: [] });
  await submit(ask);
  await submit(ask);
  const got = [(await third).attempts, (await fourth).attempts].flat();
  expect(got).toHaveLength(2);
});

test("a claim that is repeated while the first is being carried out gets its attempts, and keeps them", async () => {
  const clock = new ManualClock();
  const storage = await openMemory(clock);
  let afterExchange = async () => {};
  const exchange: typeof storage.workers.exchange = async (params) => {
    const exchanged = await storage.workers.exchange(params);
    if (params.polls.length > 0) await afterExchange();
    return exchanged;
  };
  const { ask } = await openTestServer({
    clock,
    storage: { ...storage, workers: { ...storage.workers, exchange } },
  });
  const worker = await register(ask);
  await submit(ask);
  const claimId = randomUUID();
  let repeated: ReturnType<typeof claim> | undefined;
  afterExchange = async () => {
    afterExchange = async () => {};
    repeated = claim(ask, worker, { claimId });
    // The repeated claim ends the first one, whose attempts are stored by now.
    await expect.poll(() => first.isOver).toBe(true);
  };
  const first = { isOver: false };
  const answer = claim(ask, worker, { claimId });
  void answer.then(() => {
    first.isOver = true;
  });
  expect((await answer).attempts).toEqual([]);
  const [attempt] = (await repeated)?.attempts ?? [];
  const attempts = [{ attemptToken: attempt?.attemptToken }];
  const { body } = await ask(`/v1/workers/${worker}/heartbeat`, { json: { attempts } });
  expect(body.attempts).toMatchObject([{ ok: true }]);
});

test("a node that drains sends claims away, and still takes ends", async () => {
  const { ask, rota, clock } = await openTestServer();
  const worker = await register(ask);
  rota.agent(
    "slow",
    async (_task, { signal }) => new Promise((resolve) => signal.addEventListener("abort", resolve)),
  );
  await ask("/tasks", { json: { agentId: "slow", payload: 1 } });
  const taskId = await submit(ask);
  const { attemptToken } = await claimOne(ask, worker);
  const waiting = claim(ask, worker, { waitS: 25 });
  await claimsWait(ask, 1);
  const drained = rota.drain({ graceMs: 1_000 });
  expect(await waiting).toEqual({ attempts: [], drain: true, retryInMs: expect.any(Number) });
  expect(await claim(ask, worker)).toEqual({ attempts: [], drain: true, retryInMs: expect.any(Number) });
  const finish = await ask(`/v1/workers/${worker}/finish`, {
    json: { attempts: [{ attemptToken, outcome: "done", result: 1 }] },
  });
  expect(finish.body.attempts).toEqual([{ attemptToken, recorded: true }]);
  expect((await ask(`/tasks/${taskId}`)).body.state).toBe("done");
  await clock.advance(1_000);
  await drained;
});

test("a task whose response cannot be sent goes back at once, uncounted", async () => {
  const { ask, url } = await openTestServer();
  const worker = await register(ask);
  const gone = new AbortController();
  const lost = fetch(`${url}/v1/workers/${worker}/claim`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ claimId: randomUUID(), max: 1, waitS: 20 }),
    signal: gone.signal,
  }).catch(() => null);
  await claimsWait(ask, 1);
  gone.abort();
  await lost;
  await claimsWait(ask, 0);
  const taskId = await submit(ask);
  expect((await ask(`/tasks/${taskId}`)).body).toMatchObject({ state: "queued", retryCount: 0 });
  expect((await claim(ask, worker)).attempts).toMatchObject([{ task: { taskId } }]);
});

test("a connection that closes late takes nothing back that the worker has got by repeating its claim", async () => {
  const { ask, url } = await openTestServer();
  const worker = await register(ask, { slots: 8 });
  // More than the buffers of a connection hold: the response cannot be sent to a worker that does not read.
  const taskIds: string[] = [];
  for (let n = 0; n < 8; n += 1) taskIds.push(await submit(ask, { payload: "x".repeat(900_000) }));
  const states = async () => (await ask("/tasks/stats")).body.counts;
  const stuck = async (claimId: string) => {
    const socket = connect(Number(new URL(url).port), "127.0.0.1");
    socket.pause();
    const body = JSON.stringify({ claimId, max: 8, waitS: 20 });
    const head = `POST /v1/workers/${worker}/claim HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json`;
    socket.write(`${head}\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
    await expect.poll(states).toMatchObject({ assigned: 8 });
    return async () => {
      const closed = new Promise((resolve) => socket.once("close", resolve));
      socket.destroy();
      await closed;
    };
  };
  const claimId = randomUUID();
  const closeFirst = await stuck(claimId);
  const { attempts } = await claim(ask, worker, { claimId, max: 8, waitS: 0 });
  expect(attempts.map(({ task }) => task.taskId).toSorted()).toEqual(taskIds.toSorted());
  await closeFirst();
  // The server notices the end of the connection before it takes these requests.
  for (let time = 0; time < 5; time += 1) expect(await states()).toMatchObject({ assigned: 8 });
  const named = attempts.map(({ attemptToken }) => ({ attemptToken }));
  const beat = await ask(`/v1/workers/${worker}/heartbeat`, { json: { attempts: named } });
  expect(beat.body.attempts.every(({ ok }: { ok: boolean }) => ok)).toBe(true);
  await ask(`/v1/workers/${worker}/finish`, {
    json: { attempts: named.map((attempt) => ({ ...attempt, outcome: "released" })) },
  });
  // Without another response the tasks go back.
  const closeSecond = await stuck(randomUUID());
  await closeSecond();
  await expect.poll(states).toMatchObject({ queued: 8 });
});

test("results of dependencies come with the task", async () => {
  const { ask } = await openTestServer();
  const worker = await register(ask);
  const parent = await submit(ask);
  const child = await submit(ask, { dependsOn: [parent] });
  const { attemptToken } = await claimOne(ask, worker);
  await ask(`/v1/attempts/${attemptToken}/finish`, { json: { outcome: "done", result: { answer: 42 } } });
  const attempt = await claimOne(ask, worker);
  expect(attempt.task).toMatchObject({
    taskId: child,
    dependencies: [{ taskId: parent, result: { answer: 42 } }],
  });
  const read = await ask(`/v1/attempts/${attempt.attemptToken}/dependencies/${parent}`);
  expect(read.body).toEqual({ taskId: parent, result: { answer: 42 } });
  expect((await ask(`/v1/attempts/${attempt.attemptToken}/dependencies/${child}`)).status).toBe(404);
});

test("an agent that requires labels is run by workers that have them", async () => {
  const { ask } = await openTestServer();
  const agent = { id: "gpu", executor: { type: "worker" }, require: { labels: { gpu: "a100" } } };
  const created = await ask("/v1/agents", { json: agent });
  expect([created.status, created.body.require]).toEqual([201, { labels: { gpu: "a100" } }]);
  const wrong = await ask("/v1/agents", { json: { ...agent, id: "x", require: { labels: { gpu: 1 } } } });
  expect([wrong.status, wrong.body.error]).toEqual([400, expect.stringContaining("require.labels")]);
  const without = await register(ask, { agents: ["gpu"], labels: { gpu: "t4" } });
  const all = await register(ask, { agents: ["*"] });
  const taskId = await submit(ask, { agentId: "gpu" });
  const reasons = async (id: string) => (await ask(`/tasks/${id}/explain`)).body.reasons;
  expect(await reasons(taskId)).toMatchObject([
    {
      code: "no_executor",
      message: 'no worker for agent "gpu" has the labels that the agent requires: gpu=a100',
    },
  ]);
  const able = await register(ask, { agents: ["gpu"], slots: 1, labels: { gpu: "a100", zone: "b" } });
  expect(await claim(ask, without, { waitS: 0 })).toEqual({ attempts: [] });
  expect(await claim(ask, all, { waitS: 0 })).toEqual({ attempts: [] });
  expect(await reasons(taskId)).toMatchObject([{ code: "others_first" }]);
  expect((await claimOne(ask, able)).task.taskId).toBe(taskId);
  // The others have free slots, which are of no use.
  const second = await submit(ask, { agentId: "gpu" });
  expect(await reasons(second)).toMatchObject([
    { code: "workers_busy", message: expect.stringContaining("slots of the worker") },
  ]);
  await ask(`/v1/workers/${able}/drain`, { method: "POST" });
  expect(await reasons(second)).toMatchObject([{ message: expect.stringContaining("drain") }]);
});

test("a worker takes messages for a running task by its heartbeat, again until it has seen them", async () => {
  const { ask } = await openTestServer();
  const id = await register(ask);
  const taskId = await submit(ask, { sessionKey: "user:1" });
  const [attempt] = (await claim(ask, id)).attempts;
  const attemptToken = attempt?.attemptToken ?? "";
  const beat = async (more: object = {}) => {
    const json = { attempts: [{ attemptToken, ...more }] };
    return (await ask(`/v1/workers/${id}/heartbeat`, { json })).body.attempts[0];
  };
  await beat();
  const say = async (message: string) =>
    (await ask("/v1/sessions/user:1/messages", { json: { message, agentId: "py", mode: "steer" } })).body;
  const { taskId: steered } = await say("left");
  expect(await beat()).toEqual({ attemptToken, ok: true });
  const position = expect.any(Number);
  const left = { taskId: steered, message: "left", position };
  const taken = await beat({ messagesAfter: 0 });
  expect(taken).toEqual({ attemptToken, ok: true, messages: [left] });
  expect(await beat({ messagesAfter: 0 })).toEqual(taken);
  const next = { messagesAfter: taken.messages[0].position };
  expect(await beat(next)).toEqual({ attemptToken, ok: true });
  await say("right");
  const one = await ask(`/v1/attempts/${attemptToken}/heartbeat`, { json: next });
  expect(one.body.messages).toMatchObject([{ message: "right" }]);
  await ask(`/v1/workers/${id}/finish`, {
    json: { attempts: [{ attemptToken, outcome: "done", result: 1 }] },
  });
  expect((await ask(`/tasks/${steered}`)).body).toMatchObject({
    state: "done",
    result: { steeredInto: taskId },
  });
  expect(
    (await ask(`/v1/workers/${id}/heartbeat`, { json: { attempts: [{ attemptToken, messagesAfter: -1 }] } }))
      .status,
  ).toBe(400);
});

test("a lane without concurrency leaves its tasks to workers, and a full one holds them back and says so", async () => {
  const { ask } = await openTestServer({ options: { lanes: { far: { concurrency: 0, total: 1 } } } });
  const worker = await register(ask);
  const [first, second] = [await submit(ask, { lane: "far" }), await submit(ask, { lane: "far" })];
  expect((await claim(ask, worker)).attempts).toMatchObject([{ task: { taskId: first } }]);
  const explained = (await ask(`/v1/tasks/${second}/explain`)).body;
  expect(explained.reasons.map(({ code }: { code: string }) => code)).toContain("lane_full");
  expect(explained.reasons.map(({ code }: { code: string }) => code)).not.toContain("lane_not_served");
});

test("an attempt reads the session of its task, and no other", async () => {
  const { ask } = await openTestServer();
  const worker = await register(ask);
  const finish = (token: string, result: string) =>
    ask(`/v1/attempts/${token}/finish`, { json: { outcome: "done", result } });
  const taskId = await submit(ask, { sessionKey: "user:1" });
  await finish((await claimOne(ask, worker)).attemptToken, "first");
  await submit(ask, { sessionKey: "user:1" });
  const { attemptToken } = await claimOne(ask, worker);
  const read = (query = "") => ask(`/v1/attempts/${attemptToken}/session${query}`);
  expect((await read()).body).toEqual({ session: { generation: 0, contextWindow: null, turns: [] } });
  expect((await read("?turns=5")).body.session.turns).toMatchObject([{ taskId, result: "first" }]);
  expect((await read("?turns=201")).body).toMatchObject({
    code: "invalid_field",
    error: expect.stringContaining("turns"),
  });
  await finish(attemptToken, "second");
  expect((await read()).status).toBe(404);
});

test("what does not fit into the response to a claim goes back without a trace, and the next claim asks for fewer", async () => {
  const asked: number[] = [];
  const clock = new ManualClock();
  const storage = meddle(await openMemory(clock), {
    before: ({ operation, params }) => {
      if (operation === "workers.exchange")
        asked.push(...params.polls.map(({ max }: { max: number }) => max));
    },
  });
  const { ask } = await openTestServer({ clock, storage });
  const id = await register(ask, { slots: 50 });
  const payload = "x".repeat(900_000);
  const ids: string[] = [];
  for (let n = 0; n < 12; n++) ids.push(await submit(ask, { payload, lane: "main" }));
  const first = (await claim(ask, id, { max: 50, waitS: 0 })).attempts;
  expect(first.map(({ task }) => task.taskId)).toEqual(ids.slice(0, 9));
  expect((await ask(`/tasks/${ids[9]}`)).body).toMatchObject({
    state: "queued",
    attempts: [],
    retryCount: 0,
  });
  const second = (await claim(ask, id, { max: 41, waitS: 0 })).attempts;
  expect(second.map(({ task }) => task.taskId)).toEqual(ids.slice(9));
  expect(second).toMatchObject([{ number: 1 }, { number: 1 }, { number: 1 }]);
  expect(asked.filter((max) => max > 1)).toEqual([50, 10]);
});

test("an agent that another node runs is a 409, unless its executor is `worker`", async () => {
  const clock = new ManualClock();
  const storage = await openMemory(clock);
  const { ask } = await openTestServer({ clock, storage });
  const abilities = { agents: new Map([["far", true]]), kinds: [] };
  await storage.nodes.register({ node: "another", abilities });
  const json = { name: "w", agents: ["py", "far"], slots: 1 };
  const refused = await ask("/v1/workers", { json });
  expect([refused.status, refused.body]).toEqual([
    409,
    {
      code: "conflict",
      error:
        'the agent "far" already has an executor: that of another node, or of one that was here in the last 7 days. Give the agent the executor {"type": "worker"}, or register another agent',
      details: { agentId: "far" },
    },
  ]);
  await ask("/v1/agents", { json: { id: "far", executor: { type: "worker" } } });
  expect((await ask("/v1/workers", { json })).status).toBe(201);
});
