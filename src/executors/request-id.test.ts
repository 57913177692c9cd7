import { expect, test } from "vitest";
import { serve } from "../../test/support/http-server.ts";
import { runnable } from "../../test/support/run-executor.ts";
import type { ExecutorConfig } from "../model/executor-config.ts";
import type { Task } from "../model/task.ts";

const message: Partial<Task> = { kind: "message", message: "hello" };
const action: Partial<Task> = { kind: "action", action: "click", tabId: "t" };
const completion = { choices: [{ message: { content: "hi" }, finish_reason: "stop" }] };

test.each<[string, (url: string) => ExecutorConfig, Partial<Task>]>([
  ["http", (url) => ({ type: "http", url, headers: { "X-Request-ID": "of the configuration" } }), message],
  ["chat", (url) => ({ type: "chat", url }), message],
  ["openai", (url) => ({ type: "openai", baseUrl: url, model: "m" }), message],
  ["tab-action", (url) => ({ type: "tab-action", url }), action],
])("%s calls with the id of the run", async (_type, configOf, task) => {
  const seen: unknown[] = [];
  const url = await serve(({ headers }, response) => {
    seen.push(headers["x-request-id"]);
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(completion));
  });
  const { run } = runnable({ ...configOf(url) });
  await run({ ...task, requestId: "req_7" });
  expect(seen).toEqual(["req_7"]);
});

test("a call for a task that is no run has no such id of Rota's own", async () => {
  const url = await serve(({ headers }, response) => response.end(JSON.stringify(headers)));
  expect(await runnable({ type: "http", url }).run(message)).not.toHaveProperty("x-request-id");
});
