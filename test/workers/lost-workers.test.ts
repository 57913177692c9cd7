import { expect, test } from "vitest";
import { openTestServer } from "../support/http.ts";
import { claimOne, claimsWait, claimTasks, registerWorker, submitTask } from "../support/workers.ts";

type Server = Awaited<ReturnType<typeof openTestServer>>;

/** Moves the time in steps, so that the checks in between take place. */
async function pass({ clock }: Server, seconds: number): Promise<void> {
  for (let second = 0; second < seconds; second += 1) await clock.advance(1_000);
}

async function stateOf({ ask }: Server, taskId: string): Promise<Record<string, unknown>> {
  return (await ask(`/tasks/${taskId}`)).body;
}

async function beat({ ask }: Server, worker: string, tokens: readonly string[]) {
  const attempts = tokens.map((attemptToken) => ({ attemptToken }));
  return (await ask(`/v1/workers/${worker}/heartbeat`, { json: { attempts } })).body;
}

const RETRIES = { retryPolicy: { maxRetries: 3, backoffMs: 1 }, timeout: 600_000 };

test("the tasks of a worker that is gone go back after its lease", async () => {
  const server = await openTestServer();
  const { ask } = server;
  const worker = await registerWorker(ask);
  const ran = await submitTask(ask, RETRIES);
  const last = await submitTask(ask, { timeout: 600_000 });
  const { attempts } = await claimTasks(ask, worker);
  await beat(
    server,
    worker,
    attempts.map(({ attemptToken }) => attemptToken),
  );
  await pass(server, 10);
  expect(await stateOf(server, ran)).toMatchObject({ state: "running" });
  await pass(server, 15);
  expect(await stateOf(server, ran)).toMatchObject({
    state: "queued",
    retryCount: 1,
    attempts: [{ outcome: "lost", error: "worker lost", node: worker }],
  });
  expect(await stateOf(server, last)).toMatchObject({ state: "failed", error: "worker lost" });
  expect((await ask(`/v1/workers/${worker}`)).body).toMatchObject({ state: "lost", running: 0 });
  const { reasons } = (await ask(`/tasks/${ran}/explain`)).body;
  expect(reasons).toMatchObject([
    {
      code: "no_executor",
      message: expect.stringMatching(/^no worker for agent "py"; last seen \d+ s ago$/),
    },
  ]);
  const late = await ask(`/v1/workers/${worker}/finish`, {
    json: { attempts: [{ attemptToken: attempts[0]?.attemptToken, outcome: "done" }] },
  });
  expect(late.body.attempts).toMatchObject([{ recorded: false, reason: "fenced" }]);
  expect((await claimOne(ask, worker)).task.taskId).toBe(ran);
});

test("heartbeats keep a worker and its tasks, for as long as they come", async () => {
  const server = await openTestServer();
  const worker = await registerWorker(server.ask);
  const taskId = await submitTask(server.ask, RETRIES);
  const { attemptToken } = await claimOne(server.ask, worker);
  for (let time = 0; time < 10; time += 1) {
    expect((await beat(server, worker, [attemptToken])).attempts).toEqual([{ attemptToken, ok: true }]);
    await pass(server, 5);
  }
  expect(await stateOf(server, taskId)).toMatchObject({ state: "running", retryCount: 0 });
  expect((await server.ask(`/v1/workers/${worker}`)).body).toMatchObject({
    state: "not_polling",
    running: 1,
  });
});

test("a task waits visibly for a worker that gives signs of life and asks for no tasks", async () => {
  const server = await openTestServer();
  const { ask } = server;
  const worker = await registerWorker(ask);
  const taskId = await submitTask(ask, RETRIES);
  const reasons = async () => (await ask(`/tasks/${taskId}/explain`)).body.reasons;
  expect(await reasons()).toMatchObject([{ code: "others_first" }]);
  for (let time = 0; time < 8; time += 1) {
    await beat(server, worker, []);
    await pass(server, 5);
  }
  expect(await reasons()).toMatchObject([
    {
      code: "no_executor",
      message: `no worker for agent "py" with a free slot asks for tasks: ${worker} did not for 30 s`,
    },
  ]);
  const other = await registerWorker(ask);
  expect(await reasons()).toMatchObject([{ code: "others_first" }]);
  expect((await claimOne(ask, other)).task.taskId).toBe(taskId);
});

test("a busy worker whose claims wait does not count as one that no longer asks for tasks", async () => {
  const server = await openTestServer();
  const { ask } = server;
  const worker = await registerWorker(ask);
  await submitTask(ask, RETRIES);
  const { attemptToken } = await claimOne(ask, worker);
  for (let claim = 0; claim < 4; claim += 1) {
    // The claim comes directly after a heartbeat, which has just renewed the worker.
    await beat(server, worker, [attemptToken]);
    await pass(server, 1);
    const waiting = claimTasks(ask, worker, { max: 1, waitS: 25 });
    await claimsWait(ask, 1);
    for (let second = 1; second < 25; second += 1) {
      await pass(server, 1);
      if (second % 5 === 0) await beat(server, worker, [attemptToken]);
      expect((await ask(`/v1/workers/${worker}`)).body.state).toBe("busy");
    }
    await pass(server, 1);
    expect((await waiting).attempts).toEqual([]);
  }
});

test("a task that its worker never names goes back after a lease, even if the worker still asks for tasks", async () => {
  const server = await openTestServer();
  const { ask } = server;
  const worker = await registerWorker(ask);
  const taskId = await submitTask(ask, { timeout: 600_000 });
  await claimOne(ask, worker);
  const waiting = claimTasks(ask, worker, { waitS: 25 });
  await claimsWait(ask, 1);
  await pass(server, 16);
  expect(await waiting).toMatchObject({ attempts: [{ number: 2, task: { taskId } }] });
  expect(await stateOf(server, taskId)).toMatchObject({ state: "assigned", retryCount: 0 });
});

test("a task that its heartbeats leave out twice goes back", async () => {
  const server = await openTestServer();
  const worker = await registerWorker(server.ask);
  const taskId = await submitTask(server.ask, RETRIES);
  const { attemptToken } = await claimOne(server.ask, worker);
  await beat(server, worker, [attemptToken]);
  await beat(server, worker, []);
  expect(await stateOf(server, taskId)).toMatchObject({ state: "running" });
  await beat(server, worker, []);
  expect(await stateOf(server, taskId)).toMatchObject({ state: "queued", retryCount: 1 });
});

test("a task that loses five workers fails", async () => {
  const server = await openTestServer();
  const { ask } = server;
  const taskId = await submitTask(ask, { retryPolicy: { maxRetries: 100 }, timeout: 600_000 });
  for (let time = 1; time <= 5; time += 1) {
    const worker = await registerWorker(ask, { slots: 1 });
    const attempt = await claimOne(ask, worker);
    expect(attempt.number).toBe(time);
    await pass(server, 25);
  }
  expect(await stateOf(server, taskId)).toMatchObject({ state: "failed", error: "lost 5 times" });
});

test("releases count as losses, too", async () => {
  const server = await openTestServer();
  const { ask } = server;
  const worker = await registerWorker(ask, { slots: 1 });
  const taskId = await submitTask(ask);
  for (let time = 1; time <= 5; time += 1) {
    const { attemptToken } = await claimOne(ask, worker);
    await ask(`/v1/attempts/${attemptToken}/finish`, { json: { outcome: "released" } });
  }
  expect(await stateOf(server, taskId)).toMatchObject({ state: "failed", error: "lost 5 times" });
});

test("timeouts and deadlines end the attempts of workers", async () => {
  const server = await openTestServer();
  const { ask, clock } = server;
  const worker = await registerWorker(ask);
  const slow = await submitTask(ask, { timeout: 5_000 });
  const overdue = await submitTask(ask, {
    deadline: new Date(clock.now() + 7_000).toISOString(),
    timeout: 60_000,
  });
  const { attempts } = await claimTasks(ask, worker);
  const tokens = attempts.map(({ attemptToken }) => attemptToken);
  expect((await beat(server, worker, tokens)).attempts).toMatchObject([{ ok: true }, { ok: true }]);
  await pass(server, 8);
  expect(await stateOf(server, slow)).toMatchObject({ state: "failed", error: "timed out after 5000 ms" });
  expect(await stateOf(server, overdue)).toMatchObject({ state: "failed", error: "deadline exceeded" });
  expect((await beat(server, worker, tokens)).attempts).toMatchObject([
    { ok: false, cancel: "timeout" },
    { ok: false, cancel: "deadline" },
  ]);
});

test("a session that is stopped stops its worker", async () => {
  const server = await openTestServer();
  const { ask } = server;
  const worker = await registerWorker(ask);
  const sent = await ask("/v1/sessions/s/messages", {
    json: { message: "hi", agentId: "py", mode: "interrupt" },
  });
  const { attemptToken, task } = await claimOne(ask, worker);
  expect(task.taskId).toBe(sent.body.taskId);
  await ask("/v1/sessions/s/stop", { method: "POST" });
  expect((await beat(server, worker, [attemptToken])).attempts).toEqual([
    { attemptToken, ok: false, cancel: "session_stopped" },
  ]);
});

test("of many claims that wait, one of a worker whose task was cancelled can get the next", async () => {
  const server = await openTestServer();
  const { ask } = server;
  const first = await registerWorker(ask, { name: "first" });
  const cancelled = await submitTask(ask);
  const { attemptToken } = await claimOne(ask, first);
  await ask(`/tasks/${cancelled}/cancel`, { method: "POST" });
  await beat(server, first, [attemptToken]);
  await pass(server, 10);
  const waiting = claimTasks(ask, first, { max: 1, waitS: 25 });
  await claimsWait(ask, 1);
  // More than one exchange asks for.
  const others = await Promise.all(
    Array.from({ length: 20 }, (_, n) => registerWorker(ask, { name: `w${n}` })),
  );
  const alsoWaiting = others.map((worker) => claimTasks(ask, worker, { waitS: 25 }));
  await claimsWait(ask, 21);
  const taskId = await submitTask(ask);
  expect((await waiting).attempts.map(({ task }) => task.taskId)).toEqual([taskId]);
  await pass(server, 25);
  await Promise.all(alsoWaiting);
});

test("explain says that all slots of the workers are taken", async () => {
  const server = await openTestServer();
  const worker = await registerWorker(server.ask, { slots: 1 });
  await submitTask(server.ask);
  const waits = await submitTask(server.ask);
  await claimOne(server.ask, worker);
  const { reasons } = (await server.ask(`/tasks/${waits}/explain`)).body;
  expect(reasons).toMatchObject([
    { code: "workers_busy", message: 'all 1 slots of the worker for agent "py" are taken' },
  ]);
});
