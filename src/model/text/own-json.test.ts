import { describe, expect, test, vi } from "vitest";
import { isObject, withoutNulls } from "../input/field-checks.ts";
import { JSON_DEPTH_MAX, parseTaskInput, TASK_BYTES_MAX, type TaskDefaults } from "../input/task-input.ts";
import { jsonValue } from "../json-value.ts";
import { Redactor } from "../redactor.ts";
import { keepOwn, ownLength, parseOwnJson } from "./own-json.ts";

const DEFAULTS: TaskDefaults = {
  now: 0,
  timeoutMs: 120_000,
  timeoutMaxMs: 600_000,
  retryPolicy: { maxRetries: 3, backoffMs: 1, backoffMultiplier: 1, maxBackoffMs: 1, jitter: 0 },
  hasLane: () => true,
  laneOf: () => undefined,
  maxQueuedOf: () => null,
  sessionMaxConcurrent: 1,
  redactor: new Redactor([]),
};

function own(text: string): Readonly<Record<string, unknown>> {
  const value = parseOwnJson(text, JSON_DEPTH_MAX);
  if (!isObject(value)) throw new Error("It is an object.");
  return value;
}

/** How often something is written as JSON or parsed from it. */
function countPasses(work: () => void): number {
  const spies = [vi.spyOn(JSON, "stringify"), vi.spyOn(JSON, "parse")];
  try {
    work();
    return spies.reduce((sum, { mock }) => sum + mock.calls.length, 0);
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
}

describe("a value parsed from JSON", () => {
  test("is remembered with its length, also as a part of another value", () => {
    const value = own('{"a":1,"b":null}');
    expect(ownLength(value)).toBe(16);
    expect(ownLength(withoutNulls(value))).toBe(16);
    expect(ownLength(keepOwn(value, { ...value, c: 2 }))).toBe(16);
    expect(ownLength(keepOwn({}, { a: 1 }))).toBeUndefined();
  });

  test("is not remembered if it is nested too deep: then it is checked in full", () => {
    const deep = `{"payload":${"[".repeat(JSON_DEPTH_MAX)}${"]".repeat(JSON_DEPTH_MAX)}}`;
    expect(ownLength(own(deep))).toBeUndefined();
    expect(() => parseTaskInput(own(deep), DEFAULTS)).toThrow(/nested deeper than 500 levels/);
  });

  test("becomes a task without being copied or serialized", () => {
    const input = own(JSON.stringify({ payload: { a: Array(20_000).fill("x") } }));
    let task: ReturnType<typeof parseTaskInput> | undefined;
    expect(
      countPasses(() => {
        task = parseTaskInput(input, DEFAULTS);
      }),
    ).toBe(0);
    expect(task?.spec.work).toEqual({ kind: "custom", payload: input["payload"] });
  });

  test("is serialized once if it is large, to check its size", () => {
    const input = own(JSON.stringify({ payload: "x".repeat(300_000), metadata: { a: 1 } }));
    expect(countPasses(() => parseTaskInput(input, DEFAULTS))).toBe(1);
  });

  test("may be as large as the limit, although its defaults are stored with it", () => {
    const text = (length: number) => JSON.stringify({ payload: "x".repeat(length) });
    const largest = TASK_BYTES_MAX - text(0).length;
    expect(parseTaskInput(own(text(largest)), DEFAULTS).agent).toBe("index");
    expect(() => parseTaskInput(own(text(largest + 1)), DEFAULTS)).toThrow(/larger than 1048576 bytes/);
  });

  test("is refused if its numbers grow beyond the limit", () => {
    const input = own(
      `{"payload":[${Array(TASK_BYTES_MAX / 8)
        .fill("1e20")
        .join(",")}]}`,
    );
    expect(() => parseTaskInput(input, DEFAULTS)).toThrow(/larger than 1048576 bytes/);
  });

  test("is refused for an unknown field before any other work", () => {
    const fields = Array.from({ length: 50_000 }, (_, index) => `"field-${index}":0`);
    const input = own(`{${fields.join(",")}}`);
    // One for each name in the message, which has no more than ten.
    expect(
      countPasses(() => expect(() => parseTaskInput(input, DEFAULTS)).toThrow(/unknown field `field-0`/)),
    ).toBeLessThanOrEqual(10);
  });

  test("cannot contain values that JSON does not have", () => {
    expect(() => parseTaskInput(own('{"payload":1,"priority":1e999}'), DEFAULTS)).toThrow(/`priority` must/);
    expect(() => parseTaskInput(own('{"payload":1,"retryPolicy":{"backoffMs":1e999}}'), DEFAULTS)).toThrow(
      /`retryPolicy.backoffMs` must/,
    );
  });

  test("is kept as the payload of a schedule without being parsed again", () => {
    const fields = own('{"payload":{"a":[1]}}');
    expect(jsonValue(fields, "payload")).toBe(fields["payload"]);
    const given = { payload: { a: [1] } };
    expect(jsonValue(given, "payload")).toEqual(given.payload);
    expect(jsonValue(given, "payload")).not.toBe(given.payload);
  });
});
