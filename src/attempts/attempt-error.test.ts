import { expect, test } from "vitest";
import { hostileValues } from "../../test/support/hostile-values.ts";
import { HttpError, PermanentError } from "../executors/errors.ts";
import { cleanText, errorText, failureOf } from "./attempt-error.ts";

test.each([
  ["an error", new Error("it broke"), "it broke"],
  ["an error without a message", new TypeError(), "TypeError"],
  ["a text", "just a text", "just a text"],
  ["an empty text", "", "failed without a message"],
  ["undefined", undefined, "undefined"],
  ["null", null, "null"],
  ["a number", 42, "42"],
  ["a bigint", 42n, "42"],
  ["a symbol", Symbol("s"), "Symbol(s)"],
  ["an object with a message", { message: "from afar" }, "from afar"],
  ["an object without one", { code: 7 }, '{"code":7}'],
  ["an object without a prototype", Object.create(null), "{}"],
])("%s says why", (_what, thrown, text) => {
  expect(errorText(thrown)).toBe(text);
});

test("what throws when it is looked at is still a failure", () => {
  const nasty = {
    get message(): string {
      throw new Error("do not look");
    },
  };
  expect(errorText(nasty)).toBe("failed with an error that cannot be shown");
  const circle: Record<string, unknown> = {};
  circle["self"] = circle;
  expect(errorText(circle)).toBe("failed with an error that cannot be shown");
});

test.each(hostileValues())("%s is a failure like any other", (_what, thrown) => {
  expect(failureOf(thrown)).toEqual({
    kind: "failed",
    error: expect.stringMatching(/./),
    permanent: false,
  });
});

test("a name or a message that is not a string is shown as one", () => {
  expect(errorText(Object.assign(new Error(""), { name: undefined }))).toBe("failed without a message");
  expect(errorText(Object.assign(new Error(""), { name: 5 }))).toBe("5");
  expect(errorText(Object.assign(new Error(""), { message: ["a", "b"] }))).toBe("a,b");
});

test("an error that throws when asked whether it is permanent is not", () => {
  class Sly extends HttpError {
    override get permanent(): boolean {
      throw new Error("do not ask");
    }
  }
  expect(failureOf(new Sly(400, "x"))).toEqual({ kind: "failed", error: "x", permanent: false });
});

test("a text that databases refuse is mended", () => {
  expect(errorText(new Error("a\0b\ud800c"))).toBe("a\u{fffd}b\u{fffd}c");
});

test("a long text is cut, never inside a character", () => {
  const text = errorText(new Error("é".repeat(10_000)));
  expect(Buffer.byteLength(text)).toBeLessThanOrEqual(4_096);
  expect(text).toMatch(/^é+…$/);
  expect(cleanText("x".repeat(4_096), 4_096)).toBe("x".repeat(4_096));
});

test("a failure is retried unless it is permanent", () => {
  expect(failureOf(new Error("x"))).toEqual({ kind: "failed", error: "x", permanent: false });
  expect(failureOf(new PermanentError("x"))).toMatchObject({ permanent: true });
});

test.each([
  [400, true],
  [401, true],
  [403, true],
  [404, true],
  [405, true],
  [408, false],
  [409, false],
  [410, true],
  [413, true],
  [422, true],
  [429, false],
  [500, false],
  [503, false],
])("HTTP %i is permanent: %s", (status, permanent) => {
  expect(failureOf(new HttpError(status, "x"))).toMatchObject({ permanent });
});

test("the wait the other side asked for is passed on", () => {
  expect(failureOf(new HttpError(429, "x", { retryAfterMs: 7_000 }))).toMatchObject({ retryAfterMs: 7_000 });
});
