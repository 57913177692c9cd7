import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, onTestFinished, test } from "vitest";
import { HttpError, PermanentError } from "../../executors/errors.ts";
import type { Executor } from "../../executors/executor.ts";
import type { Task } from "../../model/task.ts";
import type { AttemptEnd } from "./finisher.ts";
import type { AttemptReport } from "./held-attempt.ts";
import { RotaWorker } from "./rota-worker.ts";
import type { RotaWorkerOptions } from "./worker-options.ts";

interface Sent {
  readonly method: string;
  readonly path: string;
  readonly body: Record<string, unknown>;
}

interface FakeAttempt {
  readonly token: string;
  readonly task?: Partial<Task>;
  readonly timeoutMs?: number;
}

const SESSION = { generation: 0, contextWindow: null, turns: [] };

const REFUSALS: Readonly<Record<number, string>> = {
  404: "not_found",
  429: "quota_exceeded",
  503: "storage_unavailable",
};

/** A server of this process, as `fetch` sees it: it assigns the attempts once, and records every request. */
function fakeRota(
  attempts: readonly FakeAttempt[],
  options: { refuse?: (sent: Sent) => number | null; finishesPerClaim?: number } = {},
) {
  const waiting = [...attempts];
  const sent: Sent[] = [];
  const cancel = new Map<string, string>();
  const messages: { taskId: string; message: string; position: number }[] = [];
  const answer = (request: Sent): object => {
    const { method, path, body } = request;
    const tokens = (body["attempts"] as { attemptToken: string }[] | undefined)?.map(
      (each) => each.attemptToken,
    );
    const { finishesPerClaim } = options;
    if (path === "/v1/workers")
      return { workerId: "wrk_1", leaseMs: 15_000, heartbeatMs: 500, maxWaitS: 1, finishesPerClaim };
    if (method === "DELETE") return { released: [] };
    if (path.endsWith("/session")) return { session: SESSION };
    if (path.startsWith("/v1/attempts/")) return { result: `result of ${path.split("/").at(-1)}` };
    if (path.endsWith("/claim")) {
      const taken = waiting.splice(0, body["max"] as number);
      const finished = (body["finishes"] as AttemptEnd[] | undefined)?.map(({ attemptToken }) => ({
        attemptToken,
        recorded: true,
      }));
      return { attempts: taken.map(toWire), finished, ...(taken.length === 0 && { retryInMs: 20 }) };
    }
    if (path.endsWith("/heartbeat")) {
      const stopped = (attemptToken: string) => ({
        attemptToken,
        ok: false,
        cancel: cancel.get(attemptToken),
      });
      return {
        attempts: (body["attempts"] as AttemptReport[]).map(
          ({ attemptToken: token, messagesAfter: after }) => {
            if (cancel.has(token)) return stopped(token);
            const taken = after === undefined ? [] : messages.filter(({ position }) => position > after);
            return { attemptToken: token, ok: true, ...(taken.length > 0 && { messages: taken }) };
          },
        ),
      };
    }
    return { attempts: tokens?.map((attemptToken) => ({ attemptToken, recorded: true })) };
  };
  const fetch = async (url: string | URL | Request, init?: RequestInit): Promise<Response> => {
    const body = init?.body === undefined ? {} : JSON.parse(String(init.body));
    const request = { method: init?.method ?? "GET", path: new URL(String(url)).pathname, body };
    sent.push(request);
    const status = options.refuse?.(request) ?? null;
    if (status !== null) {
      const code = REFUSALS[status] ?? "forbidden";
      return Response.json({ code, error: "refused by the test" }, { status });
    }
    return Response.json(answer(request));
  };
  const list = <Item>(call: string) =>
    sent.filter(({ path }) => path.endsWith(call)).flatMap(({ body }) => body["attempts"] as Item[]);
  return {
    fetch: fetch as typeof globalThis.fetch,
    sent,
    cancel,
    messages,
    finished: () => list<AttemptEnd>("/finish"),
    carried: () => sent.flatMap(({ body }) => (body["finishes"] ?? []) as AttemptEnd[]),
    heartbeats: () => list<AttemptReport>("/heartbeat"),
  };
}

function toWire({ token, task, timeoutMs = 120_000 }: FakeAttempt) {
  const about = { taskId: `tsk_${token}`, agentId: "py", kind: "message", message: token, ...task };
  return { attemptToken: token, number: 2, leaseMs: 15_000, timeoutMs, tenantId: "default", task: about };
}

function startWorker(
  server: ReturnType<typeof fakeRota>,
  handler: Executor,
  options: Partial<RotaWorkerOptions> = {},
): RotaWorker {
  const { fetch } = server;
  const worker = new RotaWorker({
    url: "http://rota.test",
    fetch,
    agents: ["py"],
    handler,
    slots: 4,
    ...options,
  });
  onTestFinished(() => worker.stop({ graceMs: 0 }));
  void worker.start();
  return worker;
}

test("a handler gets the task as it was claimed, and what it returns is the result", async () => {
  const server = fakeRota([{ token: "a", task: { metadata: { from: "test" } } }]);
  const tasks: Task[] = [];
  startWorker(server, (task, { tenantId, sign }) => {
    tasks.push(task);
    return { tenantId, signature: sign({ id: "1", timestamp: 1, body: "" }), nothing: undefined };
  });
  await expect
    .poll(server.finished)
    .toEqual([{ attemptToken: "a", outcome: "done", result: { tenantId: "default", signature: null } }]);
  expect(tasks).toMatchObject([{ taskId: "tsk_a", message: "a", metadata: { from: "test" }, agentId: "py" }]);
});

test("several agents have handlers of their own", async () => {
  const server = fakeRota([{ token: "a" }, { token: "b", task: { agentId: "other" } }]);
  const worker = new RotaWorker({
    url: "http://rota.test",
    fetch: server.fetch,
    slots: 2,
    agents: { py: () => "of py", other: () => "of other" },
  });
  onTestFinished(() => worker.stop());
  await worker.start();
  await expect
    .poll(() =>
      server
        .finished()
        .map(({ result }) => result)
        .sort(),
    )
    .toEqual(["of other", "of py"]);
  expect(server.sent[0]?.body["agents"]).toEqual(["py", "other"]);
});

describe("while all slots are taken", () => {
  const tokens = ["a", "b", "c", "d"];
  const ends = tokens.map((attemptToken) => ({ attemptToken, outcome: "done", result: 1 }));

  test("a claim carries the outcomes", async () => {
    const server = fakeRota(
      tokens.map((token) => ({ token })),
      { finishesPerClaim: 100 },
    );
    const running: number[] = [];
    const worker = startWorker(server, () => running.push(worker.running) && 1, { slots: 2 });
    await expect.poll(server.carried).toEqual(ends);
    await expect.poll(() => worker.running).toBe(0);
    expect(server.finished()).toEqual([]);
    expect(Math.max(...running)).toBe(2);
    const claims = server.sent.filter(({ path }) => path.endsWith("/claim"));
    expect(claims.slice(0, 3).map(({ body }) => [body["max"], body["finishes"]])).toEqual([
      [2, undefined],
      [2, ends.slice(0, 2)],
      [2, ends.slice(2)],
    ]);
  });

  test.each([400, 401, 413, 503])(
    "outcomes of a claim that fails with %i are sent without it",
    async (status) => {
      const server = fakeRota(
        tokens.map((token) => ({ token })),
        { finishesPerClaim: 100, refuse: ({ body }) => (body["finishes"] === undefined ? null : status) },
      );
      startWorker(server, () => 1, { slots: 2 });
      await expect.poll(server.finished, { timeout: 10_000 }).toEqual(ends);
    },
  );

  test("outcomes that a claim carries when the worker stops are sent without it", async () => {
    const server = fakeRota([{ token: "a" }], { finishesPerClaim: 100 });
    const { fetch } = server;
    const carrying = Promise.withResolvers<void>();
    const slow: typeof fetch = (url, init) => {
      if (!String(init?.body).includes("finishes")) return fetch(url, init);
      carrying.resolve();
      return new Promise((_, reject) =>
        init?.signal?.addEventListener("abort", () => reject(init.signal?.reason)),
      );
    };
    const worker = startWorker({ ...server, fetch: slow }, () => 1, { slots: 1 });
    await carrying.promise;
    await worker.stop();
    expect(server.finished()).toEqual(ends.slice(0, 1));
  });
});

describe("a handler that fails", () => {
  test("says whether and when to retry, as in the process of Rota", async () => {
    const tokens = ["plain", "never", "later", "next week", "soon", "cycle"];
    const server = fakeRota(tokens.map((token) => ({ token })));
    startWorker(server, ({ message }) => {
      if (message === "plain") throw new Error("out of paper");
      if (message === "never") throw new PermanentError("no such page");
      if (message === "later") throw new HttpError(503, "HTTP 503: busy", { retryAfterMs: 1_500 });
      if (message === "next week") throw new HttpError(503, "HTTP 503: busy", { retryAfterMs: 604_800_000 });
      if (message === "soon") throw new HttpError(503, "HTTP 503: busy", { retryAfterMs: 0.5 });
      const cycle: Record<string, unknown> = {};
      cycle["itself"] = cycle;
      return cycle;
    });
    await expect.poll(() => server.finished().length).toBe(6);
    expect(new Map(server.finished().map(({ attemptToken, ...outcome }) => [attemptToken, outcome]))).toEqual(
      new Map([
        ["plain", { outcome: "failed", error: "out of paper", retryable: true }],
        ["never", { outcome: "failed", error: "no such page", retryable: false }],
        ["later", { outcome: "failed", error: "HTTP 503: busy", retryable: true, retryAfterMs: 1_500 }],
        // The longest pause that the server accepts, in whole milliseconds.
        [
          "next week",
          { outcome: "failed", error: "HTTP 503: busy", retryable: true, retryAfterMs: 86_400_000 },
        ],
        ["soon", { outcome: "failed", error: "HTTP 503: busy", retryable: true, retryAfterMs: 1 }],
        ["cycle", { outcome: "failed", error: "result is not JSON", retryable: true }],
      ]),
    );
  });

  test("is a warning in the log of the worker, which names the task", async () => {
    const server = fakeRota([{ token: "fine" }, { token: "plain" }]);
    const warnings: unknown[] = [];
    const silent = () => {};
    const log = {
      debug: silent,
      info: silent,
      error: silent,
      warn: (...data: unknown[]) => warnings.push(data),
    };
    const work: Executor = ({ message }) => {
      if (message === "plain") throw new Error("out of paper");
    };
    startWorker(server, work, { log });
    await expect.poll(() => server.finished().length).toBe(2);
    const fields = { taskId: "tsk_plain", agentId: "py", attempt: 2, error: "out of paper" };
    expect(warnings).toEqual([["an attempt failed", fields]]);
  });

  test("at its timeout, even if the server does not end it", async () => {
    const server = fakeRota([{ token: "a", timeoutMs: 50, task: { timeout: 52 } }]);
    // Two milliseconds had passed when the task was sent. The error is the one that Rota itself would give.
    const aborted = Promise.withResolvers<unknown>();
    startWorker(server, async (_task, { signal }) => {
      await sleep(30_000, undefined, { signal }).catch(() => aborted.resolve(signal.reason));
    });
    await expect
      .poll(server.finished)
      .toEqual([{ attemptToken: "a", outcome: "failed", error: "timed out after 52 ms", retryable: true }]);
    expect(await aborted.promise).toMatchObject({ name: "AbortError", message: "timed out after 52 ms" });
  });
});

test("progress, log lines and the sum of usage reach the server before the end", async () => {
  const server = fakeRota([{ token: "a" }]);
  startWorker(server, (_task, { progress, log, usage }) => {
    progress({ step: 1 });
    log.child({ part: "x" }).warn({ n: 1 }, "careful");
    usage({ inputTokens: 10, outputTokens: 1, contextWindow: 4_000 });
    usage({ inputTokens: 5 });
    usage({ inputTokens: -1 });
    progress(1n);
    return "done";
  });
  await expect.poll(() => server.finished().length).toBe(1);
  expect(server.finished()[0]?.usage).toEqual({
    inputTokens: 15,
    outputTokens: 1,
    contextTokens: 5,
    contextWindow: 4_000,
  });
  const beats = server.heartbeats();
  expect(beats[0]).toMatchObject({ attemptToken: "a", progress: { step: 1 } });
  expect(beats.flatMap(({ log = [] }) => log).map(({ level, text }) => [level, text])).toEqual([
    ["warn", 'careful {"n":1}'],
    ["warn", expect.stringContaining("usage needs a whole number from 0 on as `inputTokens`, not -1")],
    ["warn", expect.stringContaining("progress must be JSON")],
  ]);
  const order = server.sent.map(({ path }) => path.split("/").at(-1));
  expect(order.indexOf("heartbeat")).toBeLessThan(order.indexOf("finish"));
});

test("log lines up to the last reach the server before the end, in heartbeats that it accepts", async () => {
  const server = fakeRota([{ token: "a" }]);
  startWorker(server, async (_task, { log }) => {
    for (let n = 0; n < 30; n++) log.info({}, `${n} ${"x".repeat(1_500)}`);
    // A heartbeat is on its way when the last line is written.
    await expect.poll(() => server.heartbeats().length).toBeGreaterThan(0);
    log.info({}, "last");
  });
  await expect.poll(() => server.finished().length).toBe(1);
  const bodies = server.sent.filter(({ path }) => path.endsWith("/heartbeat")).map(({ body }) => body);
  for (const body of bodies) expect(JSON.stringify(body).length).toBeLessThan(65_536);
  const texts = server.heartbeats().flatMap(({ log = [] }) => log.map(({ text }) => text));
  expect(texts.map((text) => text.split(" ")[0])).toEqual([...Array(30).keys(), "last"].map(String));
});

test("a heartbeat that the server refuses is sent again without what it reported", async () => {
  const server = fakeRota([{ token: "a" }], {
    refuse: ({ path, body }) =>
      path.endsWith("/heartbeat") && JSON.stringify(body).includes("progress") ? 400 : null,
  });
  const worker = startWorker(server, (_task, { progress, signal }) => {
    progress("refused by the test");
    return sleep(30_000, undefined, { signal });
  });
  const beats = () => server.heartbeats().map((beat) => "progress" in beat);
  await expect.poll(() => beats().slice(0, 3)).toEqual([true, false, false]);
  expect(worker.running).toBe(1);
});

test("a result that no server accepts is not sent: the attempt fails, and others finish", async () => {
  const server = fakeRota([{ token: "big" }, { token: "small" }]);
  startWorker(server, ({ message }) => (message === "big" ? "é".repeat(600_000) : "fine"), { slots: 2 });
  await expect.poll(() => server.finished().length).toBe(2);
  expect(server.finished()).toEqual([
    {
      attemptToken: "big",
      outcome: "failed",
      error: expect.stringMatching(/^the result was refused: it is larger than 1048576 bytes/),
      retryable: false,
    },
    { attemptToken: "small", outcome: "done", result: "fine" },
  ]);
});

test("results of dependencies that were too large for the claim are fetched", async () => {
  const dependencies = [
    { taskId: "tsk_1", result: 1 },
    { taskId: "tsk_2", resultBytes: 100, omitted: true as const },
    { taskId: "tsk_3", resultBytes: 5_000_000, omitted: true as const },
  ];
  const server = fakeRota([{ token: "a", task: { dependencies } }]);
  startWorker(server, (task) => task.dependencies);
  await expect
    .poll(() => server.finished()[0]?.result)
    .toEqual([
      { taskId: "tsk_1", result: 1 },
      { taskId: "tsk_2", result: "result of tsk_2" },
      dependencies[2],
    ]);
});

test("a dependency that cannot be read now is read again, and one that is refused fails the attempt", async () => {
  const dependencies = [{ taskId: "tsk_2", resultBytes: 100, omitted: true as const }];
  const failures = [429, 503];
  const server = fakeRota(
    [
      { token: "a", task: { dependencies } },
      { token: "b", task: { dependencies } },
    ],
    {
      refuse: ({ path }) => {
        if (!path.includes("/dependencies/")) return null;
        return path.includes("/b/") ? 404 : (failures.shift() ?? null);
      },
    },
  );
  startWorker(server, (task) => task.dependencies);
  await expect.poll(() => server.finished().length).toBe(2);
  const outcomes = new Map(server.finished().map((finish) => [finish.attemptToken, finish]));
  expect(outcomes.get("a")).toMatchObject({ result: [{ taskId: "tsk_2", result: "result of tsk_2" }] });
  expect(outcomes.get("b")).toMatchObject({ outcome: "failed", error: "refused by the test" });
  expect(failures).toEqual([]);
});

test("a worker for which there is no room registers again later", async () => {
  const failures = [429];
  const server = fakeRota([{ token: "a" }], {
    refuse: ({ path }) => (path === "/v1/workers" ? (failures.shift() ?? null) : null),
  });
  startWorker(server, () => "done");
  await expect.poll(() => server.finished()).toMatchObject([{ attemptToken: "a", result: "done" }]);
});

test("a cancel aborts the handler with its reason, and no outcome is sent", async () => {
  const server = fakeRota([{ token: "a" }]);
  server.cancel.set("a", "preempted");
  const aborted = Promise.withResolvers<unknown>();
  const worker = startWorker(server, async (_task, { signal }) => {
    await sleep(30_000, undefined, { signal }).catch(() => aborted.resolve(signal.reason));
  });
  expect(await aborted.promise).toMatchObject({ name: "AbortError", message: "preempted" });
  await expect.poll(() => worker.running).toBe(0);
  expect(server.finished()).toEqual([]);
});

test("the session of a task is read from the server, but not for a task without one", async () => {
  const server = fakeRota([{ token: "with", task: { sessionKey: "user:42" } }, { token: "without" }]);
  startWorker(server, async (_task, { session }) => session({ turns: 3 }));
  await expect.poll(() => server.finished().length).toBe(2);
  const outcomes = new Map(server.finished().map((finish) => [finish.attemptToken, finish]));
  expect(outcomes.get("with")).toMatchObject({ outcome: "done", result: SESSION });
  expect(outcomes.get("without")).toMatchObject({ outcome: "done", result: null });
  const asked = server.sent.filter(({ path }) => path.endsWith("/session"));
  expect(asked.map(({ path }) => path)).toEqual(["/v1/attempts/with/session"]);
});

describe("a stop", () => {
  test("lets handlers end, and unregisters last", async () => {
    const server = fakeRota([{ token: "a" }]);
    const worker = startWorker(server, () => sleep(200, "slept"));
    await expect.poll(() => worker.running).toBe(1);
    await worker.stop();
    expect(server.finished()).toEqual([{ attemptToken: "a", outcome: "done", result: "slept" }]);
    expect(server.sent.at(-1)).toMatchObject({ method: "DELETE", path: "/v1/workers/wrk_1" });
    expect(worker.running).toBe(0);
  });

  test("after its grace aborts handlers, and gives their tasks back", async () => {
    const server = fakeRota([{ token: "a" }]);
    const worker = startWorker(server, (_task, { signal }) => sleep(30_000, undefined, { signal }));
    await expect.poll(() => worker.running).toBe(1);
    await worker.stop({ graceMs: 50 });
    expect(server.finished()).toEqual([{ attemptToken: "a", outcome: "released" }]);
  });

  test("follows the signal of `run`", async () => {
    const server = fakeRota([]);
    const { fetch } = server;
    const worker = new RotaWorker({ url: "http://rota.test", fetch, agents: { py: () => null } });
    await worker.run({ signal: AbortSignal.timeout(100) });
    expect(server.sent.at(-1)?.method).toBe("DELETE");
  });
});

describe("a worker that the server refuses", () => {
  test("does not start", async () => {
    const { fetch } = fakeRota([], { refuse: ({ path }) => (path === "/v1/workers" ? 403 : null) });
    const worker = new RotaWorker({ url: "http://rota.test", fetch, agents: { py: () => null } });
    await expect(worker.run()).rejects.toMatchObject({ code: "forbidden" });
  });

  test("later on finishes what runs, and ends with the error", async () => {
    let isDeleted = false;
    const server = fakeRota([{ token: "a" }], {
      refuse: ({ path }) => (isDeleted && path.endsWith("/claim") ? 401 : null),
    });
    const { fetch } = server;
    const handler = () => {
      isDeleted = true;
      return sleep(100, "last");
    };
    const worker = new RotaWorker({ url: "http://rota.test", fetch, agents: { py: handler }, slots: 2 });
    await expect(worker.run()).rejects.toMatchObject({ message: "refused by the test" });
    expect(server.finished()).toMatchObject([{ outcome: "done", result: "last" }]);
  });
});

const one: Executor = () => 1;

test.each([
  [{ agents: [] }, "`agents` must name 1 to 100 agents, not 0"],
  [{ agents: "py" }, "`agents` must be a list of names, or an object"],
  [{ agents: ["py"] }, "`handler` must be a function, as `rota.agent` takes it"],
  [{ agents: { py: "x" } }, "`agents.py` must be a function"],
  [{ agents: { py: one }, handler: one }, "`handler` is for a list of `agents`"],
  [{ agents: { py: one }, slots: 0 }, "`slots`"],
  [{ agents: { py: one }, slot: 4 }, "`slots`"],
  [{ agents: { py: one }, url: "nowhere" }, "`url` must be where Rota is"],
])("options %j are refused: %s", (options, message) => {
  expect(
    () => new RotaWorker({ url: "http://rota.test", ...options } as unknown as RotaWorkerOptions),
  ).toThrow(message);
});

test("a handler gets the messages that were sent to its session, each once", async () => {
  const server = fakeRota([{ token: "a", task: { sessionKey: "user:1" } }, { token: "b" }]);
  server.messages.push({ taskId: "tsk_left", message: "left", position: 3 });
  startWorker(server, async ({ sessionKey }, { messages }) => {
    const first = await messages();
    if (sessionKey !== undefined)
      server.messages.push({ taskId: "tsk_right", message: "right", position: 5 });
    return [first, await messages(), await messages()];
  });
  await expect.poll(() => server.finished().length, { timeout: 15_000 }).toBe(2);
  expect(
    Object.fromEntries(server.finished().map(({ attemptToken, result }) => [attemptToken, result])),
  ).toEqual({
    a: [[{ taskId: "tsk_left", message: "left" }], [{ taskId: "tsk_right", message: "right" }], []],
    b: [[], [], []],
  });
});

test("a handler that waits for messages when its attempt ends gets an error", async () => {
  const server = fakeRota([{ token: "a", task: { sessionKey: "user:1" } }]);
  server.cancel.set("a", "cancelled");
  const error = new Promise((resolve) => {
    startWorker(server, (_task, { messages }) => messages().catch(resolve));
  });
  expect(await error).toMatchObject({ message: expect.stringContaining("over") });
});
