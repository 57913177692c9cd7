import { connect } from "node:net";
import { describe, expect, test, vi } from "vitest";
import { type OpenStream, openStream } from "../../../test/support/event-stream.ts";
import { ask as askServer, openTestServer, type TestServer } from "../../../test/support/http.ts";
import { event } from "../../api/events.ts";
import { deletedSession, sentMessage, session, sessionPage, stoppedTasks } from "../../api/sessions.ts";
import { task } from "../../api/tasks.ts";
import { settle } from "../../testing/manual-clock.ts";
import { Latch, until } from "../../testing/signals.ts";
import { listen } from "../listen.ts";

const PATH = "/v1/sessions/user%3A42%2Fa";
const KEY = "user:42/a";
const MESSAGES = `${PATH}/messages`;
const ACCEPT = { accept: "text/event-stream" };

interface Chat extends TestServer {
  /** Lets the agent `slow` return. */
  readonly latch: Latch<unknown>;
  /** The messages that it received. */
  readonly messages: string[];
}

/** A server whose agent `slow` returns when the latch opens, and whose sessions have no debounce. */
async function openChat(): Promise<Chat> {
  const server = await openTestServer({ options: { sessions: { debounceMs: 0 } } });
  const latch = new Latch<unknown>();
  const messages: string[] = [];
  server.rota.agent("slow", async ({ message = "" }, { signal, progress }) => {
    messages.push(message);
    progress({ text: "I th" });
    const stopped = new Promise((_, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason));
    });
    return Promise.race([latch.opened, stopped]);
  });
  return { ...server, latch, messages };
}

const slowly = { message: "hello", agentId: "slow" };

describe("POST …/messages", () => {
  test("responds 202 with the task of the message", async () => {
    const { ask } = await openTestServer();
    const { status, body } = await ask(MESSAGES, { json: { message: "hello" } });
    expect(status).toBe(202);
    expect(sentMessage.parse(body)).toEqual({
      taskId: expect.stringMatching(/^tsk_/),
      state: "delayed",
      position: 0,
      merged: false,
    });
    expect((await ask(MESSAGES, { json: { message: "again" } })).body).toEqual({ ...body, merged: true });
    expect((await ask(`/tasks/${body.taskId}`)).body).toMatchObject({
      sessionKey: KEY,
      message: "hello\nagain",
    });
  });

  test("responds 200 to a stop word, with the tasks that it ended", async () => {
    const { ask, messages } = await openChat();
    const { taskId } = (await ask(MESSAGES, { json: slowly })).body;
    const waiting = (await ask(MESSAGES, { json: slowly })).body.taskId;
    await until(() => messages.length === 1);
    const { status, body } = await ask(MESSAGES, { json: { message: " /stopall ", wait: true } });
    expect([status, stoppedTasks.parse(body)]).toEqual([200, { stopped: [taskId], cancelled: [waiting] }]);
    const streamed = await ask(MESSAGES, { json: { message: "/stop" }, headers: ACCEPT });
    expect([streamed.status, streamed.body]).toEqual([200, { stopped: [], cancelled: [] }]);
  });

  test("responds 429 with Retry-After when the session is full and drops new messages", async () => {
    const { ask, messages } = await openChat();
    await ask(PATH, { method: "PATCH", json: { cap: 1, drop: "new" } });
    await ask(MESSAGES, { json: slowly });
    await until(() => messages.length === 1);
    await ask(MESSAGES, { json: slowly });
    for (const more of [{}, { wait: true }]) {
      const { status, headers, body } = await ask(MESSAGES, { json: { ...slowly, ...more } });
      expect([status, headers.get("retry-after")]).toEqual([429, "1"]);
      expect(body).toMatchObject({ code: "queue_full", retryable: true, details: { waiting: 1, cap: 1 } });
    }
  });

  test.each([
    [{ message: "hi", wait: 1 }, "", "wait"],
    [{ message: "hi", cancelOnDisconnect: "yes" }, "", "cancelOnDisconnect"],
    [{ message: "hi", cancelOnDisconect: true }, "", "cancelOnDisconect"],
    [{ message: "hi", wait: true }, "?timeout=601", "timeout"],
    [{ message: "hi" }, "?timeout=0", "timeout"],
    [{ message: "hi" }, "?timeuot=5", "timeuot"],
    [[], "", undefined],
  ])("refuses %j%s and stores nothing", async (json, query, field) => {
    const { ask } = await openTestServer();
    const { status, body } = await ask(MESSAGES + query, { json });
    expect([status, body.code, body.details?.field]).toEqual([400, "invalid_field", field]);
    expect((await ask("/tasks")).body.count).toBe(0);
  });

  test.each(["%00", "a%0Ab", "x".repeat(257), "%ED%A0%80"])("refuses the key %s", async (key) => {
    const { ask } = await openTestServer();
    const { status, body } = await ask(`/v1/sessions/${key}/messages`, { json: { message: "hi" } });
    expect([status, body.code]).toEqual([400, "invalid_field"]);
  });

  test.each(["a%2F", "100%25", "%20", "🦉", "a+b%2Bc", "%3Fx%23y", "x".repeat(256), "stop"])(
    "takes the key %s, and finds the session by it",
    async (key) => {
      const { ask } = await openTestServer();
      const path = `/v1/sessions/${key}`;
      expect((await ask(`${path}/messages`, { json: { message: "hi" } })).status).toBe(202);
      const found = await ask(path);
      expect([found.status, found.body.key]).toEqual([200, decodeURIComponent(key)]);
      const { tasks } = (await ask(`/tasks?sessionKey=${key.replaceAll("+", "%2B")}`)).body;
      expect(tasks).toMatchObject([{ sessionKey: decodeURIComponent(key) }]);
    },
  );
});

describe("a message that is waited for", () => {
  test("gets 200 with the whole task once it has ended", async () => {
    const { ask, latch, messages } = await openChat();
    const answer = ask(MESSAGES, { json: { ...slowly, wait: true } });
    await until(() => messages.length === 1);
    latch.open("at last");
    const { status, body } = await answer;
    expect(status).toBe(200);
    expect(task.parse(body)).toMatchObject({ state: "done", result: "at last", sessionKey: KEY });
  });

  test("gets 200 however the task ends", async () => {
    const { ask, messages } = await openChat();
    const answer = ask(MESSAGES, { json: { ...slowly, wait: true } });
    await until(() => messages.length === 1);
    await ask(`${PATH}/stop`, { method: "POST" });
    expect(await answer).toMatchObject({ status: 200, body: { state: "cancelled", error: "stopped" } });
  });

  test.each([
    ["", 120],
    ["?timeout=600", 600],
    ["?timeout=5", 5],
  ])("with %j gets 202 with the current state after %i seconds", async (query, seconds) => {
    const { ask, clock, messages } = await openChat();
    const json = { ...slowly, wait: true };
    const answer = ask(MESSAGES + query, { json });
    await until(() => messages.length === 1);
    await settle();
    let answered = false;
    void answer.then(() => {
      answered = true;
    });
    await clock.advance(Math.min(seconds, 120) * 1_000 - 1);
    expect(answered).toBe(false);
    await clock.advance((seconds - Math.min(seconds, 120)) * 1_000 + 1);
    const { status, body } = await answer;
    // After its own timeout of 120 s the run has ended by itself.
    if (seconds === 600) expect([status, body.state]).toEqual([200, "failed"]);
    else {
      expect([status, sentMessage.parse(body)]).toMatchObject([202, { state: "running", merged: false }]);
    }
  });

  test("gets its response when the task ends while the node drains, and another message is refused then", async () => {
    const { ask, latch, rota, messages } = await openChat();
    const answer = ask(MESSAGES, { json: { ...slowly, wait: true } });
    await until(() => messages.length === 1);
    await settle();
    const drained = rota.drain();
    expect(await ask(MESSAGES, { json: { ...slowly, wait: true } })).toMatchObject({
      status: 503,
      body: { code: "draining" },
    });
    latch.open("at last");
    expect(await answer).toMatchObject({ status: 200, body: { state: "done", result: "at last" } });
    await drained;
  });

  test("gets 202 with the current state when the server closes first", async () => {
    const { rota, log, messages, latch } = await openChat();
    const server = await listen({ rota, log, host: "127.0.0.1", port: 0 });
    const answer = askServer(server.url + MESSAGES, { json: { ...slowly, wait: true } });
    await until(() => messages.length === 1);
    await settle();
    await server.close();
    expect(await answer).toMatchObject({ status: 202, body: { state: "running", merged: false } });
    latch.open(null);
  });

  test.each([
    [false, "running", undefined],
    [true, "cancelled", undefined],
  ])(
    "whose sender goes away, with cancelOnDisconnect %j, is %s",
    async (cancelOnDisconnect, state, error) => {
      const { url, rota, messages, log } = await openChat();
      const socket = sendAndStay(url, { ...slowly, wait: true, cancelOnDisconnect });
      await until(() => messages.length === 1);
      await settle();
      const [{ taskId } = { taskId: "" }] = (await rota.tasks.list()).tasks;
      socket.destroy();
      await settle();
      if (cancelOnDisconnect) await until(async () => (await rota.tasks.get(taskId)).state === "cancelled");
      expect(await rota.tasks.get(taskId)).toMatchObject({ state });
      expect((await rota.tasks.get(taskId)).error).toBe(error);
      expect(log.messages()).toEqual([]);
    },
  );

  test("and was added to another does not take that along when its sender goes away", async () => {
    const { url, rota, ask } = await openTestServer();
    const { taskId } = (await ask(MESSAGES, { json: { message: "one" } })).body;
    const socket = sendAndStay(url, { message: "two", wait: true, cancelOnDisconnect: true });
    await until(async () => (await rota.tasks.get(taskId)).message === "one\ntwo");
    await settle();
    socket.destroy();
    await settle();
    expect(await rota.tasks.get(taskId)).toMatchObject({ state: "delayed" });
  });

  test("and that others were added to stays for them when its sender goes away", async () => {
    const { url, rota, served, ask } = await openTestServer();
    const socket = sendAndStay(url, { message: "one", wait: true, cancelOnDisconnect: true });
    await until(async () => (await rota.tasks.counts()).total === 1);
    const { taskId } = (await ask(MESSAGES, { json: { message: "two" } })).body;
    expect((await rota.tasks.get(taskId)).message).toBe("one\ntwo");
    const looked = vi.spyOn(served.tasks, "get");
    socket.destroy();
    // Once for the response that is not read, and once for the other messages in it.
    await until(() => looked.mock.calls.length >= 2);
    await settle();
    expect(await rota.tasks.get(taskId)).toMatchObject({ state: "delayed" });
  });
});

describe("a message whose events are asked for", () => {
  test("is streamed as it goes, from its acceptance to its end", async () => {
    const { ask, url, latch, rota } = await openChat();
    const stream = await streamOf(url, slowly);
    expect(stream.status).toBe(200);
    expect(stream.headers.get("content-type")).toMatch(/^text\/event-stream/);
    const accepted = await stream.next();
    expect(accepted?.event).toBe("accepted");
    const { taskId } = sentMessage.parse(accepted?.data);
    await until(async () => (await rota.tasks.get(taskId)).state === "running");
    // The stream leaves out other tasks, even those of the same session.
    await ask(MESSAGES, { json: { message: "other", agentId: "index" } });
    await ask("/tasks", { json: { message: "other" } });
    latch.open("at last");
    const frames = await stream.take(4);
    expect(frames.map((frame) => frame.event)).toEqual([
      "task.created",
      "task.started",
      "task.progress",
      "task.completed",
    ]);
    for (const { data } of frames) expect(event.parse(data)).toMatchObject({ taskId, sessionKey: KEY });
    expect(frames.at(-1)?.data).toMatchObject({ state: "done", result: "at last" });
    expect(await stream.next()).toBeUndefined();
  });

  test("ends with an empty result when it is stopped", async () => {
    const { ask, url, messages } = await openChat();
    const stream = await streamOf(url, slowly);
    await until(() => messages.length === 1);
    await ask(`${PATH}/stopall`, { method: "POST" });
    let last: Awaited<ReturnType<OpenStream["next"]>>;
    for (let frame = await stream.next(); frame !== undefined; frame = await stream.next()) last = frame;
    expect(last).toMatchObject({
      event: "task.cancelled",
      data: { error: "stopped", result: "", sessionKey: KEY },
    });
  });

  test("is refused like any other before the stream begins", async () => {
    const { ask } = await openChat();
    const { status, body } = await ask(MESSAGES, { json: { message: "" }, headers: ACCEPT });
    expect([status, body.code]).toEqual([400, "invalid_field"]);
  });

  test("ends after the time that was asked for, and the run goes on", async () => {
    const { url, clock, messages, rota } = await openChat();
    const stream = await streamOf(url, slowly, "?timeout=5");
    await stream.take(3);
    await until(() => messages.length === 1);
    await clock.advance(5_000);
    for (let frame = await stream.next(); frame !== undefined; frame = await stream.next()) {
      expect(frame.event).toBe("task.progress");
    }
    expect((await rota.tasks.list()).tasks).toMatchObject([{ state: "running" }]);
  });

  test.each([
    [false, "running"],
    [true, "cancelled"],
  ])("whose reader goes away, with cancelOnDisconnect %j, is %s", async (cancelOnDisconnect, state) => {
    const { url, rota, messages, latch } = await openChat();
    const stream = await streamOf(url, { ...slowly, cancelOnDisconnect });
    const { taskId } = (await stream.next())?.data ?? {};
    await until(() => messages.length === 1);
    stream.close();
    if (cancelOnDisconnect) await until(async () => (await rota.tasks.get(taskId)).state === state);
    await settle();
    expect(await rota.tasks.get(taskId)).toMatchObject({ state });
    latch.open(null);
  });

  test("is not cancelled because the server closes", async () => {
    const { rota, log, messages, latch } = await openChat();
    const server = await listen({ rota, log, host: "127.0.0.1", port: 0 });
    const stream = await streamOf(server.url, { ...slowly, cancelOnDisconnect: true });
    const { taskId } = (await stream.next())?.data ?? {};
    await until(() => messages.length === 1);
    await server.close();
    await settle();
    expect(await rota.tasks.get(taskId)).toMatchObject({ state: "running" });
    latch.open(null);
  });
});

test("sessions are shown, listed, changed, stopped and reset as the schemas say", async () => {
  const { ask } = await openChat();
  const unknown = await ask(PATH);
  expect([unknown.status, unknown.body]).toEqual([404, { code: "not_found", error: "session not found" }]);
  const patched = await ask(PATH, { method: "PATCH", json: { mode: "interrupt", tokens: 7 } });
  expect([patched.status, session.parse(patched.body)]).toMatchObject([
    200,
    { key: KEY, mode: "interrupt", tokens: 7, debounceMs: 0 },
  ]);
  expect((await ask(PATH)).body).toEqual(patched.body);
  expect(sessionPage.parse((await ask("/v1/sessions?limit=1")).body)).toMatchObject({ count: 1 });
  expect((await ask(PATH, { method: "PATCH", json: { modes: "queue" } })).body).toMatchObject({
    code: "invalid_field",
    error: "unknown field `modes`: did you mean `mode`?",
  });
  for (const action of ["stop", "stopall", "reset"]) {
    const { status, body } = await ask(`${PATH}/${action}`, { method: "POST" });
    expect([status, stoppedTasks.parse(body)]).toEqual([200, { stopped: [], cancelled: [] }]);
  }
  expect((await ask(PATH)).body).toMatchObject({ generation: 1, tokens: null, mode: "interrupt" });
  expect((await ask("/sessions")).status).toBe(404);
});

test("changes of nothing make no session, and leave one that is there as it is", async () => {
  const { ask } = await openChat();
  const { status, body } = await ask(PATH, { method: "PATCH", json: {} });
  expect([status, body.code, body.error]).toEqual([
    400,
    "invalid_field",
    expect.stringMatching(/^there is no session "user:42\/a" yet: set at least one of `agentId`, `lane`, /),
  ]);
  expect((await ask("/v1/sessions")).body.count).toBe(0);
  const patched = await ask(PATH, { method: "PATCH", json: { cap: 3 } });
  expect((await ask(PATH, { method: "PATCH", json: {} })).body).toEqual(patched.body);
});

test.each(["", " ", "a\nb", "\u0000"])("a message, like a task, refuses the lane %j", async (lane) => {
  const { ask } = await openChat();
  for (const path of [MESSAGES, "/tasks"]) {
    const { status, body } = await ask(path, { json: { message: "hello", lane } });
    expect([status, body.code, body.details]).toEqual([400, "invalid_field", { field: "lane" }]);
    expect(body.error).toMatch(/^`lane` must be the name of a lane, 1 to 128 /);
  }
  expect((await ask("/tasks")).body.count).toBe(0);
});

test.each(["no-such", "no such lane"])(
  "a message for the lane %j, which is not configured, runs in `main`",
  async (lane) => {
    const { ask } = await openChat();
    const { taskId } = (await ask(MESSAGES, { json: { message: "hello", lane } })).body;
    expect((await ask(`/tasks/${taskId}`)).body.lane).toBe("main");
  },
);

test("a message has no idempotency key, and says so", async () => {
  const { ask } = await openChat();
  const { status, body } = await ask(MESSAGES, {
    json: { message: "hello" },
    headers: { "idempotency-key": "k" },
  });
  expect([status, body.code, body.details]).toEqual([400, "invalid_field", { field: "Idempotency-Key" }]);
  expect(body.error).toMatch(/is for one task: messages have none; leave it out, /);
  expect((await ask("/v1/sessions")).body.count).toBe(0);
});

test.each([
  ["%ff", /^the path is not a URL: what is written as `%` and two digits is not valid UTF-8, /],
  ["%zz", /^the path is not a URL: a `%` must be followed by two hexadecimal digits$/],
])("a key written as %s is refused, and why", async (key, error) => {
  const { ask } = await openChat();
  const { status, body } = await ask(`/v1/sessions/${key}`);
  expect([status, body.code, body.error]).toEqual([400, "invalid_field", expect.stringMatching(error)]);
});

test("a session is deleted once it is idle", async () => {
  const { ask } = await openChat();
  await ask(PATH, { method: "PATCH", json: { cap: 3 } });
  await ask(MESSAGES, { json: { message: "hello", agentId: "slow" } });
  const refused = await ask(PATH, { method: "DELETE" });
  expect([refused.status, refused.body]).toMatchObject([409, { code: "conflict", details: { open: 1 } }]);
  await ask(`${PATH}/stopall`, { method: "POST" });
  const { status, body } = await ask(PATH, { method: "DELETE" });
  expect([status, deletedSession.parse(body)]).toEqual([200, { deleted: true }]);
  expect((await ask(PATH)).body).toMatchObject({ key: KEY, cap: 10 });
  expect((await ask("/v1/sessions/unknown", { method: "DELETE" })).status).toBe(404);
});

test("if a caller accepts both, the type that it names first wins", async () => {
  const { ask } = await openChat();
  const headers = { accept: "application/json, text/event-stream" };
  const { status } = await ask(MESSAGES, { json: { message: "hello" }, headers });
  expect(status).toBe(202);
});

/** Sends a message over a connection of its own, which the test can cut. */
function sendAndStay(url: string, json: object): ReturnType<typeof connect> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  const body = JSON.stringify(json);
  const head = `POST ${MESSAGES} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json`;
  socket.write(`${head}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
  return socket;
}

function streamOf(url: string, json: object, query = ""): Promise<OpenStream> {
  return openStream(url + MESSAGES + query, ACCEPT, json);
}
