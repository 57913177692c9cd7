import { describe, expect, test } from "vitest";
import { ACCEPTED_FORMS } from "./accepted-forms.ts";
import { parseNewSchedule } from "./new-schedule-input.ts";

const NOW = Date.UTC(2026, 4, 8, 12);
const WHEN = { now: NOW, tz: "Europe/Berlin", timeoutMaxMs: 600_000 };
const LEAST = { schedule: "every monday at 9am", message: "Sum up last week." };

function parse(input: unknown) {
  return parseNewSchedule(input, WHEN);
}

test("fields that are left out get their defaults", () => {
  expect(parse(LEAST)).toEqual({
    name: null,
    agent: "index",
    work: { kind: "message", message: "Sum up last week." },
    phrase: "every monday at 9am",
    rule: { kind: "weeks", every: 1, on: ["Mon"], at: "09:00", tz: "Europe/Berlin" },
    conversationId: null,
    sessionKey: null,
    postToSession: false,
    deleteAfterRun: false,
    retryPolicy: {
      maxRetries: 3,
      backoffMs: 2_000,
      backoffMultiplier: 2,
      maxBackoffMs: 30_000,
      jitter: 0.25,
    },
    overlap: "skip",
    catchUp: "one",
    usefulForMs: null,
    timeoutMs: null,
    lane: null,
    priority: null,
    metadata: null,
    callbackUrl: null,
    maxRuns: null,
    untilAt: null,
    pauseAfterFailures: null,
    enabled: true,
  });
});

test("given fields are kept", () => {
  const input = {
    schedule: "in 1 hour",
    message: "Look again.",
    agent: "research",
    name: "the deploy",
    tz: "asia/tokyo",
    conversation_id: "c-1",
    session_key: "user:42",
    enabled: false,
    delete_after_run: true,
    retry: { max_retries: 0, base_delay_ms: 5, max_delay_ms: 5 },
    overlap: "queue",
    catch_up: "all",
    useful_for: 90,
    timeout: 1_000,
    lane: "team",
    priority: "high",
    metadata: { of: ["mine"] },
    callback_url: "https://example.com/done",
    max_runs: 3,
    until: "2026-05-08T15:00:00+02:00",
    pause_after_failures: 0,
  };
  expect(parse(input)).toMatchObject({
    work: { kind: "message", message: "Look again." },
    lane: "team",
    priority: 1,
    metadata: { of: ["mine"] },
    callbackUrl: "https://example.com/done",
    maxRuns: 3,
    untilAt: Date.UTC(2026, 4, 8, 13),
    pauseAfterFailures: 0,
    agent: "research",
    name: "the deploy",
    rule: { kind: "once", atMs: NOW + 3_600_000, tz: "Asia/Tokyo" },
    conversationId: "c-1",
    sessionKey: "user:42",
    enabled: false,
    deleteAfterRun: true,
    retryPolicy: { maxRetries: 0, backoffMs: 5, maxBackoffMs: 5, backoffMultiplier: 2, jitter: 0.25 },
    overlap: "queue",
    catchUp: "all",
    usefulForMs: 90_000,
    timeoutMs: 1_000,
  });
});

test("null counts as left out for optional fields", () => {
  const nothing = {
    ...{ name: null, conversation_id: null, session_key: null, useful_for: null, timeout: null },
    ...{ lane: null, priority: null, metadata: null, callback_url: null, max_runs: null, until: null },
    ...{ pause_after_failures: null, instruction: null },
  };
  expect(parse({ ...LEAST, ...nothing })).toEqual(parse(LEAST));
});

test.each([
  [{ instruction: "Sum up." }, { kind: "instruction", instruction: "Sum up." }],
  [
    { instruction: "Sum up.", message: null },
    { kind: "instruction", instruction: "Sum up." },
  ],
  [{ payload: { a: [1] } }, { kind: "custom", payload: { a: [1] } }],
  [{ payload: null }, { kind: "custom", payload: null }],
  [{ payload: { when: new Date(0) } }, { kind: "custom", payload: { when: "1970-01-01T00:00:00.000Z" } }],
])("%j is what the agent gets instead of a message", (input, work) => {
  expect(parse({ schedule: "hourly", ...input }).work).toEqual(work);
});

test("JSON input is copied", () => {
  const [payload, metadata] = [{ n: 1 }, { n: 1 }];
  const parsed = parse({ schedule: "hourly", payload, metadata });
  payload.n = 2;
  metadata.n = 2;
  expect(parsed).toMatchObject({ work: { payload: { n: 1 } }, metadata: { n: 1 } });
});

test("a conversation may be an integer, and `until` may be seconds, a text or a Date", () => {
  expect(parse({ ...LEAST, conversation_id: 42 }).conversationId).toBe("42");
  const moment = Date.UTC(2026, 5, 1);
  for (const until of [moment / 1_000, new Date(moment).toISOString(), new Date(moment)]) {
    expect(parse({ ...LEAST, until }).untilAt).toBe(moment);
  }
});

test("an object is shown in its canonical form, a phrase as it was written, but on one line", () => {
  expect(parse({ ...LEAST, schedule: { kind: "every", everyMs: 1_800_000 } }).phrase).toBe(
    "every 30 minutes",
  );
  expect(parse({ ...LEAST, schedule: "  EVERY\n  30min " }).phrase).toBe("EVERY 30min");
});

describe("the zone", () => {
  const cron = { kind: "cron", expr: "0 9 * * *" };

  test.each([
    [{ schedule: cron }, "Europe/Berlin"],
    [{ schedule: cron, tz: "UTC" }, "UTC"],
    [{ schedule: { ...cron, tz: "europe/rome" } }, "Europe/Rome"],
    [{ schedule: { ...cron, tz: "europe/rome" }, tz: "EUROPE/ROME" }, "Europe/Rome"],
  ])("of %j is %s", (input, tz) => {
    expect(parse({ ...LEAST, ...input }).rule.tz).toBe(tz);
  });

  test("that is given twice must be the same zone", () => {
    expect(() => parse({ ...LEAST, schedule: { ...cron, tz: "Europe/Rome" }, tz: "UTC" })).toThrow(
      "`tz` is UTC and `schedule.tz` is Europe/Rome: leave one of them out, or write the same twice",
    );
  });
});

test("if one of the two waits between retries is given, the other is adjusted to it", () => {
  const waits = (retry: object) => {
    const { backoffMs, maxBackoffMs } = parse({ ...LEAST, retry }).retryPolicy;
    return [backoffMs, maxBackoffMs];
  };
  expect(waits({ base_delay_ms: 60_000 })).toEqual([60_000, 60_000]);
  expect(waits({ max_delay_ms: 100 })).toEqual([100, 100]);
  expect(waits({ base_delay_ms: 10 })).toEqual([10, 30_000]);
});

function nested(depth: number): unknown {
  let value: unknown = 1;
  for (let level = 0; level < depth; level++) value = [value];
  return value;
}

const BAD: readonly (readonly [input: unknown, field: string, sentence: string])[] = [
  [undefined, "schedule", 'a schedule takes an object, like {"schedule":'],
  [[LEAST], "schedule", "a schedule takes an object"],
  ["every day", "schedule", "a schedule takes an object"],
  [{ message: "x" }, "schedule", "must be a phrase"],
  [
    { schedule: "hourly" },
    "message",
    "a schedule needs exactly one of `message`, `instruction`, `payload`; there is none",
  ],
  [{ ...LEAST, message: null }, "message", "there is none"],
  [{ ...LEAST, instruction: "x" }, "instruction", "there are `message`, `instruction`"],
  [{ ...LEAST, payload: null }, "payload", "there are `message`, `payload`"],
  [{ schedule: "hourly", instruction: " " }, "instruction", "must be a string that is not empty"],
  [{ schedule: "hourly", instruction: "a\0b" }, "instruction", "without NUL"],
  [{ schedule: "hourly", payload: () => 1 }, "payload", "`payload` is not JSON: it is a function"],
  [{ schedule: "hourly", payload: 1n }, "payload", "`payload` is not JSON"],
  [{ schedule: "hourly", payload: "x".repeat(1_048_576) }, "payload", "1048576 bytes of JSON at most"],
  [{ schedule: "hourly", payload: nested(501) }, "payload", "nested deeper than 500 levels"],
  [{ ...LEAST, metadata: [] }, "metadata", "must be an object, not an array"],
  [{ ...LEAST, lane: " " }, "lane", "the name of a lane"],
  [{ ...LEAST, priority: "soon" }, "priority", "must be an integer, lower first, or one of critical"],
  [{ ...LEAST, callback_url: "ftp://x" }, "callback_url", "`callback_url` must be an http or https URL"],
  [{ ...LEAST, callback_url: "https://a:b@x" }, "callback_url", "no user or password"],
  [{ ...LEAST, max_runs: 0 }, "max_runs", "an integer from 1"],
  [{ ...LEAST, max_runs: 1.5 }, "max_runs", "an integer from 1"],
  [{ ...LEAST, pause_after_failures: -1 }, "pause_after_failures", "an integer from 0"],
  [
    { ...LEAST, until: "tomorrow" },
    "until",
    'seconds since 1970, or an RFC 3339 time like "2030-01-31T09:00:00Z"',
  ],
  [{ ...LEAST, until: Date.UTC(2030, 0) }, "until", "seconds since 1970"],
  [{ ...LEAST, until: NOW / 1_000 }, "until", "`until` is in the past"],
  [{ ...LEAST, until: NOW / 1_000 + 60 }, "until", '`until` is before "every Mon at 09:00" is due'],
  [{ ...LEAST, schedule: "in 2 hours", until: NOW / 1_000 + 60 }, "until", 'before "in 2 hours" is due'],
  [{ ...LEAST, maxRuns: 1 }, "maxRuns", "did you mean `max_runs`?"],
  [{ ...LEAST, message: " \n" }, "message", "must be a string that is not empty"],
  [{ ...LEAST, message: 5 }, "message", "must be a string"],
  [{ ...LEAST, message: "a\0b" }, "message", "without NUL"],
  [{ ...LEAST, message: "half \ud83d" }, "message", "unpaired surrogates"],
  [{ ...LEAST, message: "x".repeat(1_048_576) }, "message", "1048576 bytes of JSON at most"],
  [{ ...LEAST, agent: "two\nlines" }, "agent", "`agent` must be 1 to 128 characters"],
  [{ ...LEAST, name: "" }, "name", "1 to 200 characters"],
  [{ ...LEAST, name: "🦉".repeat(201) }, "name", "1 to 200 characters"],
  [{ ...LEAST, name: "two\nlines" }, "name", "without control characters"],
  [{ ...LEAST, name: 5 }, "name", "not 5"],
  [{ ...LEAST, tz: "Berlin" }, "tz", "did you mean Europe/Berlin?"],
  [{ ...LEAST, conversation_id: "x".repeat(257) }, "conversation_id", "1 to 256 characters"],
  [{ ...LEAST, session_key: ".." }, "session_key", "`session_key` must be 1 to 256 characters"],
  [{ ...LEAST, enabled: "yes" }, "enabled", 'true or false, not "yes"'],
  [{ ...LEAST, delete_after_run: 1 }, "delete_after_run", "true or false, not 1"],
  [
    { ...LEAST, delete_after_run: true },
    "delete_after_run",
    'is for a schedule that is due once, and "every Mon at 09:00" recurs: set it to false',
  ],
  [{ ...LEAST, retry: 3 }, "retry", "must be an object"],
  [{ ...LEAST, retry: { maxRetries: 3 } }, "retry.maxRetries", "did you mean `retry.max_retries`?"],
  [{ ...LEAST, retry: { max_retries: 101 } }, "retry.max_retries", "from 0 to 100, not 101"],
  [{ ...LEAST, retry: { base_delay_ms: -1 } }, "retry.base_delay_ms", "an integer of milliseconds from 0"],
  [{ ...LEAST, retry: { base_delay_ms: 9, max_delay_ms: 8 } }, "retry.max_delay_ms", "8 is less than 9"],
  [{ ...LEAST, overlap: "que" }, "overlap", "must be skip, queue, replace or allow"],
  [{ ...LEAST, catch_up: "last" }, "catch_up", "must be one, none or all"],
  [{ ...LEAST, useful_for: 0 }, "useful_for", "an integer of seconds from 1"],
  [{ ...LEAST, useful_for: "1h" }, "useful_for", 'not "1h"'],
  [{ ...LEAST, timeout: 999 }, "timeout", "an integer of milliseconds from 1000 to 600000"],
  [{ ...LEAST, timeout: 600_001 }, "timeout", "from 1000 to 600000"],
  [{ ...LEAST, status: "paused" }, "status", "unknown field `status`"],
  [{ ...LEAST, sessionKey: "k" }, "sessionKey", "did you mean `session_key`?"],
  [{ ...LEAST, catchUp: "one" }, "catchUp", "did you mean `catch_up`?"],
  [{ ...LEAST, agentId: "a" }, "agentId", "did you mean `agent`?"],
];

test.each(BAD)("%o is refused with the field that is wrong: %s", (input, field, sentence) => {
  expect(() => parse(input)).toThrow(
    expect.objectContaining({
      code: "invalid_field",
      message: expect.stringContaining(sentence),
      details: expect.objectContaining({ field }),
    }),
  );
});

test("a phrase that is not understood is refused with all that are", () => {
  expect(() => parse({ ...LEAST, schedule: "now and then" })).toThrow(
    expect.objectContaining({
      details: { field: "schedule", accepted: ACCEPTED_FORMS.map(({ form }) => form) },
    }),
  );
});
