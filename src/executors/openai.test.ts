import type { ServerResponse } from "node:http";
import { expect, test } from "vitest";
import { answerEvents, beginEvents, eventText } from "../../test/support/events-answer.ts";
import { delta, serveModel, usagePart } from "../../test/support/model-server.ts";
import { json } from "../../test/support/pinchtab.ts";
import { type RunnableExecutor, type RunnableOptions, runnable } from "../../test/support/run-executor.ts";
import type { ExecutorConfig } from "../model/executor-config.ts";
import type { Task } from "../model/task.ts";
import type { Turn } from "../model/turn.ts";
import { TargetGuard } from "../outbound/target-guard.ts";
import { ManualClock } from "../testing/manual-clock.ts";
import { Latch, until } from "../testing/signals.ts";
import { VERSION } from "../version.ts";

const KEY = "sk-test-0123456789";
const order: Partial<Task> = { kind: "instruction", instruction: "Say hello" };
const HELLO = [
  delta({ role: "assistant", content: "" }),
  delta({ content: "Hel" }),
  delta({ content: "lo" }),
];

type OpenAiConfig = Extract<ExecutorConfig, { type: "openai" }>;

function model(url: string, settings: Partial<OpenAiConfig> = {}): RunnableExecutor {
  const config: OpenAiConfig = { type: "openai", baseUrl: `${url}/v1`, model: "gpt-test", ...settings };
  return runnable(config, { environment: { TEST_KEY: KEY } });
}

/** The outcome of a task if the model responds with this. */
async function answered(answer: (response: ServerResponse) => void): Promise<unknown> {
  return model((await serveModel(answer)).url).run(order);
}

function events(...parts: readonly unknown[]): (response: ServerResponse) => void {
  return (response) => answerEvents(response, ...parts);
}

const hello = events(...HELLO, delta({}, "stop"), usagePart(12, 3), "[DONE]");

test("asks the model, streamed and with its count of tokens", async () => {
  const { url, asked } = await serveModel(hello);
  await model(url).run(order);
  expect(asked[0]).toMatchObject({
    method: "POST",
    path: "/v1/chat/completions",
    headers: { "content-type": "application/json", accept: "text/event-stream, application/json" },
  });
  expect(asked[0]?.headers["authorization"]).toBeUndefined();
  expect(asked[0]?.body).toEqual({
    model: "gpt-test",
    messages: [{ role: "user", content: "Say hello" }],
    stream: true,
    stream_options: { include_usage: true },
  });
});

test("asks as the configuration says", async () => {
  const { url, asked } = await serveModel(hello);
  await model(url, {
    baseUrl: `${url}/openai/v1/`,
    apiKeyEnv: "TEST_KEY",
    system: "You are terse.",
    temperature: 0,
    maxTokens: 50,
    request: { reasoning_effort: "low", stream_options: null },
    headers: { "X-Title": "Rota" },
  }).run({ kind: "message", message: "hi" });
  expect(asked[0]).toMatchObject({
    path: "/openai/v1/chat/completions",
    headers: { authorization: `Bearer ${KEY}`, "x-title": "Rota" },
  });
  expect(asked[0]?.body).toEqual({
    model: "gpt-test",
    temperature: 0,
    max_tokens: 50,
    reasoning_effort: "low",
    messages: [
      { role: "system", content: "You are terse." },
      { role: "user", content: "hi" },
    ],
    stream: true,
  });
});

test("merges llmConfig over that, but not over the messages and the stream", async () => {
  const { url, asked } = await serveModel(hello);
  const llmConfig = {
    model: "gpt-other",
    temperature: 1,
    max_tokens: null,
    messages: [{ role: "user", content: "something else" }],
    stream: false,
  };
  await model(url, { temperature: 0, maxTokens: 50 }).run({ ...order, llmConfig });
  expect(asked[0]?.body).toEqual({
    model: "gpt-other",
    temperature: 1,
    stream_options: { include_usage: true },
    messages: [{ role: "user", content: "Say hello" }],
    stream: true,
  });
});

test.each<Partial<Task>>([
  { kind: "action", action: "click" },
  { kind: "custom", payload: "x" },
])("a task of kind $kind is nothing to ask a model", async (task) => {
  await expect(model("http://127.0.0.1:1").run(task)).rejects.toMatchObject({
    name: "PermanentError",
    message: `the openai executor does tasks with an \`instruction\` or a \`message\`; this one is of kind ${task.kind}`,
  });
});

test("the result is the text, the finish reason, the model and the usage", async () => {
  const { url } = await serveModel(hello);
  const { run, usage, progress } = model(url);
  expect(await run(order)).toEqual({
    text: "Hello",
    finishReason: "stop",
    model: "gpt-test-2026",
    usage: { inputTokens: 12, outputTokens: 3 },
  });
  expect(usage).toEqual([{ inputTokens: 12, outputTokens: 3 }]);
  expect(progress).toEqual([
    { text: "Hel", length: 3 },
    { text: "Hello", length: 5 },
  ]);
});

test("shows the text while it is being written", async () => {
  const more = new Latch();
  const { url } = await serveModel(async (response) => {
    beginEvents(response).write(eventText(delta({ content: "Hel" })));
    await more.opened;
    response.end(eventText(delta({ content: "lo" }, "stop")));
  });
  const { run, progress } = model(url);
  const result = run(order);
  await until(() => progress.length === 1, "the first part");
  more.open();
  expect(await result).toMatchObject({ text: "Hello" });
});

test("shows the end of a text that is long, and how long it is", async () => {
  const parts = Array.from({ length: 100 }, (_, index) =>
    delta({ content: `${index},`.padEnd(100, "\u0001") }),
  );
  const { url } = await serveModel(events(...parts, delta({}, "stop")));
  const { run, progress } = model(url);
  await run(order);
  const last = progress.at(-1) as { text: string; length: number };
  expect(last.length).toBe(10_000);
  expect(last.text).toHaveLength(2_500);
  expect(last.text).toContain("99,");
  expect(Buffer.byteLength(JSON.stringify(last))).toBeLessThanOrEqual(16_384);
});

test("calls of tools are put together from their parts", async () => {
  const call = (index: number, added: object) => delta({ tool_calls: [{ index, ...added }] });
  const answer = events(
    delta({ role: "assistant", content: null }),
    call(0, { id: "call_1", type: "function", function: { name: "weather", arguments: "" } }),
    call(0, { function: { arguments: '{"city":' } }),
    call(1, { id: "call_2", type: "function", function: { name: "time", arguments: "{}" } }),
    call(0, { function: { arguments: '"Bern"}' } }),
    delta({}, "tool_calls"),
    "[DONE]",
  );
  expect(await answered(answer)).toEqual({
    text: "",
    finishReason: "tool_calls",
    model: "gpt-test-2026",
    toolCalls: [
      { id: "call_1", name: "weather", arguments: '{"city":"Bern"}' },
      { id: "call_2", name: "time", arguments: "{}" },
    ],
  });
});

test("calls with one index but several ids are several calls", async () => {
  const call = (id: string) => ({ index: 0, id, function: { name: "f", arguments: "{}" } });
  const answer = events(delta({ tool_calls: [call("a")] }), delta({ tool_calls: [call("b")] }, "tool_calls"));
  expect(await answered(answer)).toMatchObject({ toolCalls: [{ id: "a" }, { id: "b" }] });
});

test("a refusal is reported", async () => {
  const answer = events(delta({ refusal: "I will " }), delta({ refusal: "not." }, "stop"), "[DONE]");
  expect(await answered(answer)).toMatchObject({ text: "", refusal: "I will not." });
});

test("of several choices the first counts", async () => {
  const other = { choices: [{ index: 1, delta: { content: "no" }, finish_reason: "stop" }] };
  expect(await answered(events(other, ...HELLO, delta({}, "stop")))).toMatchObject({ text: "Hello" });
});

test("reads a server that does not stream, and one whose content is a list of parts", async () => {
  for (const content of [
    "Hello",
    [{ type: "text", text: "Hel" }, { type: "text", text: "lo" }, { type: "image" }],
  ]) {
    const whole = {
      model: "m",
      choices: [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }],
      usage: { prompt_tokens: 1, completion_tokens: 2 },
    };
    const { url } = await serveModel((response) => json(response, 200, whole));
    const { run, usage } = model(url);
    const counted = { inputTokens: 1, outputTokens: 2 };
    expect(await run(order)).toEqual({ text: "Hello", finishReason: "stop", model: "m", usage: counted });
    expect(usage).toEqual([counted]);
  }
});

test("a server may leave out [DONE], the model and the usage", async () => {
  const parts = [
    { choices: [{ delta: { content: "a" } }] },
    { choices: [{ delta: {}, finish_reason: "length" }] },
  ];
  const { url } = await serveModel(events(...parts));
  const { run, usage } = model(url);
  expect(await run(order)).toEqual({ text: "a", finishReason: "length", model: "gpt-test" });
  expect(usage).toEqual([]);
});

test("a server that says [DONE] need not say why it ended", async () => {
  expect(await answered(events(...HELLO, "[DONE]"))).toMatchObject({ text: "Hello", finishReason: null });
});

test("ignores comments, and parts that are no JSON or belong to no answer", async () => {
  const answer = (response: ServerResponse) => {
    beginEvents(response).write(": OPENROUTER PROCESSING\n\n");
    response.write(
      ["thinking", 1, null, [], {}, { choices: 7 }, { choices: [null] }].map(eventText).join(""),
    );
    response.end([...HELLO, delta({}, "stop")].map(eventText).join(""));
  };
  expect(await answered(answer)).toMatchObject({ text: "Hello" });
});

test("a stream that ends before the finish reason counts as broken off", async () => {
  const { url } = await serveModel(events(...HELLO));
  await expect(model(url).run(order)).rejects.toThrow(`the answer of ${url} broke off before its end`);
});

test("the usage of a response that breaks off is reported as far as it arrived", async () => {
  const { url } = await serveModel(events(...HELLO, usagePart(12, 1), usagePart(12, 2)));
  const { run, usage } = model(url);
  await expect(run(order)).rejects.toThrow("broke off before its end");
  expect(usage).toEqual([{ inputTokens: 12, outputTokens: 2 }]);
});

test("a server that counts no tokens has said nothing of its cost", async () => {
  const counted = { choices: [], usage: { prompt_tokens: null, cost: 0.1 } };
  const { url } = await serveModel(events(...HELLO, delta({}, "stop"), counted, "[DONE]"));
  const { run, usage } = model(url);
  expect(await run(order)).not.toHaveProperty("usage");
  expect(usage).toEqual([]);
});

test("a connection that breaks in the middle fails the attempt", async () => {
  const { url } = await serveModel((response) => {
    beginEvents(response).write(eventText(delta({ content: "Hel" })), () => response.destroy());
  });
  await expect(model(url).run(order)).rejects.toMatchObject({
    name: "CallError",
    message: expect.stringContaining(`the answer of ${url} broke off: `),
  });
});

test.each<[string, (response: ServerResponse) => void]>([
  ["says nothing", (response) => response.end()],
  ["says only that it is done", events("[DONE]")],
  ["has no choices", events({ choices: [] }, usagePart(1, 0), "[DONE]")],
])("an answer that %s is an empty one", async (_what, answer) => {
  await expect(answered(answer)).rejects.toThrow(new Error("empty answer"));
});

test("the error quotes a response that is no chat completion", async () => {
  const answer = (response: ServerResponse) => response.end("<html>Welcome to nginx</html>");
  await expect(answered(answer)).rejects.toThrow(
    "the answer is no chat completion: <html>Welcome to nginx</html>",
  );
});

test.each<[unknown, object]>([
  [{ error: { message: "Overloaded", type: "server_error" } }, { message: "the model failed: Overloaded" }],
  [{ error: { message: "No such model", code: 404 } }, { status: 404, permanent: true }],
  [{ error: { message: "Slow down", code: 429 } }, { status: 429, permanent: false }],
  [{ error: { message: "x", code: "invalid_api_key" } }, { message: "the model failed: x" }],
  [{ error: "boom" }, { message: "the model failed: boom" }],
  [{ error: { odd: 1 } }, { message: 'the model failed: {"odd":1}' }],
  [
    { object: "error", message: "Bad", code: 400 },
    { message: "the model failed: Bad", permanent: true },
  ],
])("an error in the middle of the stream, %j, fails the attempt", async (part, expected) => {
  await expect(answered(events(...HELLO, part, "[DONE]"))).rejects.toMatchObject(expected);
  await expect(answered((response) => json(response, 200, part))).rejects.toMatchObject(expected);
});

test.each([
  [429, false],
  [500, false],
  [529, false],
  [400, true],
  [401, true],
  [403, true],
  [404, true],
])("a status of %i is a failure", async (status, permanent) => {
  const { url } = await serveModel((response) =>
    response.writeHead(status, { "retry-after": "20" }).end('{"error":{"message":"no"}}'),
  );
  await expect(model(url).run(order)).rejects.toMatchObject({
    message: `HTTP ${status}: {"error":{"message":"no"}}`,
    status,
    permanent,
    retryAfterMs: 20_000,
  });
});

test("the error quotes a response without the API key in it", async () => {
  const said = `Incorrect API key provided: ${KEY}. ${"x".repeat(995)}${KEY}`;
  for (const answer of [
    (response: ServerResponse) => response.writeHead(401).end(said),
    events({ error: { message: said } }),
    (response: ServerResponse) => response.end(said),
  ]) {
    const { url } = await serveModel(answer);
    const failed = model(url, { apiKeyEnv: "TEST_KEY" }).run(order);
    await expect(failed).rejects.toThrow("Incorrect API key provided: ….");
    await expect(failed).rejects.toThrow(/^(?!.*sk-test)/s);
  }
});

test("a text beyond a mebibyte is cut and marked, and still fits as a result", async () => {
  const parts = Array.from({ length: 300 }, () => delta({ content: '"\n'.repeat(5_000) }));
  const result = (await answered(events(...parts, delta({}, "stop"), "[DONE]"))) as { text: string };
  expect(result).toMatchObject({ truncated: true, finishReason: "stop" });
  const bytes = Buffer.byteLength(JSON.stringify(result));
  expect(bytes).toBeLessThanOrEqual(1_048_576);
  expect(bytes).toBeGreaterThan(1_000_000);
});

test("tool calls with too large arguments fail the attempt", async () => {
  const call = delta({
    tool_calls: [{ index: 0, id: "a", function: { name: "f", arguments: "x".repeat(50_000) } }],
  });
  await expect(answered(events(call, call, call))).rejects.toThrow(
    "the model calls tools with more than 131072 characters",
  );
  const many = delta({
    tool_calls: Array.from({ length: 5_000 }, (_, index) => ({ index, id: `${index}` })),
  });
  await expect(answered(events(many))).rejects.toThrow("more than 131072 characters");
  const named = { id: "\u0001".repeat(256), function: { name: "\u0001".repeat(256) } };
  const long = Array.from({ length: 300 }, (_, index) => ({ index, ...named }));
  await expect(answered(events(delta({ tool_calls: long })))).rejects.toThrow("more than 131072 characters");
});

test("as many calls of tools as are allowed leave room for the text, whatever is in them", async () => {
  const args = "\u0001".repeat(130_000);
  const call = { index: 0, id: "a", function: { name: "f", arguments: args } };
  const parts = Array.from({ length: 10 }, () => delta({ content: "\u0001".repeat(30_000) }));
  const result = await answered(events(delta({ tool_calls: [call] }), ...parts, delta({}, "stop")));
  expect(result).toMatchObject({ truncated: true, toolCalls: [{ arguments: args }] });
  expect((result as { text: string }).text.length).toBeGreaterThan(10_000);
  expect(Buffer.byteLength(JSON.stringify(result))).toBeLessThanOrEqual(1_048_576);
});

test("one part beyond a mebibyte fails the attempt, whether it is streamed or not", async () => {
  const part = delta({ content: "x".repeat(2_000_000) }, "stop");
  for (const answer of [events(part), (response: ServerResponse) => json(response, 200, part)]) {
    await expect(answered(answer)).rejects.toThrow("a part of the answer is longer than 1048576 characters");
  }
});

test("a call ends with its signal, and its connection too", async () => {
  const hanging = new Latch();
  const dropped = new Latch();
  const { url } = await serveModel((response) => {
    response.on("close", () => dropped.open());
    beginEvents(response).write(eventText(HELLO[1]));
    hanging.open();
  });
  const stop = new AbortController();
  const failed = expect(model(url).run(order, stop.signal)).rejects.toThrow("stopped");
  await hanging.opened;
  stop.abort(new Error("stopped"));
  await failed;
  await dropped.opened;
});

test("a server that says [DONE] and does not end is left after a second", async () => {
  const dropped = new Latch();
  const { url } = await serveModel((response) => {
    response.on("close", () => dropped.open());
    beginEvents(response).write([...HELLO, "[DONE]"].map(eventText).join(""));
  });
  const { run, clock } = model(url);
  const result = run(order);
  await until(() => clock.pending === 1, "the wait for the end");
  await clock.advance(1_000);
  expect(await result).toMatchObject({ text: "Hello" });
  await dropped.opened;
});

test("uses its connection again", async () => {
  const { url, asked } = await serveModel(hello);
  const { run, clock } = model(url);
  for (let i = 0; i < 10; i++) await run(order);
  // A second one is opened when the first has not yet come to rest.
  expect(new Set(asked.map(({ port }) => port)).size).toBeLessThanOrEqual(2);
  expect(clock.pending).toBe(0);
});

test("calls nothing that a guard forbids", async () => {
  const { url, asked } = await serveModel(hello);
  const guard = new TargetGuard({ allow: [], clock: new ManualClock() });
  const { run } = runnable({ type: "openai", baseUrl: url, model: "m" }, { guard });
  await expect(run(order)).rejects.toMatchObject({ name: "PermanentError" });
  expect(asked).toEqual([]);
});

// ---------------------------------------------------------------------------------------------------------- history

function turn(message: string, result: unknown): Turn {
  return { taskId: message, work: { kind: "message", message }, result };
}

const TURNS: readonly Turn[] = [
  turn("My name is Ann.", { text: "Hello Ann." }),
  { taskId: "2", work: { kind: "instruction", instruction: "Count." }, result: "1, 2, 3" },
];
const now: Partial<Task> = { kind: "message", message: "What is my name?", sessionKey: "user:42" };

/** The messages that the model receives. */
async function messagesFor(
  task: Partial<Task>,
  settings: Partial<OpenAiConfig>,
  options: RunnableOptions = { session: { turns: TURNS } },
) {
  const { url, asked } = await serveModel(hello);
  const config: OpenAiConfig = { type: "openai", baseUrl: url, model: "gpt-test", ...settings };
  const executor = runnable(config, options);
  await executor.run(task);
  const messages = asked[0]?.body["messages"] as { role: string; content: string }[];
  return { said: messages.map(({ role, content }) => `${role}: ${content}`), asked: executor.turnsAsked };
}

test("sends the model what was said before in the session", async () => {
  expect(await messagesFor(now, { system: "Be brief." })).toEqual({
    said: [
      "system: Be brief.",
      "user: My name is Ann.",
      "assistant: Hello Ann.",
      "user: Count.",
      "assistant: 1, 2, 3",
      "user: What is my name?",
    ],
    asked: [20],
  });
});

test("reads as many turns as configured, and none where it need not", async () => {
  expect((await messagesFor(now, { history: 3 })).asked).toEqual([3]);
  const alone = { said: ["user: What is my name?"], asked: [] };
  expect(await messagesFor(now, { history: 0 })).toEqual(alone);
  expect(await messagesFor({ kind: "message", message: "What is my name?" }, {})).toEqual(alone);
});

test("leaves out what was no talk", async () => {
  const turns = [
    { taskId: "1", work: { kind: "custom", payload: 1 }, result: "1" } as const,
    turn("a", { text: "" }),
    turn("b", null),
    turn("c", { answer: 1 }),
    turn("d", { text: "D", toolCalls: [] }),
  ];
  expect((await messagesFor(now, {}, { session: { turns } })).said).toEqual([
    "user: d",
    "assistant: D",
    "user: What is my name?",
  ]);
});

test.each<[string, Partial<OpenAiConfig>, RunnableOptions, number]>([
  ["of any length without a window", {}, {}, 10],
  ["that the agent's window has room for", {}, { contextWindow: 1_000 }, 6],
  ["that the session's window has room for", {}, { session: { contextWindow: 1_000 } }, 6],
  [
    "that the agent's window has room for, whatever the session says",
    {},
    { contextWindow: 1_000, session: { contextWindow: 10 } },
    6,
  ],
  ["that have room beside a long answer", { maxTokens: 600 }, { contextWindow: 1_000 }, 3],
  ["that have room beside the system message", { system: "x".repeat(1_500) }, { contextWindow: 1_000 }, 2],
  ["that have room beside the question, which may be none", {}, { contextWindow: 20 }, 0],
])("sends the last turns %s", async (_which, settings, options, count) => {
  // Some hundred tokens each.
  const turns = Array.from({ length: 10 }, (_, n) => turn(`${n}`, "x".repeat(310)));
  const { said } = await messagesFor(now, settings, { ...options, session: { turns, ...options.session } });
  const sent = said.filter((line) => /^user: \d$/.test(line));
  expect(sent).toEqual(turns.slice(10 - count).map(({ taskId }) => `user: ${taskId}`));
});

test("says whose task it is, and who calls", async () => {
  const { url, asked } = await serveModel(hello);
  await model(url, { headers: { "X-Rota-Tenant": "other" } }).run(order, undefined, "ten_1");
  expect(asked[0]?.headers).toMatchObject({ "x-rota-tenant": "ten_1", "user-agent": `rota/${VERSION}` });
});
