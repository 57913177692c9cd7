import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { newFolder } from "../../../test/end-to-end/server-process.ts";
import { taskInput } from "./submit-input.ts";

const NOW = Date.parse("2026-03-08T12:00:00Z");

describe("flags", () => {
  test("make the task that they name", async () => {
    const flags = {
      agent: "a",
      action: "click",
      tab: "t1",
      ref: "e14",
      selector: "#b",
      params: '{"x":1}',
      priority: "5",
      deadline: "10m",
      timeout: "30s",
      runAt: "2030-01-01T00:00:00Z",
      lane: "subagent",
      concurrencyKey: "",
      retries: "2",
      callback: "https://example.com/",
      preemptible: true as const,
      metadata: '{"user":42}',
    };
    expect(await taskInput(flags, NOW)).toEqual({
      agentId: "a",
      action: "click",
      tabId: "t1",
      ref: "e14",
      selector: "#b",
      params: { x: 1 },
      priority: 5,
      deadline: "2026-03-08T12:10:00.000Z",
      timeout: 30_000,
      runAt: "2030-01-01T00:00:00Z",
      lane: "subagent",
      concurrencyKey: "",
      retryPolicy: { maxRetries: 2 },
      callbackUrl: "https://example.com/",
      preemptible: true,
      metadata: { user: 42 },
    });
    expect(await taskInput({ payload: "null" }, NOW)).toEqual({ payload: null });
    expect(await taskInput({ message: "" }, NOW)).toEqual({ message: "" });
  });

  test("count over what a file says", async () => {
    const file = join(newFolder(), "task.json");
    writeFileSync(file, '\ufeff{"message":"hello","priority":"low"}');
    expect(await taskInput({ file, priority: "high" }, NOW)).toEqual({ message: "hello", priority: "high" });
  });

  test.each([
    ["[]", "must hold one task"],
    ["{", "is not JSON"],
  ])("a file with %s is refused", async (content, sentence) => {
    const file = join(newFolder(), "task.json");
    writeFileSync(file, content);
    await expect(taskInput({ file }, NOW)).rejects.toThrow(sentence);
    await expect(taskInput({ file: `${file}.not` }, NOW)).rejects.toThrow("there is no such file");
  });
});
