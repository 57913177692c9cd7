import type { IncomingHttpHeaders } from "node:http";
import { expect, test } from "vitest";
import { answerEvents, beginEvents, eventText } from "../../test/support/events-answer.ts";
import { serve } from "../../test/support/http-server.ts";
import { nowhere } from "../../test/support/pinchtab.ts";
import { head, serveRaw } from "../../test/support/raw-server.ts";
import { type RunnableExecutor, runnable } from "../../test/support/run-executor.ts";
import type { Task } from "../model/task.ts";
import { TargetGuard } from "../outbound/target-guard.ts";
import { ManualClock } from "../testing/manual-clock.ts";
import { Gate, until } from "../testing/signals.ts";

const order: Partial<Task> = { kind: "instruction", instruction: "Go to example.com" };
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

function chat(url: string, headers: Record<string, string> = {}): RunnableExecutor {
  return runnable({ type: "chat", url, headers });
}

interface Seen {
  readonly method: string | undefined;
  readonly path: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: Record<string, unknown>;
}

/** A chat API that remembers what it was asked. */
async function serveChat(): Promise<{ url: string; seen: Seen[] }> {
  const seen: Seen[] = [];
  const url = await serve(({ method, url: path, headers }, response, body) => {
    seen.push({ method, path, headers, body: JSON.parse(body) });
    answerEvents(response, { ok: true });
  });
  return { url, seen };
}

/** A chat API that answers with these bytes, under this type. */
function serveText(text: string, type = "text/event-stream"): Promise<string> {
  return serve((_request, response) => response.writeHead(200, { "content-type": type }).end(text));
}

test("posts the instruction to /chat, as a task of a conversation of its own", async () => {
  const { url, seen } = await serveChat();
  const { run } = chat(`${url}/base/`, { "X-Key": "k" });
  expect(await run(order)).toEqual({ ok: true });
  await run(order);
  expect(seen[0]).toMatchObject({
    method: "POST",
    path: "/base/chat",
    headers: { "content-type": "application/json", accept: "text/event-stream", "x-key": "k" },
  });
  expect(seen[0]?.body).toEqual({
    conversationId: expect.stringMatching(UUID),
    message: "Go to example.com",
    isScheduledTask: true,
    mode: "agent",
    supportsImages: false,
    provider: "browseros",
  });
  expect(seen[1]?.body["conversationId"]).not.toBe(seen[0]?.body["conversationId"]);
});

test("goes on with the conversation of the task's session", async () => {
  const { url, seen } = await serveChat();
  await chat(url).run({ ...order, sessionKey: "user:42", llmConfig: { conversationId: "mine" } });
  expect(seen[0]?.body).toMatchObject({ conversationId: "user:42" });
});

test("keeps the conversations of tenants apart, whatever they call them", async () => {
  const { url, seen } = await serveChat();
  await chat(url).run({ ...order, sessionKey: "user:42" }, undefined, "ten_1");
  await chat(url).run({ ...order, sessionKey: "s", conversationId: "user:42" }, undefined, "ten_2");
  expect(seen.map(({ body }) => body["conversationId"])).toEqual(["ten_1/user:42", "ten_2/user:42"]);
});

test("posts a message as it does an instruction", async () => {
  const { url, seen } = await serveChat();
  await chat(url).run({ kind: "message", message: "hello" });
  expect(seen[0]?.body).toMatchObject({ message: "hello" });
});

test("merges llmConfig over the request, but not over what makes it this task", async () => {
  const { url, seen } = await serveChat();
  const llmConfig = {
    provider: "openai",
    model: "gpt-4o",
    mode: "chat",
    nested: { a: 1 },
    message: "something else",
    conversationId: "mine",
    isScheduledTask: false,
  };
  await chat(url).run({ ...order, llmConfig });
  expect(seen[0]?.body).toEqual({
    provider: "openai",
    model: "gpt-4o",
    mode: "chat",
    nested: { a: 1 },
    supportsImages: false,
    message: "Go to example.com",
    conversationId: expect.stringMatching(UUID),
    isScheduledTask: true,
  });
});

test.each<Partial<Task>>([
  { kind: "action", action: "click" },
  { kind: "custom", payload: { message: "x" } },
])("a task of kind $kind cannot be told to anybody", async (task) => {
  await expect(chat("http://127.0.0.1:1").run(task)).rejects.toMatchObject({
    name: "PermanentError",
    message: `the chat executor does tasks with an \`instruction\` or a \`message\`; this one is of kind ${task.kind}`,
  });
});

test("the last event is the result, and each was progress", async () => {
  const events = [{ type: "start" }, { type: "text-delta", delta: "é🙂" }, { type: "finish" }];
  const url = await serve((_request, response) => answerEvents(response, ...events, "[DONE]"));
  const { run, progress } = chat(url);
  expect(await run(order)).toEqual({ type: "finish" });
  expect(progress).toEqual(events);
});

test.each<[string, string, unknown]>([
  ["passes over what is no JSON", 'data: {"a":1}\n\ndata: thinking…\n\ndata: [DONE]\n\n', { a: 1 }],
  ["passes over comments and other fields", ': ping\n\nevent: x\nid: 1\ndata: {"a":1}\n\n:\n\n', { a: 1 }],
  ["reads JSON of several lines", 'data: {"a":\ndata: 1}\n\n', { a: 1 }],
  ["reads each line where the empty ones between are missing", 'data: {"a":1}\ndata: {"a":2}\n', { a: 2 }],
  ["reads an event without an empty line behind it", 'data: {"a":1}\n\ndata: {"a":2}', { a: 2 }],
  ["takes any JSON", "data: 1\n\ndata: null\n\n", null],
  ["takes carriage returns", 'data: {"a":1}\r\n\r\n', { a: 1 }],
])("%s", async (_what, text, result) => {
  expect(await chat(await serveText(text)).run(order)).toEqual(result);
});

test.each([
  ["says nothing", ""],
  ["has only comments", ": ping\n\n: ping\n\n"],
  ["has no JSON", "data: hello\n\ndata: [DONE]\n\n"],
  ["is a page", "<html><body>{}</body></html>"],
])("an answer that %s is an empty one, which may be better the next time", async (_what, text) => {
  const failed = chat(await serveText(text)).run(order);
  await expect(failed).rejects.toThrow(new Error("empty answer"));
  await expect(failed).rejects.not.toMatchObject({ name: "PermanentError" });
});

test("an answer that is one JSON instead of events is the result, whatever type it says it is", async () => {
  for (const type of ["application/json", "text/event-stream", "text/plain"]) {
    const { run, progress } = chat(await serveText('{\n  "data": [1]\n}\n', type));
    expect(await run(order)).toEqual({ data: [1] });
    expect(progress).toEqual([]);
  }
});

test("events are read as such, whatever type they say they are", async () => {
  for (const type of ["application/json", "text/plain"]) {
    expect(await chat(await serveText('data: {"a":1}\n\n', type)).run(order)).toEqual({ a: 1 });
  }
});

test("progress is told while the answer is being written", async () => {
  const more = new Gate();
  const url = await serve(async (_request, response) => {
    beginEvents(response).write(eventText({ step: 1 }));
    await more.opened;
    response.end(eventText({ step: 2 }));
  });
  const { run, progress } = chat(url);
  const result = run(order);
  await until(() => progress.length === 1, "the first event");
  more.open();
  expect(await result).toEqual({ step: 2 });
  expect(progress).toEqual([{ step: 1 }, { step: 2 }]);
});

test("what is larger than progress may be is left out of it, but not of the result", async () => {
  const large = { text: "x".repeat(20_000) };
  const url = await serve((_request, response) => answerEvents(response, { a: 1 }, large));
  const { run, progress } = chat(url);
  expect(await run(order)).toEqual(large);
  expect(progress).toEqual([{ a: 1 }]);
});

test("an event beyond a mebibyte is cut and marked, and still fits as a result", async () => {
  const text = '"\n'.repeat(1_000_000);
  const url = await serve((_request, response) => answerEvents(response, { a: 1 }, { text }));
  const result = (await chat(url).run(order)) as { truncated: boolean; text: string };
  expect(result.truncated).toBe(true);
  expect(result.text.startsWith('{"text":"\\"\\n\\"')).toBe(true);
  const bytes = Buffer.byteLength(JSON.stringify(result));
  expect(bytes).toBeLessThanOrEqual(1_048_576);
  expect(bytes).toBeGreaterThan(900_000);
});

test("one JSON beyond a mebibyte is cut and marked, too", async () => {
  const url = await serveText(JSON.stringify({ text: "x".repeat(2_000_000) }), "application/json");
  expect(await chat(url).run(order)).toMatchObject({
    truncated: true,
    text: expect.stringMatching(/^{"text":"xxx/),
  });
});

test("JSON that is nested deeper than a result may be stays the text it is", async () => {
  const deep = "[".repeat(5_000) + "]".repeat(5_000);
  expect(await chat(await serveText(eventText(deep))).run(order)).toBe(deep);
});

test("megabytes of events are read without being kept", async () => {
  const event = eventText({ text: "x".repeat(10_000) });
  const url = await serve((_request, response) => {
    beginEvents(response);
    let left = 2_000;
    const more = () => {
      while (left-- > 0) if (!response.write(event)) return void response.once("drain", more);
      response.end(eventText({ end: true }));
    };
    more();
  });
  expect(await chat(url).run(order)).toEqual({ end: true });
});

test("a stream that does not end for 64 mebibytes has gone astray", async () => {
  const event = eventText("x".repeat(1_000_000));
  const dropped = new Gate();
  const url = await serve((_request, response) => {
    beginEvents(response).on("close", () => dropped.open());
    const more = () => {
      while (!response.destroyed && response.write(event));
      response.once("drain", more);
    };
    more();
  });
  await expect(chat(url).run(order)).rejects.toThrow("the answer is longer than 67108864 bytes");
  await dropped.opened;
});

test.each([
  [500, false],
  [503, false],
  [429, false],
  [302, false],
  [400, true],
  [401, true],
  [404, true],
  [422, true],
])("a status of %i is a failure in the words of the chat API", async (status, permanent) => {
  const url = await serve((_request, response) =>
    response.writeHead(status, { "retry-after": "7" }).end("Internal trouble"),
  );
  await expect(chat(url).run(order)).rejects.toMatchObject({
    message: `Chat API returned ${status}: Internal trouble`,
    status,
    permanent,
    retryAfterMs: 7_000,
  });
});

test("a failure is cut at a kibibyte", async () => {
  const url = await serve((_request, response) => response.writeHead(500).end("é".repeat(5_000)));
  await expect(chat(url).run(order)).rejects.toMatchObject({
    message: `Chat API returned 500: ${"é".repeat(512)}…`,
  });
});

test.each<[string, string]>([
  ["before its last chunk", `${head("transfer-encoding: chunked")}10\r\ndata: {"a": 1}\n\n\r\n`],
  ["before it is as long as it said", `${head("content-length: 1000")}data: {"a":1}\n\n`],
])("a stream that ends %s broke off, however much has arrived", async (_when, bytes) => {
  const url = await serveRaw((socket) => socket.end(bytes));
  await expect(chat(url).run(order)).rejects.toMatchObject({
    name: "CallError",
    message: expect.stringContaining(`the answer of ${url} broke off: `),
  });
});

test("where nobody listens, nobody can be told anything", async () => {
  const url = await nowhere();
  await expect(chat(url).run(order)).rejects.toThrow(`cannot reach ${url}: `);
});

test.each<[string, boolean]>([
  ["before it is answered", false],
  ["in the middle of the answer", true],
])("a call that hangs %s ends with its signal, and its connection too", async (_when, begin) => {
  const hanging = new Gate();
  const dropped = new Gate();
  const url = await serve((_request, response) => {
    response.on("close", () => dropped.open());
    if (begin) beginEvents(response).write(eventText({ step: 1 }));
    hanging.open();
  });
  const stop = new AbortController();
  const failed = expect(chat(url).run(order, stop.signal)).rejects.toThrow("stopped");
  await hanging.opened;
  stop.abort(new Error("stopped"));
  await failed;
  await dropped.opened;
});

test("uses its connection again", async () => {
  const ports = new Set<number | undefined>();
  const url = await serve(({ socket }, response) => {
    ports.add(socket.remotePort);
    answerEvents(response, { a: 1 }, "[DONE]");
  });
  const { run } = chat(url);
  for (let i = 0; i < 10; i++) await run(order);
  // A second one is opened when the first has not yet come to rest.
  expect(ports.size).toBeLessThanOrEqual(2);
});

test("calls nothing that a guard forbids", async () => {
  const { url, seen } = await serveChat();
  const guard = new TargetGuard({ allow: [], clock: new ManualClock() });
  await expect(runnable({ type: "chat", url }, { guard }).run(order)).rejects.toMatchObject({
    name: "PermanentError",
    message: expect.stringContaining("must not lead to 127.0.0.1"),
  });
  expect(seen).toEqual([]);
});
