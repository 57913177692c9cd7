import { expect, test } from "vitest";
import { parseScheduleChanges } from "./schedule-changes-input.ts";

function parse(input: unknown) {
  return parseScheduleChanges(input, { timeoutMaxMs: 600_000 });
}

test("only the given fields change", () => {
  expect(parse({})).toEqual({ fields: {}, status: undefined, schedule: undefined, tz: undefined });
  expect(parse({ name: "x", retry: { max_retries: 1 }, useful_for: 5, tz: "utc" })).toEqual({
    fields: { name: "x", retry: { maxRetries: 1 }, usefulForMs: 5_000 },
    status: undefined,
    schedule: undefined,
    tz: "UTC",
  });
});

test("null resets an optional field", () => {
  const nothing = {
    ...{ name: null, conversation_id: null, session_key: null, useful_for: null, timeout: null },
    ...{ lane: null, priority: null, metadata: null, callback_url: null, max_runs: null, until: null },
    ...{ pause_after_failures: null },
  };
  expect(parse(nothing).fields).toEqual({
    name: null,
    conversationId: null,
    sessionKey: null,
    usefulForMs: null,
    timeoutMs: null,
    lane: null,
    priority: null,
    metadata: null,
    callbackUrl: null,
    maxRuns: null,
    untilAt: null,
    pauseAfterFailures: null,
  });
});

test.each([
  [{ message: "x" }, { kind: "message", message: "x" }],
  [
    { instruction: "x", message: null, payload: null },
    { kind: "instruction", instruction: "x" },
  ],
  [{ payload: 0 }, { kind: "custom", payload: 0 }],
])("%j replaces the earlier work of the schedule", (input, work) => {
  expect(parse(input).fields).toEqual({ work });
});

test.each([
  [{ status: "active" }, "active"],
  [{ status: "paused" }, "paused"],
  [{ enabled: true }, "active"],
  [{ enabled: false }, "paused"],
  [{ enabled: false, status: "paused" }, "paused"],
])("%j makes it %s", (input, status) => {
  expect(parse(input).status).toBe(status);
});

test.each([
  [undefined, "schedule", "must be an object"],
  [[], "schedule", "must be an object"],
  [{ status: "completed" }, "status", 'must be active or paused, not "completed"'],
  [
    { enabled: true, status: "paused" },
    "enabled",
    "`enabled` true and `status` paused contradict each other",
  ],
  [{ tz: "Mars" }, "tz", "IANA time zone"],
  [{ message: null }, "message", "to remove `message`, set `instruction` or `payload` in the same request"],
  [{ payload: null }, "payload", "to remove `payload`, set `message` or `instruction`"],
  [{ message: "x", payload: 1 }, "payload", "there are `message`, `payload`"],
  [{ max_runs: 0 }, "max_runs", "an integer from 1"],
  [{ message: "" }, "message", "not empty"],
  [{ schdule: null }, "schdule", "did you mean `schedule`?"],
  [{ phrase: "hourly" }, "phrase", "unknown field `phrase`"],
  [{ next_fire_at: 1 }, "next_fire_at", "unknown field `next_fire_at`"],
] as const)("%j is refused with the field that is wrong: %s", (input, field, sentence) => {
  expect(() => parse(input)).toThrow(
    expect.objectContaining({
      code: "invalid_field",
      message: expect.stringContaining(sentence),
      details: { field },
    }),
  );
});
