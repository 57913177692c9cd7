import { describe, expect, test } from "vitest";
import type { RotaEvent } from "../../../../src/client/index.ts";
import { glyphOfEvent, textOfEvent, wordOf } from "./event-text.ts";

const EVENT: RotaEvent = {
  seq: 7,
  type: "task.started",
  tenantId: "default",
  taskId: "tsk_1",
  agentId: "research",
  lane: "main",
  state: "running",
  timestamp: "2026-03-08T12:00:00.000Z",
  attempt: 2,
};

describe("the text of an event", () => {
  test.each<[Partial<RotaEvent>, string]>([
    [{}, "attempt 2"],
    [{ type: "task.failed", error: "it broke" }, "it broke"],
    [{ type: "task.progress", progress: { step: 3 } }, '{"step":3}'],
    [{ type: "task.completed", result: "all of it" }, "all of it"],
    [{ type: "batch.completed", counts: { done: 1_204, failed: 2 } }, "1\u202f204 done, 2 failed"],
  ])("%o is %s", (changes, text) => {
    expect(textOfEvent({ ...EVENT, ...changes })).toBe(text);
  });

  test("is never longer than a line", () => {
    expect(textOfEvent({ ...EVENT, result: "x".repeat(5_000) })).toHaveLength(200);
  });
});

test("a retry has a glyph of its own, and a batch is called one", () => {
  expect(glyphOfEvent({ type: "task.retrying", state: "delayed" })).toBe("retry");
  expect([wordOf({ type: "task.created" }), wordOf({ type: "batch.completed" })]).toEqual([
    "created",
    "batch completed",
  ]);
});
