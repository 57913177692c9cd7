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
import { Latch, until } from "../testing/signals.ts";
import { VERSION } from "../version.ts";
import { conversationId } from "./conversation-id.ts";

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

/** A chat API that keeps the requests that it received. */
async function serveChat(): Promise<{ url: string; seen: Seen[] }> {
  const seen: Seen[] = [];
  const url = await serve(({ method, url: path, headers }, response, body) => {
    seen.push({ method, path, headers, body: JSON.parse(body) });
    answerEvents(response, { ok: true });
  });
  return { url, seen };
}

/** A chat API that responds with these bytes, with this content type. */
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

/** The `conversationId` that the chat API receives for a task. */
async function conversationOf(
  task: Partial<Task>,
  { generation = 0, tenantId = "default" }: { generation?: number; tenantId?: string } = {},
): Promise<unknown> {
  const { url, seen } = await serveChat();
  await runnable({ type: "chat", url }, { session: { generation } }).run(
    { ...order, ...task },
    undefined,
    tenantId,
  );
  return seen[0]?.body["conversationId"];
}

test("goes on with the conversation of the task's schedule, else of its session, whatever llmConfig says", async () => {
  const ofSession = await conversationOf({ sessionKey: "user:42", llmConfig: { conversationId: "mine" } });
  expect(ofSession).toBe(conversationId({ tenantId: "default", key: "user:42", generation: 0 }));
  expect(await conversationOf({ sessionKey: "schedule:7", conversationId: "user:42" })).toBe(ofSession);
});

test("begins another conversation when the session was reset", async () => {
  const ids = [0, 1, 2].map((generation) => conversationOf({ sessionKey: "user:42" }, { generation }));
  expect(new Set(await Promise.all(ids)).size).toBe(3);
});

test("a UUID is the conversation it names, but not of another tenant", async () => {
  const sessionKey = "0B5C8A3E-1111-4222-8333-2e7a51d3b0a9";
  expect(await conversationOf({ sessionKey })).toBe(sessionKey);
  expect(await conversationOf({ sessionKey }, { tenantId: "ten_1" })).not.toBe(sessionKey);
});

test("keeps the conversations of tenants apart, whatever they call them", async () => {
  const ids = ["default", "ten_1", "ten_2"].map((tenantId) =>
    conversationOf({ sessionKey: "user:42" }, { tenantId }),
  );
  expect(new Set(await Promise.all(ids)).size).toBe(3);
});

test("says whose task it is, and who calls, whatever its headers say", async () => {
  const { url, seen } = await serveChat();
  await chat(url, { "X-Rota-Tenant": "other" }).run(order, undefined, "ten_1");
  expect(seen[0]?.headers).toMatchObject({ "x-rota-tenant": "ten_1", "user-agent": `rota/${VERSION}` });
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
])("a task of kind $kind cannot be sent", async (task) => {
  await expect(chat("http://127.0.0.1:1").run(task)).rejects.toMatchObject({
    name: "PermanentError",
    message: `the chat executor does tasks with an \`instruction\` or a \`message\`; this one is of kind ${task.kind}`,
  });
});

test("the last event is the result, and each was progress", async () => {
  const events = [{ step: 1 }, { type: "delta", delta: "é🙂" }, { type: "finish" }];
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
])("a response that %s is an empty answer, which is retried", async (_what, text) => {
  const failed = chat(await serveText(text)).run(order);
  await expect(failed).rejects.toThrow(new Error("empty answer"));
  await expect(failed).rejects.not.toMatchObject({ name: "PermanentError" });
});

test("a response that is one JSON document instead of events is the result, whatever its content type", async () => {
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

test("progress is reported while the agent writes", async () => {
  const more = new Latch();
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

test("an event that is too large for progress is left out there, but not of the result", async () => {
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
  const dropped = new Latch();
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

test("fails when no server listens", async () => {
  const url = await nowhere();
  await expect(chat(url).run(order)).rejects.toThrow(`cannot reach ${url}: `);
});

test.each<[string, boolean]>([
  ["before it is answered", false],
  ["in the middle of the answer", true],
])("a call that hangs %s ends with its signal, and its connection too", async (_when, begin) => {
  const hanging = new Latch();
  const dropped = new Latch();
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

// ------------------------------------------------------------------------------------------------ UI message streams

const USAGE = { inputTokens: 1_200, outputTokens: 34 };

/** The events of a server built on the AI SDK, for an agent that calls a tool and then responds. */
const UI_STREAM = [
  { type: "start", messageId: "msg_1" },
  { type: "start-step" },
  { type: "reasoning-start", id: "r1" },
  { type: "reasoning-delta", id: "r1", delta: "I should look." },
  { type: "reasoning-end", id: "r1" },
  { type: "tool-input-start", toolCallId: "call_1", toolName: "browser_navigate" },
  { type: "tool-input-delta", toolCallId: "call_1", inputTextDelta: '{"url":' },
  { type: "tool-input-delta", toolCallId: "call_1", inputTextDelta: '"https://example.com"}' },
  {
    type: "tool-input-available",
    toolCallId: "call_1",
    toolName: "browser_navigate",
    input: { url: "https://example.com" },
  },
  { type: "tool-output-available", toolCallId: "call_1", output: { title: "Example Domain" } },
  { type: "tool-input-available", toolCallId: "call_2", toolName: "browser_click", input: { ref: "e1" } },
  { type: "tool-output-error", toolCallId: "call_2", errorText: "no such element" },
  { type: "finish-step" },
  { type: "start-step" },
  { type: "text-start", id: "t1" },
  { type: "text-delta", id: "t1", delta: "The title is " },
  { type: "text-delta", id: "t1", delta: "Example Domain." },
  { type: "text-end", id: "t1" },
  { type: "finish-step" },
  { type: "finish", finishReason: "stop", messageMetadata: { usage: { ...USAGE, totalTokens: 1_234 } } },
] as const;

function serveEvents(...events: readonly unknown[]): Promise<string> {
  return serve((_request, response) => answerEvents(response, ...events));
}

test("a UI message stream becomes one message, and its text is progress while it is written", async () => {
  const { run, progress, usage } = chat(await serveEvents(...UI_STREAM, "[DONE]"));
  expect(await run(order)).toEqual({
    text: "The title is Example Domain.",
    finishReason: "stop",
    toolCalls: [
      {
        toolCallId: "call_1",
        toolName: "browser_navigate",
        input: { url: "https://example.com" },
        output: { title: "Example Domain" },
      },
      {
        toolCallId: "call_2",
        toolName: "browser_click",
        input: { ref: "e1" },
        errorText: "no such element",
      },
    ],
    usage: USAGE,
  });
  expect(progress).toEqual([
    { text: "The title is ", length: 13 },
    { text: "The title is Example Domain.", length: 28 },
  ]);
  expect(usage).toEqual([USAGE]);
});

test.each<[string, readonly unknown[], object]>([
  ["has text", [{ type: "text-delta", id: "1", delta: "hi" }], { text: "hi", finishReason: null }],
  ["begins a text", [{ type: "text-start", id: "1" }], { text: "" }],
  [
    "calls a tool",
    [{ type: "tool-input-available", toolCallId: "c", toolName: "t", input: {} }, { type: "finish" }],
    { text: "", toolCalls: [{ toolCallId: "c", toolName: "t", input: {} }] },
  ],
  [
    "finishes with a reason",
    [{ type: "finish", finishReason: "length" }],
    { finishReason: "length", usage: null },
  ],
  [
    "has its usage in metadata of its own",
    [
      { type: "message-metadata", messageMetadata: { totalUsage: USAGE } },
      { type: "text-delta", delta: "x" },
      { type: "finish", finishReason: "stop" },
    ],
    { text: "x", usage: USAGE },
  ],
])("a stream that %s is one of a UI message", async (_what, events, result) => {
  expect(await chat(await serveEvents(...events)).run(order)).toMatchObject(result);
});

test("a stream that only starts and finishes, without a reason, is none", async () => {
  const { run, progress } = chat(
    await serveEvents({ type: "start" }, { type: "start-step" }, { type: "finish" }),
  );
  expect(await run(order)).toEqual({ type: "finish" });
  expect(progress).toEqual([{ type: "finish" }]);
});

test.each<[string, unknown, string]>([
  ["error", { type: "error", errorText: "rate limit" }, "the agent failed: rate limit"],
  ["error in other words", { type: "error", error: { code: 7 } }, 'the agent failed: {"code":7}'],
  ["error without a reason", { type: "error" }, "the agent failed"],
  ["abort", { type: "abort" }, "the agent gave up"],
  ["abort with a reason", { type: "abort", reason: "user left" }, "the agent gave up: user left"],
  ["finish", { type: "finish", finishReason: "error" }, "the agent failed: it finished with an error"],
])(
  "an event of %s is a failure that is worth another try, whatever came before and after",
  async (_type, event, message) => {
    const text = { type: "text-delta", id: "1", delta: "half an answer" };
    const metadata = { type: "message-metadata", messageMetadata: { usage: USAGE } };
    const { run, usage } = chat(
      await serveEvents({ type: "start" }, metadata, text, event, { ok: true }, "[DONE]"),
    );
    const failed = run(order);
    await expect(failed).rejects.toMatchObject({ name: "Error", message });
    expect(usage).toEqual([USAGE]);
    await expect(chat(await serveEvents(event)).run(order)).rejects.toThrow(message);
  },
);

test("what tools return at length is left out, and so are tools beyond what a result has room for", async () => {
  const large = { png: "x".repeat(20_000) };
  const calls = Array.from({ length: 3_000 }, (_, n) => ({
    type: "tool-input-available",
    toolCallId: `call_${n}`,
    toolName: "t",
    input: "é".repeat(50),
  }));
  const huge = { type: "tool-output-available", toolCallId: "call_0", output: "x".repeat(1_500_000) };
  const url = await serveEvents(
    { type: "tool-output-available", toolCallId: "first", output: large },
    huge,
    ...calls,
    { type: "text-delta", delta: '"'.repeat(1_200_000) },
    { type: "finish", finishReason: "stop" },
  );
  const failed = chat(url).run(order);
  await expect(failed).rejects.toThrow("a part of the answer is longer than 1048576 characters");
  const texts = Array.from({ length: 12 }, () => ({ type: "text-delta", delta: '"'.repeat(100_000) }));
  const { run } = chat(
    await serveEvents(
      { type: "tool-output-available", toolCallId: "first", output: large },
      huge,
      ...calls,
      ...texts,
    ),
  );
  const result = (await run(order)) as { toolCalls: object[]; truncated: boolean };
  expect(result.toolCalls[0]).toEqual({
    toolCallId: "first",
    toolName: "",
    output: { omitted: true, bytes: 20_010 },
  });
  expect(result.toolCalls.length).toBeGreaterThan(1_000);
  expect(result.toolCalls.length).toBeLessThan(3_000);
  expect(result.truncated).toBe(true);
  expect(Buffer.byteLength(JSON.stringify(result))).toBeLessThanOrEqual(1_048_576);
});

test.each<[string, unknown, string | undefined, object[]]>([
  ["in its last event", { ok: true, usage: USAGE }, undefined, [USAGE]],
  ["in a header", { ok: true }, JSON.stringify(USAGE), [USAGE]],
  [
    "in a header and in the stream",
    UI_STREAM.at(-1),
    JSON.stringify({ inputTokens: 1 }),
    [{ inputTokens: 1 }],
  ],
  ["in a form that cannot be counted", { usage: { inputTokens: "many" } }, "many", []],
])("reports what the agent says %s", async (_where, event, header, reported) => {
  const url = await serve((_request, response) => {
    response.writeHead(200, {
      "content-type": "text/event-stream",
      ...(header === undefined ? {} : { "x-rota-usage": header }),
    });
    response.end(eventText(event));
  });
  const { run, usage } = chat(url);
  await run(order);
  expect(usage).toEqual(reported);
});
