import { describe, expect, test } from "vitest";
import { RotaError } from "../errors.ts";
import { Redactor } from "../redactor.ts";
import { DEFAULT_RETRY_POLICY } from "../retry-policy.ts";
import { type ParsedTask, parseTaskInput, type TaskDefaults } from "./task-input.ts";

const NOW = Date.parse("2026-03-08T12:00:00Z");
const LANES = ["tasks", "main", "subagent", "cron"];

const defaults: TaskDefaults = {
  now: NOW,
  timeoutMs: 120_000,
  timeoutMaxMs: 600_000,
  retryPolicy: DEFAULT_RETRY_POLICY,
  hasLane: (lane) => LANES.includes(lane),
  maxQueuedOf: () => null,
  sessionMaxConcurrent: 1,
  redactor: new Redactor([]),
  laneOf: (agent) => (agent === "crawler" ? "subagent" : undefined),
};

function parse(input: unknown): ParsedTask {
  return parseTaskInput(input, defaults);
}

function refusal(input: unknown): { error: string; field: unknown } {
  try {
    parse(input);
  } catch (error) {
    expect(error).toBeInstanceOf(RotaError);
    const { code, message, details } = error as RotaError;
    expect(code).toBe("invalid_field");
    return { error: message, field: details?.["field"] };
  }
  throw new Error(`accepted ${JSON.stringify(input)}`);
}

describe("defaults by kind:", () => {
  test("an action has a deadline, no timeout and no retries", () => {
    const task = parse({ agentId: "a", action: "click", tabId: "t", params: { x: 1 } });
    expect(task).toMatchObject({
      agent: "a",
      lane: "tasks",
      priority: 2,
      runAt: null,
      deadline: null,
      deadlineAfterMs: 60_000,
      maxRetriesIfLost: 0,
    });
    expect(task.spec).toMatchObject({
      work: { kind: "action", action: "click", tabId: "t", params: { x: 1 } },
      retryPolicy: { maxRetries: 0, backoffMs: 1_000 },
      timeoutMs: null,
    });
  });

  test("actions in one tab have a concurrency key by default, other tasks have none", () => {
    const keyOf = (more: object) => parse({ agentId: "a", action: "click", ...more }).concurrencyKey;
    expect(keyOf({ tabId: "t" })).toBe("tab:t");
    expect(keyOf({ tabId: "t", concurrencyKey: null })).toBe("tab:t");
    expect(keyOf({ tabId: "t", concurrencyKey: "k" })).toBe("k");
    expect(keyOf({ tabId: "t", concurrencyKey: "" })).toBeNull();
    expect(keyOf({})).toBeNull();
    expect(keyOf({ tabId: "" })).toBeNull();
    expect(parse({ payload: 1 }).concurrencyKey).toBeNull();
    const longest = "ä 🎉".repeat(86).slice(0, 256);
    expect(parse({ payload: 1, concurrencyKey: longest }).concurrencyKey).toBe(longest);
  });

  test("any kind can be part of a session; by default none is", () => {
    expect(parse({ payload: 1, sessionKey: "user:42" }).session).toEqual({
      key: "user:42",
      maxConcurrent: 1,
    });
    expect(parse({ message: "hi" }).session).toBe(null);
  });

  test("an instruction is retried three times", () => {
    const task = parse({ instruction: "go", llmConfig: { model: "m" } });
    expect(task).toMatchObject({
      agent: "index",
      lane: "tasks",
      deadlineAfterMs: null,
      maxRetriesIfLost: 3,
    });
    expect(task.spec).toMatchObject({
      work: { kind: "instruction", instruction: "go", llmConfig: { model: "m" } },
      retryPolicy: DEFAULT_RETRY_POLICY,
      timeoutMs: 120_000,
    });
  });

  test("a message is retried only if its node was lost, once", () => {
    const task = parse({ message: "hi" });
    expect(task).toMatchObject({ lane: "main", maxRetriesIfLost: 1 });
    expect(task.spec.retryPolicy.maxRetries).toBe(0);
    expect(parse({ message: "hi", retryPolicy: { maxRetries: 0 } }).maxRetriesIfLost).toBe(0);
    expect(parse({ message: "hi", retryPolicy: { maxRetries: 4 } }).maxRetriesIfLost).toBe(4);
    expect(parse({ message: "hi", retryPolicy: { backoffMs: 5 } }).maxRetriesIfLost).toBe(1);
  });

  test("a payload may be any JSON, null included", () => {
    for (const payload of [null, 0, "", false, [], {}, { deep: [1, { a: null }] }]) {
      expect(parse({ payload }).spec.work).toEqual({ kind: "custom", payload });
    }
  });
});

test.each([
  [{ agentId: "x", lane: "cron" }, "cron"],
  [{ agentId: "crawler", lane: "cron" }, "cron"],
  [{ agentId: "crawler" }, "subagent"],
  [{ agentId: "x" }, "tasks"],
  [{ agentId: "x", lane: "no-such-lane" }, "main"],
  [{ agentId: "crawler", lane: "__proto__" }, "main"],
])("the lane of %j is %s", (fields, lane) => {
  expect(parse({ payload: 1, ...fields }).lane).toBe(lane);
});

test.each([
  [undefined, 2],
  ["critical", 0],
  ["high", 1],
  ["normal", 2],
  ["low", 3],
  [-7, -7],
  [12, 12],
])("priority %s is %i", (priority, number) => {
  expect(parse({ payload: 1, priority }).priority).toBe(number);
});

test("a task is not preemptible by default", () => {
  expect(parse({ payload: 1, preemptible: true })).toMatchObject({
    preemptible: true,
    spec: { preemptible: true },
  });
  for (const preemptible of [false, undefined]) {
    const task = parse({ payload: 1, preemptible });
    expect([task.preemptible, task.spec.preemptible]).toEqual([false, undefined]);
  }
});

test("times are RFC 3339 texts or Dates", () => {
  const task = parse({
    payload: 1,
    runAt: "2026-03-08T14:00:00+01:00",
    deadline: new Date("2026-03-08T13:00:00.250Z"),
  });
  expect(task.runAt).toBe(Date.parse("2026-03-08T13:00:00Z"));
  expect(task.deadline).toBe(Date.parse("2026-03-08T13:00:00.250Z"));
});

test("a deadline of its own takes the place of an action's default", () => {
  const task = parse({ agentId: "a", action: "click", deadline: "2026-03-08T12:00:05Z" });
  expect([task.deadline, task.deadlineAfterMs]).toEqual([NOW + 5_000, null]);
});

test("a start time in the past means at once", () => {
  expect(parse({ payload: 1, runAt: "2020-01-01T00:00:00Z" }).runAt).toBe(Date.UTC(2020, 0, 1));
});

test("later changes of the caller's object do not change the task", () => {
  const payload = { list: [1] };
  const task = parse({ payload });
  payload.list.push(2);
  expect(task.spec.work).toEqual({ kind: "custom", payload: { list: [1] } });
});

test("an undefined field is a field left out", () => {
  expect(parse({ payload: 1, deadline: undefined, mesage: undefined }).deadline).toBeNull();
});

describe("refuses, with the field and what to write instead:", () => {
  test.each([
    [undefined, undefined, "exactly one of `action`, `instruction`, `message`, `payload`"],
    [null, undefined, "must be an object"],
    ["hello", undefined, "must be an object"],
    [[], undefined, "must be an object"],
    [{}, undefined, "exactly one of `action`, `instruction`, `message`, `payload`; there is none"],
    [{ instruction: "a", message: "b" }, "message", "there are `instruction`, `message`"],
    [{ message: "b", payload: null }, "payload", "there are `message`, `payload`"],
    [{ action: "click" }, "agentId", "`agentId` is required for an `action`"],
    [{ agentId: "", payload: 1 }, "agentId", "1 to 128 characters of any script"],
    [{ agentId: " a", payload: 1 }, "agentId", "1 to 128 characters of any script"],
    [{ agentId: "x".repeat(129), payload: 1 }, "agentId", "1 to 128 characters of any script"],
    [{ agentId: ".", payload: 1 }, "agentId", "but not . or .. alone"],
    [{ agentId: "..", payload: 1 }, "agentId", "but not . or .. alone"],
    [{ agentId: 7, payload: 1 }, "agentId", "must be a string, not a number"],
    [{ agentId: "a\n", payload: 1 }, "agentId", "1 to 128 characters of any script"],
    [{ instruction: "" }, "instruction", "must be a string that is not empty"],
    [{ message: "  " }, "message", "must be a string that is not empty"],
    [{ message: 5 }, "message", "must be a string, not a number"],
    [{ message: null }, undefined, "exactly one of"],
    [{ agentId: "a", action: ["x"] }, "action", "must be a string, not an array"],
    [{ agentId: "a", action: "x", params: [] }, "params", "must be an object, not an array"],
    [{ agentId: "a", action: "x", tabId: 1 }, "tabId", "must be a string"],
    [{ agentId: "a", action: "x", tabId: "t".repeat(253) }, "tabId", "at most 252 characters"],
    [{ agentId: "a", action: "x", tabId: "t\0" }, "tabId", "without control characters"],
    [{ payload: 1, concurrencyKey: 1 }, "concurrencyKey", "must be a string"],
    [{ payload: 1, concurrencyKey: "k".repeat(257) }, "concurrencyKey", 'characters, or "" for none'],
    [{ payload: 1, concurrencyKey: "a\nb" }, "concurrencyKey", "without control characters"],
    [{ instruction: "x", params: {} }, "params", "`params` goes with `action`, not with `instruction`"],
    [{ message: "x", llmConfig: {} }, "llmConfig", "`llmConfig` goes with `instruction`, not with `message`"],
    [{ instruction: "x", llmConfig: "gpt" }, "llmConfig", "must be an object, not a string"],
    [{ payload: 1, metadata: [null] }, "metadata", "must be an object, not an array"],
    [{ payload: 1, priority: "urgent" }, "priority", "one of critical, high, normal, low"],
    [{ payload: 1, priority: "toString" }, "priority", "one of critical, high, normal, low"],
    [{ payload: 1, priority: 1.5 }, "priority", "must be an integer"],
    [{ payload: 1, priority: "1" }, "priority", "must be an integer"],
    [{ payload: 1, priority: 1e9 }, "priority", "from -1000000 to 1000000"],
    [{ payload: 1, timeout: 999 }, "timeout", "an integer of milliseconds from 1000 to 600000, not 999"],
    [
      { payload: 1, timeout: 600_001 },
      "timeout",
      "from 1000 to 600000, not 600001: `timeouts.maxMs` of the configuration sets the limit",
    ],
    [{ prompt: "hello" }, "prompt", "did you mean `message`?"],
    [{ payload: 1, delay: 5 }, "delay", "did you mean `runAt`?"],
    [{ payload: 1, retries: 5 }, "retries", "did you mean `retryPolicy`?"],
    [{ payload: 1, cron: "* * * * *" }, "cron", "a task runs once; send `schedule` to POST /v1/schedules"],
    [{ payload: 1, timeout: "5s" }, "timeout", 'not "5s"'],
    [{ payload: 1, timeout: "5000" }, "timeout", 'milliseconds from 1000 to 600000, not "5000"'],
    [{ payload: 1, deadline: "2026-03-08T11:59:59Z" }, "deadline", "in the past"],
    [{ payload: 1, deadline: "2026-03-08T12:00:00Z" }, "deadline", "in the past"],
    [
      { payload: 1, deadline: "tomorrow" },
      "deadline",
      'must be a time like "2030-01-31T09:00:00Z" (RFC 3339 with a zone, ',
    ],
    [{ payload: 1, deadline: "2026-03-09T12:00:00" }, "deadline", "with a zone"],
    [{ payload: 1, deadline: 1_800_000_000 }, "deadline", "RFC 3339"],
    [{ payload: 1, deadline: new Date(Number.NaN) }, "deadline", "is an invalid Date"],
    [{ payload: 1, runAt: "9999-12-31T23:59:59-23:59" }, "runAt", "years 0000 to 9999 of UTC"],
    [{ payload: 1, deadline: "9999-12-31T23:59:59-23:59" }, "deadline", "years 0000 to 9999 of UTC"],
    [
      { payload: 1, runAt: "2026-03-10T00:00:00Z", deadline: "2026-03-10T00:00:00Z" },
      "deadline",
      "must be after `runAt`",
    ],
    [{ payload: 1, preemptible: "yes" }, "preemptible", '`preemptible` must be true or false, not "yes"'],
    [{ payload: 1, preemptable: true }, "preemptable", "did you mean `preemptible`?"],
    [{ payload: 1, retryPolicy: 3 }, "retryPolicy", "must be an object"],
    [{ payload: 1, retryPolicy: { maxRetries: 101 } }, "retryPolicy.maxRetries", "from 0 to 100"],
    [{ payload: 1, retryPolicy: { backoffMs: -1 } }, "retryPolicy.backoffMs", "from 0 to"],
    [
      { payload: 1, retryPolicy: { backoffMultiplier: 0.5 } },
      "retryPolicy.backoffMultiplier",
      "from 1 to 10",
    ],
    [{ payload: 1, retryPolicy: { jitter: 2 } }, "retryPolicy.jitter", "from 0 to 1"],
    [{ payload: 1, retryPolicy: { retries: 2 } }, "retryPolicy.retries", "`retryPolicy.maxRetries`?"],
    [{ mesage: "x" }, "mesage", "unknown field `mesage`: did you mean `message`?"],
    [{ payload: 1, dependsOn: "tsk_1" }, "dependsOn", "`dependsOn` must be an array of the ids of tasks"],
    [{ payload: 1, dependsOn: [7] }, "dependsOn", "`dependsOn` must be an array of the ids of tasks"],
    [
      { payload: 1, dependsOn: Array.from({ length: 101 }, (_, n) => `tsk_${n}`) },
      "dependsOn",
      "may name 100: let one task depend on a group of them, and this one on that task",
    ],
    [{ payload: 1, key: "a" }, "key", "unknown field `key`"],
    [{ payload: 1, sessionKey: ".." }, "sessionKey", "`sessionKey` must be 1 to 256 characters"],
    [{ payload: 1, sesionKey: "s" }, "sesionKey", "did you mean `sessionKey`?"],
    [{ payload: 1, idempotencyKey: " s" }, "idempotencyKey", "`idempotencyKey` must be 1 to 128 characters"],
    [{ payload: 1, zzzzzzzzzzzzzz: 1 }, "zzzzzzzzzzzzzz", "known are `action`, `tabId`"],
  ])("%j", (input, field, message) => {
    const refused = refusal(input);
    expect(refused.error).toContain(message);
    expect(refused.field).toBe(field);
  });

  test("a payload that contains itself", () => {
    const payload: Record<string, unknown> = {};
    payload["self"] = payload;
    expect(refusal({ payload }).error).toBe("the task is not JSON: Converting circular structure to JSON");
  });

  test("a payload that JSON has no words for", () => {
    expect(refusal({ payload: 10n }).error).toBe(
      "the task is not JSON: Do not know how to serialize a BigInt",
    );
    expect(refusal({ payload: () => {} }).error).toBe("`payload` is not JSON: it is a function");
  });

  test("more than a mebibyte", () => {
    expect(refusal({ payload: "x".repeat(1_048_576) }).error).toContain("larger than 1048576 bytes");
    expect(parse({ payload: "x".repeat(1_048_000) }).agent).toBe("index");
    expect(refusal({ payload: 1, metadata: { a: "x".repeat(1_048_576) } }).error).toContain("larger than");
  });

  test("but not the largest body with the fields that Rota adds to a message or a copy", () => {
    const message = "x".repeat(1_048_576 - '{"message":""}'.length);
    const added = { sessionKey: "user:42", retryPolicy: { maxRetries: 3 }, timeout: 60_000 };
    expect(parse({ message, ...added }).spec.work).toEqual({ kind: "message", message });
    expect(refusal({ message: `${message}x`, ...added }).error).toContain("larger than 1048576 bytes");
  });

  test.each([501, 5_000, 300_000])("nested %d levels deep", (depth) => {
    const payload = JSON.parse(`${"[".repeat(depth - 1)}${"]".repeat(depth - 1)}`);
    expect(refusal({ payload }).error).toBe("the task is nested deeper than 500 levels: flatten it");
  });

  test("but not 500", () => {
    const payload = JSON.parse(`${"[".repeat(499)}${"]".repeat(499)}`);
    expect(parse({ payload }).spec.work).toEqual({ kind: "custom", payload });
  });

  test("an own `__proto__` like any other unknown field", () => {
    expect(refusal(JSON.parse('{"payload":1,"__proto__":{"agentId":"x"}}')).error).toContain("unknown field");
  });
});

describe("null", () => {
  test("counts as left out, except for `payload`", () => {
    const nulls = {
      agentId: null,
      priority: null,
      deadline: null,
      timeout: null,
      runAt: null,
      retryPolicy: null,
      callbackUrl: null,
      webhookUrl: null,
      dependsOn: null,
      idempotencyKey: null,
      lane: null,
      sessionKey: null,
      preemptible: null,
      metadata: null,
      action: null,
      instruction: null,
    };
    expect(parse({ message: "hello", ...nulls })).toEqual(parse({ message: "hello" }));
    expect(parse({ message: "hello", retryPolicy: { maxRetries: null, backoffMs: 5 } })).toEqual(
      parse({ message: "hello", retryPolicy: { backoffMs: 5 } }),
    );
    expect(parse({ payload: null, message: null }).spec.work).toEqual({ kind: "custom", payload: null });
    expect(parse({ payload: { inner: null } }).spec.work).toEqual({
      kind: "custom",
      payload: { inner: null },
    });
    expect(refusal({ payload: null, message: "hello" }).error).toContain("exactly one of");
    expect(refusal({ message: null }).error).toContain("exactly one of");
    expect(refusal({ message: "hello", mesage: null }).error).toContain("did you mean `message`?");
  });

  test("makes no difference for an idempotency key", () => {
    const key = { message: "hello", idempotencyKey: "a" };
    expect(parse({ ...key, lane: null }).idempotency).toEqual(parse(key).idempotency);
  });
});

test("a number that is too large for JSON is not a field that was left out", () => {
  for (const field of ["agentId", "timeout", "dependsOn", "concurrencyKey"]) {
    expect(() => parse({ message: "x", [field]: Number.POSITIVE_INFINITY })).toThrow(
      `\`${field}\` must be a value that JSON can hold`,
    );
  }
  expect(() => parse({ message: "x", retryPolicy: { jitter: Number.POSITIVE_INFINITY } })).toThrow(
    "`retryPolicy.jitter`",
  );
  expect(parse({ payload: Number.POSITIVE_INFINITY }).spec.work).toEqual({ kind: "custom", payload: null });
});
