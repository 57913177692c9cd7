import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { createRota, type RotaOptions } from "../src/index.ts";
import { createTestRota, Latch, nextEvent, until } from "../src/testing/index.ts";
import { eventually, newFolder, runRota, startServer } from "./end-to-end/server-process.ts";
import { answerEvents, beginEvents, eventText } from "./support/events-answer.ts";
import { serve } from "./support/http-server.ts";
import { delta, serveModel, usagePart } from "./support/model-server.ts";
import { endWithTest, isRunning, shellProgram, untilEnded } from "./support/programs.ts";

/** A running Rota whose time stands still. */
async function openRota(options: RotaOptions) {
  const { rota, clock } = await createTestRota(options as object);
  onTestFinished(() => rota.stop({ graceMs: 0 }));
  await rota.start();
  return { rota, clock };
}

// ----------------------------------------------------------------------------------------------------------- chat

test("an instruction that fails is tried again, after the wait that the chat API asks for", async () => {
  let calls = 0;
  const url = await serve((_request, response) => {
    calls += 1;
    if (calls === 1) response.writeHead(503, { "retry-after": "30" }).end("busy");
    else answerEvents(response, { type: "finish" }, "[DONE]");
  });
  const { rota, clock } = await openRota({ executors: { instruction: { type: "chat", url } } });
  const retrying = nextEvent(rota, ({ type }) => type === "task.retrying");
  const { taskId } = await rota.tasks.submit({ instruction: "Go" });
  await retrying;
  await clock.advance(29_999);
  expect(calls).toBe(1);
  await clock.advance(1);
  expect(await rota.tasks.wait(taskId)).toMatchObject({
    state: "done",
    result: { type: "finish" },
    attempts: [{ error: "Chat API returned 503: busy" }, { outcome: "done" }],
  });
});

test("an instruction that the chat API refuses is not tried again", async () => {
  const url = await serve((_request, response) => response.writeHead(422).end("no"));
  const { rota } = await openRota({ executors: { instruction: { type: "chat", url } } });
  const { taskId } = await rota.tasks.submit({ instruction: "Go" });
  expect(await rota.tasks.wait(taskId)).toMatchObject({
    state: "failed",
    error: "Chat API returned 422: no",
    retryCount: 0,
  });
});

test("a stream that never ends is dropped by the timeout, and each event was reported", async () => {
  const dropped = new Latch();
  const url = await serve((_request, response) => {
    response.on("close", () => dropped.open());
    beginEvents(response).write(eventText({ step: "thinking" }));
  });
  const { rota, clock } = await openRota({ executors: { instruction: { type: "chat", url } } });
  const reported = nextEvent(rota, ({ type }) => type === "task.progress");
  const input = { instruction: "Go", timeout: 5_000, retryPolicy: { maxRetries: 0 } };
  const { taskId } = await rota.tasks.submit(input);
  expect(await reported).toMatchObject({ taskId, progress: { step: "thinking" } });
  await clock.advance(5_000);
  expect(await rota.tasks.wait(taskId)).toMatchObject({ state: "failed", error: "timed out after 5000 ms" });
  await dropped.opened;
});

/** A server like that of BrowserOS: it refuses conversations that are no UUIDs, and streams UI messages. */
async function serveBrowserOs(...answers: readonly (readonly object[])[]) {
  const conversations: string[] = [];
  const url = await serve((_request, response, body) => {
    const { conversationId } = JSON.parse(body);
    if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(conversationId)) {
      response.writeHead(400).end("conversationId: invalid uuid");
      return;
    }
    const answer = answers[Math.min(conversations.length, answers.length - 1)] ?? [];
    conversations.push(conversationId);
    answerEvents(response, { type: "start" }, { type: "start-step" }, ...answer, "[DONE]");
  });
  return { url, conversations };
}

const SAID = [
  { type: "text-start", id: "1" },
  { type: "text-delta", id: "1", delta: "Done." },
  { type: "text-end", id: "1" },
  { type: "finish-step" },
  {
    type: "finish",
    finishReason: "stop",
    messageMetadata: { usage: { inputTokens: 700, outputTokens: 50 } },
  },
];

test("a UI message that ends in an error is tried again, and one that does not is the result", async () => {
  const { url } = await serveBrowserOs([{ type: "error", errorText: "overloaded" }], SAID);
  const { rota, clock } = await openRota({ executors: { instruction: { type: "chat", url } } });
  const retrying = nextEvent(rota, ({ type }) => type === "task.retrying");
  const { taskId } = await rota.tasks.submit({ instruction: "Go" });
  await retrying;
  await clock.advance(60_000);
  expect(await rota.tasks.wait(taskId)).toMatchObject({
    state: "done",
    result: { text: "Done.", finishReason: "stop", toolCalls: [], usage: { inputTokens: 700 } },
    usage: { inputTokens: 700, outputTokens: 50 },
    attempts: [{ error: "the agent failed: overloaded" }, { outcome: "done" }],
  });
});

test("messages of a session are one conversation until it is reset, and runs of a schedule are, too", async () => {
  const { url, conversations } = await serveBrowserOs(SAID);
  const { rota, clock } = await openRota({ agents: { browser: { executor: { type: "chat", url } } } });
  const say = async () => {
    const { taskId } = await rota.tasks.submit({ agentId: "browser", message: "hi", sessionKey: "user:42" });
    expect(await rota.tasks.wait(taskId)).toMatchObject({ state: "done" });
  };
  await say();
  await say();
  await rota.sessions.reset("user:42");
  await say();
  const [first, second, third] = conversations;
  expect(second).toBe(first);
  expect(third).not.toBe(first);
  const { scheduled_task: schedule } = await rota.schedules.create({
    schedule: "every 1 hour",
    agent: "browser",
    message: "again",
  });
  for (const runs of [1, 2]) {
    await clock.advance(3_600_000);
    await until(() => conversations.length === 3 + runs, "the run");
  }
  expect(conversations[4]).toBe(conversations[3]);
  const ended = async () => {
    const { runs } = await rota.schedules.runs(schedule.id);
    return runs.every(({ status }) => status === "succeeded") ? runs : null;
  };
  await expect.poll(ended).toMatchObject([
    { input_tokens: 700, output_tokens: 50 },
    { input_tokens: 700, output_tokens: 50 },
  ]);
});

test("what an agent reports throttles its session, by the window that the agent states", async () => {
  const usage = { inputTokens: 500, outputTokens: 100 };
  const url = await serve((_request, response) => response.end(JSON.stringify({ text: "ok", usage })));
  const http = { executor: { type: "http", url } } as const;
  const command = { type: "command", command: shellProgram(`echo '${JSON.stringify({ usage })}'`) } as const;
  const { rota } = await openRota({
    agents: {
      narrow: { ...http, contextWindow: 1_000 },
      wide: { ...http, contextWindow: 2_000 },
      silent: http,
      program: { executor: command, contextWindow: 1_000 },
    },
  });
  const sessionOf = async (agentId: string) => {
    await rota.sessions.update(agentId, { maxConcurrent: 3 });
    const { taskId } = await rota.tasks.submit({ agentId, message: "hi", sessionKey: agentId });
    expect(await rota.tasks.wait(taskId)).toMatchObject({ state: "done", usage });
    const { tokens, contextWindow, effectiveMaxConcurrent } = await rota.sessions.get(agentId);
    return [tokens, contextWindow, effectiveMaxConcurrent];
  };
  expect(await sessionOf("narrow")).toEqual([600, 1_000, 1]);
  expect(await sessionOf("wide")).toEqual([600, 2_000, 3]);
  expect(await sessionOf("silent")).toEqual([600, null, 3]);
  expect(await sessionOf("program")).toEqual([600, 1_000, 1]);
});

test("tokens that are set are measured by the window of the session's agent, unless another is set", async () => {
  const { rota } = await openRota({ agents: { index: { contextWindow: 1_000 } } });
  const set = async (key: string, changes: object) => {
    const session = await rota.sessions.update(key, { maxConcurrent: 3, ...changes });
    return [session.contextWindow, session.effectiveMaxConcurrent];
  };
  expect(await set("a", { tokens: 700 })).toEqual([1_000, 1]);
  expect(await set("b", { tokens: 700, contextWindow: 5_000 })).toEqual([5_000, 3]);
  expect(await set("b", { tokens: 4_000 })).toEqual([5_000, 1]);
  expect(await set("c", { agentId: "other", tokens: 700 })).toEqual([null, 3]);
});

test("requests to http agents are signed with the secret of callbacks, also after it was changed", async () => {
  const signatures: unknown[] = [];
  const url = await serve(({ headers }, response) => {
    signatures.push(headers["webhook-signature"]);
    response.end("{}");
  });
  const secrets = ["a", "b"].map((letter) => `whsec_${Buffer.from(letter.repeat(32)).toString("base64")}`);
  const { rota } = await openRota({ agents: { a: { executor: { type: "http", url } } } });
  const runOne = async () => {
    const { taskId } = await rota.tasks.submit({ agentId: "a", payload: 1 });
    await rota.tasks.wait(taskId);
  };
  await runOne();
  for (const secret of secrets) {
    await rota.reload({ webhooks: { secret } });
    await runOne();
  }
  expect(signatures[0]).toBeUndefined();
  expect(signatures.slice(1)).toEqual([expect.stringMatching(/^v1,/), expect.stringMatching(/^v1,/)]);
});

// --------------------------------------------------------------------------------------------------------- openai

const answer = [delta({ content: "Bern" }, "stop"), usagePart(9, 1), "[DONE]"];

test("the key of a model comes from a variable, which has to be set", async () => {
  const { url, asked } = await serveModel((response) => answerEvents(response, ...answer));
  const executor = { type: "openai", baseUrl: url, model: "m", apiKeyEnv: "TEST_MODEL_KEY" } as const;
  await expect(
    createRota({ storage: "sqlite::memory:", agents: { a: { executor } }, executors: { message: executor } }),
  ).rejects.toThrow(
    [
      "the configuration has 2 faults:",
      "- `executors.message.apiKeyEnv` names the variable TEST_MODEL_KEY, which is not set: set it, or leave `apiKeyEnv` out if no key is needed",
      "- `agents.a.executor.apiKeyEnv` names the variable TEST_MODEL_KEY, which is not set: set it, or leave `apiKeyEnv` out if no key is needed",
    ].join("\n"),
  );

  vi.stubEnv("TEST_MODEL_KEY", "sk-secret\n");
  onTestFinished(() => void vi.unstubAllEnvs());
  const { rota } = await openRota({ agents: { a: { executor } } });
  const { taskId } = await rota.tasks.submit({ agentId: "a", message: "The capital of Switzerland?" });
  expect(await rota.tasks.wait(taskId)).toMatchObject({ state: "done", result: { text: "Bern" } });
  expect(asked[0]?.headers["authorization"]).toBe("Bearer sk-secret");
  expect(JSON.stringify(await rota.agents.list())).not.toContain("sk-secret");
});

test("a key that no header could carry is refused without being shown", async () => {
  vi.stubEnv("TEST_MODEL_KEY", "sk-secret one\ntwo");
  onTestFinished(() => void vi.unstubAllEnvs());
  const executor = { type: "openai", baseUrl: "http://x/", model: "m", apiKeyEnv: "TEST_MODEL_KEY" } as const;
  const refused = createRota({ storage: "sqlite::memory:", agents: { a: { executor } } });
  await expect(refused).rejects.toThrow("names the variable TEST_MODEL_KEY, which holds no key");
  await expect(refused).rejects.toThrow(/^(?!.*sk-secret)/s);
});

test("the server says which variable is missing, and does not start", async () => {
  const folder = newFolder();
  const executor = {
    type: "openai",
    baseUrl: "http://127.0.0.1:9/v1",
    model: "m",
    apiKeyEnv: "TEST_MODEL_KEY",
  };
  writeFileSync(join(folder, "rota.config.json"), JSON.stringify({ agents: { a: { executor } } }));
  const server = runRota(["serve", "--port", "0"], { folder });
  expect((await server.ended).code).not.toBe(0);
  expect(server.stderr()).toContain(
    "`agents.a.executor.apiKeyEnv` names the variable TEST_MODEL_KEY, which is not set",
  );
});

/** A model that knows only the messages of the request. */
async function serveForgetfulModel() {
  const asked: string[][] = [];
  const url = await serve((_request, response, body) => {
    const messages: { role: string; content: string }[] = JSON.parse(body).messages;
    asked.push(messages.map(({ content }) => content));
    const name = messages.flatMap(({ content }) => /my name is (\w+)/i.exec(content)?.[1] ?? []).at(-1);
    answerEvents(response, delta({ content: `You are ${name ?? "a stranger"}.` }, "stop"), "[DONE]");
  });
  return { url, asked };
}

test("a model remembers its session, and nothing of another agent, session or generation", async () => {
  const { url, asked } = await serveForgetfulModel();
  const executor = { type: "openai", baseUrl: url, model: "m" } as const;
  const { rota } = await openRota({
    agents: { a: { executor }, b: { executor }, forgetful: { executor: { ...executor, history: 0 } } },
  });
  const ask = async (agentId: string, sessionKey: string | undefined, message: string) => {
    const { taskId } = await rota.tasks.submit({ agentId, message, ...(sessionKey && { sessionKey }) });
    return ((await rota.tasks.wait(taskId)).result as { text: string }).text;
  };
  const question = "What is my name?";
  expect(await ask("a", "s", "My name is Ann")).toBe("You are Ann.");
  expect(await ask("a", "s", question)).toBe("You are Ann.");
  expect(asked.at(-1)).toEqual(["My name is Ann", "You are Ann.", question]);
  expect(await ask("a", "t", question)).toBe("You are a stranger.");
  expect(await ask("b", "s", question)).toBe("You are a stranger.");
  expect(await ask("a", undefined, question)).toBe("You are a stranger.");
  expect(await ask("forgetful", "f", "My name is Ann")).toBe("You are Ann.");
  expect(await ask("forgetful", "f", question)).toBe("You are a stranger.");
  await rota.sessions.reset("s");
  expect(await ask("a", "s", question)).toBe("You are a stranger.");
  expect(asked.at(-1)).toEqual([question]);
});

// -------------------------------------------------------------------------------------------------------- command

/** Writes its number and that of a child to the log, and waits. */
const FAMILY = "sleep 600 & echo $! >&2; echo $$ >&2; wait";

/** A Rota with an agent that runs a program, and the processes of that. */
async function openFamily(source = FAMILY) {
  const lines: string[] = [];
  const note = (_fields: object, message: string) => void lines.push(message);
  const log = { debug() {}, info: note, warn() {}, error() {}, child: () => log };
  const executor = { type: "command", command: shellProgram(source) } as const;
  const opened = await openRota({ agents: { shell: { executor } }, log });
  const pids = async () => {
    await until(() => lines.length === 2, "the program to run");
    return lines.map((line) => endWithTest(Number(line)));
  };
  return { ...opened, pids };
}

test("a program gets the task as its input, and its output is the result", async () => {
  const command = shellProgram(
    'printf \'{"said":"%s","agent":"%s","attempt":%s}\' "$(cat)" "$ROTA_AGENT_ID" "$ROTA_ATTEMPT"',
  );
  const { rota } = await openRota({ agents: { shell: { executor: { type: "command", command } } } });
  const { taskId } = await rota.tasks.submit({ agentId: "shell", message: "hello" });
  expect(await rota.tasks.wait(taskId)).toMatchObject({
    state: "done",
    result: { said: "hello", agent: "shell", attempt: 1 },
  });
});

test("a cancelled task ends its program and all that it has started", async () => {
  const { rota, pids } = await openFamily();
  const { taskId } = await rota.tasks.submit({ agentId: "shell", message: "wait" });
  const family = await pids();
  await rota.tasks.cancel(taskId);
  expect(await rota.tasks.get(taskId)).toMatchObject({ state: "cancelled" });
  for (const pid of family) await untilEnded(pid);
});

test("a timeout ends its program, and the next attempt may do better", async () => {
  const { rota, clock, pids } = await openFamily(
    `if [ "$ROTA_ATTEMPT" = 2 ]; then echo ok; else ${FAMILY}; fi`,
  );
  const input = { agentId: "shell", message: "x", timeout: 1_000, retryPolicy: { maxRetries: 1 } };
  const { taskId } = await rota.tasks.submit(input);
  const family = await pids();
  await clock.advance(1_000);
  for (const pid of family) await untilEnded(pid);
  await clock.advance(1_000);
  expect(await rota.tasks.wait(taskId)).toMatchObject({
    state: "done",
    result: "ok",
    attempts: [{ error: "timed out after 1000 ms" }, { outcome: "done" }],
  });
});

test("a Rota that has stopped has left no program running", async () => {
  const { rota, pids } = await openFamily();
  await rota.tasks.submit({ agentId: "shell", message: "wait" });
  const family = await pids();
  await rota.stop({ graceMs: 0 });
  expect(family.map(isRunning)).toEqual([false, false]);
});

test("a program that will not end is ended five seconds after the stop", async () => {
  const { rota, clock, pids } = await openFamily(`trap '' TERM; ${FAMILY}; sleep 600`);
  await rota.tasks.submit({ agentId: "shell", message: "wait" });
  const family = await pids();
  const stopped = rota.stop({ graceMs: 0 });
  await rota.drain();
  await clock.advance(4_999);
  expect(family.map(isRunning)).toEqual([true, true]);
  await clock.advance(1);
  await stopped;
  for (const pid of family) await untilEnded(pid);
});

/** A server with an agent that runs a program, and the processes of that once it runs. */
async function startFamily(source: string) {
  const folder = newFolder();
  const executor = { type: "command", command: shellProgram(source), cwd: folder };
  const environment = { ROTA_AGENTS: JSON.stringify({ shell: { executor } }), ROTA_SHUTDOWN_GRACE_SEC: "0" };
  const server = await startServer({ environment, folder });
  await server.ask("/tasks", { json: { agentId: "shell", message: "wait" } });
  const family = () => [...server.stderr().matchAll(/"msg":"(\d+)"/g)].map(([, pid]) => Number(pid));
  await eventually(() => family().length === 2, "the program to run");
  return { server, family: family().map(endWithTest), folder };
}

test("a server that is stopped ends its programs first, and lets them clean up", async () => {
  const { server, family, folder } = await startFamily(
    `trap 'sleep 0.3; echo yes > cleaned; exit' TERM; ${FAMILY}`,
  );
  server.kill("SIGTERM");
  expect(await server.ended).toEqual({ code: 0, signal: null });
  expect(family.map(isRunning)).toEqual([false, false]);
  expect(readFileSync(join(folder, "cleaned"), "utf8")).toBe("yes\n");
});

test("a server that gets two signals to stop takes its programs along", async () => {
  const { server, family } = await startFamily(`trap '' TERM; ${FAMILY}; sleep 600`);
  server.kill("SIGTERM");
  await eventually(() => server.stderr().includes("stopping"), "the server to stop");
  await eventually(
    () => {
      server.kill("SIGTERM");
      return family.every((pid) => !isRunning(pid));
    },
    "the programs to end",
    4_000,
  );
  expect((await server.ended).code).toBe(143);
});

test("an agent made over HTTP cannot run programs of the server", async () => {
  const server = await startServer();
  const executor = { type: "command", command: ["touch", "/tmp/x"] };
  const created = await server.ask("/v1/agents", { json: { id: "a", executor } });
  expect(created).toMatchObject({
    status: 400,
    body: {
      code: "invalid_field",
      error: expect.stringMatching(
        /^`executor\.type` must not be command: only the configuration file .* write one of .*http/,
      ),
    },
  });
  const keyed = { type: "openai", baseUrl: "https://x.example/v1", model: "m", apiKeyEnv: "HOME" };
  expect(await server.ask("/v1/agents", { json: { id: "a", executor: keyed } })).toMatchObject({
    status: 400,
    body: {
      error: expect.stringMatching(
        /^`executor\.apiKeyEnv` is allowed only in the configuration file, .*: send the key in `headers`/,
      ),
    },
  });
  const local = { type: "chat", url: "http://127.0.0.1:9100" };
  expect(await server.ask("/v1/agents", { json: { id: "a", executor: local } })).toMatchObject({
    status: 400,
    body: { error: expect.stringContaining("`executor.url` must not lead to 127.0.0.1") },
  });
  expect(await server.ask("/v1/agents/a")).toMatchObject({ status: 404 });
});

test("what a program submits with the command line is shown and cancelled as the tree of its task", async () => {
  const folder = newFolder();
  const main = join(import.meta.dirname, "..", "src", "cli", "main.ts");
  const cli = `${process.execPath} ${main}`;
  // The address is only known once the server runs.
  const script = `${cli} submit --url $(cat url) --message part --run-at 1h; ${cli} submit --url $(cat url) --message more --run-at 1h; sleep 60`;
  const agents = {
    planner: {
      executor: { type: "command", command: ["sh", "-c", script], cwd: folder, passEnv: ["NODE_OPTIONS"] },
    },
  };
  writeFileSync(join(folder, "rota.config.json"), JSON.stringify({ agents }));
  const server = await startServer({ folder, args: ["--config", join(folder, "rota.config.json")] });
  writeFileSync(join(folder, "url"), server.url);
  const { taskId } = (await server.ask("/tasks", { json: { agentId: "planner", message: "plan" } })).body;
  const below = async () => (await server.ask(`/tasks?rootTaskId=${taskId}&order=oldest`)).body.tasks;
  await eventually(async () => (await below()).length === 2, "two tasks below the first");
  expect(await below()).toMatchObject(
    ["part", "more"].map((message) => ({
      ...{ message, agentId: "planner", parentTaskId: taskId, depth: 1 },
      createdBy: { agentId: "planner", via: "cli" },
    })),
  );
  const tree = runRota(["task", taskId, "--tree", "--url", server.url]);
  await tree.ended;
  expect(tree.stdout().replaceAll(/tsk_\w+/g, "ID")).toBe(
    "ID running planner: plan\n├─ ID delayed planner: part\n└─ ID delayed planner: more\n",
  );
  const cancelled = runRota(["cancel", taskId, "--tree", "--url", server.url]);
  await cancelled.ended;
  expect(cancelled.stdout()).toBe(`${taskId} cancelled, 3 in all\n`);
  expect((await below()).map(({ state }: { state: string }) => state)).toEqual(["cancelled", "cancelled"]);
});
