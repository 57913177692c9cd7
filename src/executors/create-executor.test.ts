import { expect, test } from "vitest";
import type { Task } from "../model/task.ts";
import { createExecutor } from "./create-executor.ts";
import type { ExecutorContext } from "./executor.ts";

const now = () => 0;

function echoOf(task: Partial<Task>): unknown {
  return createExecutor({ type: "echo" }, { now })(task as Task, {} as ExecutorContext);
}

test("echo answers its input", () => {
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
  expect(createExecutor(handler, { now })).toBe(handler);
});

test.each([
  [{ type: "htpp", url: "http://x" }, 'unknown executor type "htpp": did you mean `http`?'],
  [{ type: "http" }, "`url` must be an http or https URL"],
  [{ type: "http", url: "ftp://x/" }, "`url` must be an http or https URL"],
  [{ type: "http", url: "not a url" }, "`url` must be an http or https URL"],
  [{ type: "http", url: "http://user:secret@x/" }, "`url` must have no user or password in it"],
  [{ type: "http", url: "https://token@x/" }, "write them as an `authorization` header in `headers`"],
  [{ type: "http", url: "http://x/", header: {} }, "did you mean `headers`?"],
  [{ type: "echo", url: "http://x/" }, "unknown field `url`"],
  [null, "must be a function or an object"],
  ["echo", "must be a function or an object"],
])("refuses %j", (config, message) => {
  expect(() => createExecutor(config as never, { now })).toThrow(message);
});
