import { expect, test } from "vitest";
import { hostileValues } from "../../test/support/hostile-values.ts";
import { configSchema } from "../config/schema.ts";
import { RotaError } from "../model/errors.ts";
import type { Task } from "../model/task.ts";
import { TargetGuard } from "../outbound/target-guard.ts";
import { ManualClock } from "../testing/manual-clock.ts";
import { createExecutor, executorUrls } from "./create-executor.ts";
import type { ExecutorContext } from "./executor.ts";

const clock = new ManualClock();

function echoOf(task: Partial<Task>): unknown {
  return createExecutor({ type: "echo" }, { clock })(task as Task, {} as ExecutorContext);
}

test("echo returns its input", () => {
  expect(echoOf({ kind: "instruction", instruction: "do" })).toBe("do");
  expect(echoOf({ kind: "message", message: "say" })).toBe("say");
  expect(echoOf({ kind: "custom", payload: { a: 1 } })).toEqual({ a: 1 });
  expect(echoOf({ kind: "action", action: "click", tabId: "t", params: { x: 1 } })).toEqual({
    action: "click",
    tabId: "t",
    params: { x: 1 },
  });
});

test("a function is an executor already", () => {
  const handler = () => 1;
  expect(createExecutor(handler, { clock })).toBe(handler);
});

const RIGHT: readonly object[] = [
  { type: "echo" },
  { type: "http", url: "https://example.com/hook?key=1" },
  { type: "http", url: "http://[::1]:9/", headers: { authorization: "Bearer x", "X-Odd_~!": "a\tb é" } },
  { type: "http", url: "http://x/", headers: {} },
  { type: "tab-action", url: "http://127.0.0.1:9867" },
  { type: "tab-action", url: "http://127.0.0.1:9867/base/", resolver: "fixed" },
  { type: "tab-action", url: "http://x", resolver: "pinchtab", cacheSec: 0, headers: { authorization: "x" } },
  { type: "tab-action", url: "http://x", resolver: "pinchtab", cacheSec: 0.5 },
  { type: "chat", url: "http://127.0.0.1:9100", headers: { "x-key": "a" } },
  { type: "openai", baseUrl: "https://api.openai.com/v1", model: "gpt-5" },
  {
    type: "openai",
    baseUrl: "http://127.0.0.1:11434/v1/",
    model: "qwen3:8b",
    apiKeyEnv: "KEY",
    system: "Be brief.",
    temperature: 0,
    maxTokens: 1,
    history: 0,
    request: { top_p: 0.5, stream_options: null },
    headers: { "x-title": "Rota" },
  },
  { type: "command", command: ["./agent.sh"] },
  {
    type: "command",
    command: ["python3", "agent.py", "", "a b"],
    cwd: "agents",
    env: { API_URL: "x=y\nz", _: "" },
    result: "json",
  },
];

const OPENAI = { type: "openai", baseUrl: "http://x/v1", model: "m" };

const WRONG: readonly [config: unknown, message: string][] = [
  [
    { type: "htpp" },
    '`executor.type` must be echo, http, tab-action, chat, openai, command or worker, not "htpp": did you mean `http`?',
  ],
  [{ ...OPENAI, history: 201 }, "`executor.history` must be an integer from 0 to 200"],
  [{ ...OPENAI, history: "20" }, "`executor.history` must be an integer from 0 to 200"],
  [{ type: "tabaction" }, "did you mean `tab-action`?"],
  [{}, "`executor.type` must be echo, http, tab-action, chat, openai, command or worker"],
  [
    { type: null },
    "`executor.type` must be echo, http, tab-action, chat, openai, command or worker, not null",
  ],
  [
    { type: ["http"] },
    "`executor.type` must be echo, http, tab-action, chat, openai, command or worker, not an array",
  ],
  [{ type: "constructor" }, "`executor.type` must be echo"],
  [{ type: "__proto__" }, "`executor.type` must be echo"],
  [{ type: "x".repeat(1_000_000) }, "`executor.type` must be echo"],
  [{ type: "http" }, "`executor.url` must be an http or https URL"],
  [{ type: "http", url: 7 }, "`executor.url` must be an http or https URL"],
  [{ type: "http", url: "ftp://x/" }, "`executor.url` must be an http or https URL"],
  [{ type: "http", url: "not a url" }, "`executor.url` must be an http or https URL"],
  [{ type: "http", url: "http://user:secret@x/" }, "`executor.url` must have no user or password in it"],
  [{ type: "http", url: "https://token@x/" }, "write them as an `authorization` header in `headers`"],
  [
    { type: "http", url: `http://x/${"y".repeat(3_000)}` },
    "`executor.url` must have at most 2048 characters",
  ],
  [{ type: "http", url: "http://x/", header: {} }, "did you mean `executor.headers`?"],
  [{ type: "http", url: "http://x/", headers: null }, "`executor.headers` must be an object of strings"],
  [{ type: "http", url: "http://x/", headers: ["a"] }, "must be an object of strings"],
  [{ type: "http", url: "http://x/", headers: { a: 1 } }, "an object of strings: `a` is not a string"],
  [{ type: "http", url: "http://x/", headers: { "": "x" } }, "`executor.headers` must have names of letters"],
  [{ type: "http", url: "http://x/", headers: { "a b": "x" } }, 'like `x-api-key`, not "a b"'],
  [{ type: "http", url: "http://x/", headers: { "a\r\nb": "x" } }, 'not "a\\r\\nb"'],
  [{ type: "http", url: "http://x/", headers: { a: "x\r\nb: c" } }, "without line breaks"],
  [{ type: "http", url: "http://x/", headers: { a: "x\0" } }, "that of `a` is not"],
  [{ type: "http", url: "http://x/", headers: { a: "\u{1f600}" } }, "in Latin-1"],
  [{ type: "http", url: "http://x/", headers: { A: "x", a: "y" } }, "must have `a` only once"],
  [{ type: "http", url: "http://x/", headers: { Host: "x" } }, "must not set `Host`, which belongs to the"],
  [{ type: "http", url: "http://x/", headers: { "transfer-encoding": "chunked" } }, "must not set"],
  [{ type: "http", url: "http://x/", headers: { a: "x".repeat(9_000) } }, "at most 8192 characters in all"],
  [{ type: "tab-action" }, "`executor.url` must be an http or https URL"],
  [{ type: "tab-action", url: "http://x/?a=1" }, "`executor.url` must end before any `?` or `#`"],
  [{ type: "tab-action", url: "http://x/#a" }, "`executor.url` must end before any `?` or `#`"],
  [{ type: "tab-action", url: "http://a:b@x/" }, "must have no user or password"],
  [{ type: "tab-action", url: "http://x/", resolve: "fixed" }, "did you mean `executor.resolver`?"],
  [
    { type: "tab-action", url: "http://x/", resolver: "pinchtap" },
    '`executor.resolver` must be fixed or pinchtab, not "pinchtap": did you mean `pinchtab`?',
  ],
  [{ type: "tab-action", url: "http://x/", resolver: {} }, "must be fixed or pinchtab, not an object"],
  [
    { type: "tab-action", url: "http://x/", cacheSec: -1 },
    "`executor.cacheSec` must be a number of seconds from 0 to 3600, not -1",
  ],
  [
    { type: "tab-action", url: "http://x/", cacheSec: "5" },
    'must be a number of seconds from 0 to 3600, not "5"',
  ],
  [{ type: "tab-action", url: "http://x/", cacheSec: Number.NaN }, "must be a number of seconds"],
  [{ type: "chat" }, "`executor.url` must be an http or https URL"],
  [{ type: "chat", url: "http://x/?a=1" }, "`executor.url` must end before any `?` or `#`"],
  [{ type: "chat", baseUrl: "http://x/" }, "unknown field `executor.baseUrl`"],
  [{ type: "openai", model: "m" }, "`executor.baseUrl` must be an http or https URL"],
  [{ type: "openai", baseUrl: "http://x/" }, "`executor.model` must be a string that is not empty"],
  [{ ...OPENAI, model: " " }, "`executor.model` must be a string that is not empty"],
  [{ ...OPENAI, baseurl: "http://x/" }, "did you mean `executor.baseUrl`?"],
  [{ ...OPENAI, apiKey: "sk-1" }, "unknown field `executor.apiKey`: did you mean `executor.apiKeyEnv`?"],
  [
    { ...OPENAI, apiKeyEnv: "sk-secret" },
    "must be the name of an environment variable, like `OPENAI_API_KEY`",
  ],
  [{ ...OPENAI, apiKeyEnv: 7 }, "`executor.apiKeyEnv` must be the name of an environment variable"],
  [{ ...OPENAI, system: "" }, "`executor.system` must be a string that is not empty"],
  [{ ...OPENAI, temperature: 3 }, "`executor.temperature` must be a number from 0 to 2, not 3"],
  [{ ...OPENAI, maxTokens: 1.5 }, "`executor.maxTokens` must be an integer from 1 to 10000000, not 1.5"],
  [{ ...OPENAI, request: [] }, "`executor.request` must be an object"],
  [{ ...OPENAI, request: { messages: [] } }, "must not have `messages`, which Rota sets itself"],
  [{ ...OPENAI, request: { stream: false } }, "must not have `stream`, which Rota sets itself"],
  [{ ...OPENAI, headers: { a: 1 } }, "must be an object of strings: `a` is not a string"],
  [
    { type: "command" },
    '`executor.command` must be an array of strings, the program and its arguments, like ["',
  ],
  [{ type: "command", command: "ls -l" }, "`executor.command` must be an array of strings"],
  [{ type: "command", command: [] }, "`executor.command` must be an array of strings"],
  [{ type: "command", command: [""] }, "`executor.command` must be an array of strings"],
  [{ type: "command", command: ["ls", 1] }, "`executor.command` must be an array of strings"],
  [{ type: "command", command: ["ls", "a\0b"] }, "`executor.command` must have no NUL in it"],
  [{ type: "command", command: ["ls"], cwd: "" }, "`executor.cwd` must be the path of a folder, not"],
  [{ type: "command", command: ["ls"], cwd: "a\0" }, "`executor.cwd` must have no NUL in it"],
  [{ type: "command", command: ["ls"], env: ["A=1"] }, "`executor.env` must be an object of strings"],
  [
    { type: "command", command: ["ls"], passEnv: "HOME" },
    '`executor.passEnv` must be an array of names of environment variables, like ["OPENAI_API_KEY"]',
  ],
  [{ type: "command", command: ["ls"], passEnv: ["A=1"] }, "`executor.passEnv` must be an array of names"],
  [{ type: "command", command: ["ls"], env: { A: 1 } }, "an object of strings: `A` is not a string"],
  [
    { type: "command", command: ["ls"], env: { "A=B": "" } },
    'have names without `=`, like `API_URL`, not "A=B"',
  ],
  [{ type: "command", command: ["ls"], env: { A: "x\0" } }, "must have no NUL in it: `A` has"],
  [
    { type: "command", command: ["ls"], result: "jsn" },
    'be auto, json or text, not "jsn": did you mean `json`?',
  ],
  [{ type: "command", command: ["ls"], shell: true }, "unknown field `executor.shell`"],
  [{ type: "echo", url: "http://x/" }, "unknown field `executor.url`"],
  [
    null,
    '`executor` must be an object with a `type`, like {"type": "echo"}, or in a program a function, not null',
  ],
  ["echo", ', or in a program a function, not "echo"'],
  [[], ", or in a program a function, not an array"],
];

test.each(RIGHT)("takes %j, as the configuration does", (config) => {
  expect(createExecutor(config as never, { clock, environment: { KEY: "sk-1" } })).toBeTypeOf("function");
  expect(configSchema.shape.executors.parse({ action: config })).toEqual({ action: config });
});

test.each(WRONG)("refuses %j, as the configuration does", (config, message) => {
  expect(() => createExecutor(config as never, { clock })).toThrow(message);
  expect(configSchema.shape.executors.safeParse({ action: config }).success).toBe(false);
});

test("names the field by where it stands, and never shows a secret", () => {
  const create = (config: object) => () =>
    createExecutor(config as never, { clock, name: "agents.a.executor" });
  expect(create({ type: "http", url: "htp://secret" })).toThrow(
    new RotaError(
      "invalid_field",
      '`agents.a.executor.url` must be an http or https URL, like "http://127.0.0.1:9100/"',
      {
        details: { field: "agents.a.executor.url" },
      },
    ),
  );
  for (const wrong of [{ apiKeyEnv: "sk-secret" }, { system: ["secret"] }, { request: "secret" }]) {
    expect(create({ ...OPENAI, ...wrong })).toThrow(/^(?!.*secret)/s);
  }
  expect(create({ type: "command", command: ["ls"], env: { A: "secret\0" } })).toThrow(/^(?!.*secret)/s);
  for (const headers of [{ a: "secret\n" }, { a: "secret".repeat(9_000) }, ["secret"], "secret"]) {
    expect(create({ type: "http", url: "http://x/", headers })).toThrow(/^(?!.*secret)/s);
  }
});

test.each(hostileValues())("is not harmed by %s", (_what, value) => {
  for (const config of [value, { type: value }, { type: "http", url: value }]) {
    if (typeof config === "function") continue;
    expect(() => createExecutor(config as never, { clock })).toThrow();
  }
});

test("returns which URLs an executor calls", () => {
  expect(executorUrls({ type: "echo" })).toEqual([]);
  expect(executorUrls({ type: "http", url: "http://a/" })).toEqual(["http://a/"]);
  expect(executorUrls({ type: "tab-action", url: "http://b/", resolver: "pinchtab" })).toEqual(["http://b/"]);
  expect(executorUrls({ type: "chat", url: "http://c/" })).toEqual(["http://c/"]);
  expect(executorUrls({ type: "openai", baseUrl: "http://d/v1", model: "m" })).toEqual(["http://d/v1"]);
  expect(executorUrls({ type: "command", command: ["ls"] })).toEqual([]);
});

test("the key has to be in the variable that is named", () => {
  const config = { ...OPENAI, apiKeyEnv: "KEY" } as never;
  for (const environment of [{}, { KEY: "" }, { KEY: " \n" }, { OTHER: "sk-1" }]) {
    expect(() => createExecutor(config, { clock, environment })).toThrow(
      "`executor.apiKeyEnv` names the variable KEY, which is not set: set it, or leave `apiKeyEnv` out",
    );
  }
  for (const key of ["two words", "a\nb", "é", "\u{1f600}"]) {
    expect(() => createExecutor(config, { clock, environment: { KEY: key } })).toThrow(
      "`executor.apiKeyEnv` names the variable KEY, which holds no key: it has spaces, line breaks or letters",
    );
  }
});

test("a key that stands where the name of its variable belongs is not repeated", () => {
  const config = { ...OPENAI, apiKeyEnv: "sk_live_planted" } as never;
  expect(() => createExecutor(config, { clock, environment: {} })).toThrow(
    "`executor.apiKeyEnv` names the variable …, which is not set",
  );
});

test("a user may neither name programs nor variables", () => {
  const guard = new TargetGuard({ allow: [], clock });
  const create = (config: object) => () =>
    createExecutor(config as never, { clock, guard, environment: { KEY: "sk-1" } });
  expect(create({ type: "command", command: ["ls"] })).toThrow("`executor.type` must not be command");
  expect(create({ type: "comand" })).toThrow(
    'must be echo, http, tab-action, chat, openai or worker, not "comand"',
  );
  expect(create({ ...OPENAI, apiKeyEnv: "KEY" })).toThrow(
    "`executor.apiKeyEnv` is allowed only in the configuration file",
  );
  expect(create(OPENAI)()).toBeTypeOf("function");
});
