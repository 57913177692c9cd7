import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { copyPlainJson } from "./plain-json.ts";

/** What JSON makes of a value; undefined when it has no words for it. */
function throughText(value: unknown): unknown {
  try {
    return JSON.parse(JSON.stringify(value));
  } catch {
    return undefined;
  }
}

test("JSON is copied as by serializing and parsing it", () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      // Of this key there is no copy: see below.
      fc.pre(!JSON.stringify(value).includes('"__proto__"'));
      expect(copyPlainJson(value)).toStrictEqual(throughText(value));
    }),
  );
});

test("for anything else there is the same copy or none", () => {
  const anything = fc.anything({
    withBigInt: true,
    withBoxedValues: true,
    withDate: true,
    withMap: true,
    withNullPrototype: true,
    withSet: true,
    withSparseArray: true,
    withTypedArray: true,
    withUnicodeString: true,
  });
  fc.assert(
    fc.property(anything, (value) => {
      const copy = copyPlainJson(value);
      if (copy !== undefined) expect(copy).toStrictEqual(throughText(value));
    }),
  );
});

test("the copy shares nothing with what was given", () => {
  const given = { list: [{ n: 1 }] };
  const copy = copyPlainJson(given) as typeof given;
  expect(copy).toEqual(given);
  expect(copy.list).not.toBe(given.list);
  expect(copy.list[0]).not.toBe(given.list[0]);
});

test("a field without a value is left out", () => {
  expect(copyPlainJson({ a: undefined, b: 1 })).toStrictEqual({ b: 1 });
});

test("negative zero becomes zero", () => {
  expect(copyPlainJson([-0])).toStrictEqual([0]);
});

describe("there is no copy of", () => {
  const itself: unknown[] = [];
  itself.push(itself);
  test.each<[string, unknown]>([
    ["a number that JSON does not have", [Number.POSITIVE_INFINITY]],
    ["a gap in an array", new Array(1)],
    ["a function", { call: () => 1 }],
    ["what says itself what it is as JSON", { at: new Date(0) }],
    ["what only claims to", { toJSON: 1 }],
    ["an array that says so", Object.assign([1], { toJSON: () => 2 })],
    ["an object of a class", new Map()],
    ["a boxed text", Object("x")],
    ["a key that JavaScript gives a meaning", JSON.parse('{"__proto__":{"x":1}}')],
    ["what contains itself", itself],
    ["what is nested deep", JSON.parse(`${"[".repeat(51)}${"]".repeat(51)}`)],
    ["a long text", "x".repeat(10_000)],
    ["a long key", { ["x".repeat(10_000)]: 1 }],
    ["many values", new Array(10_000).fill(1)],
  ])("%s", (_what, value) => {
    expect(copyPlainJson(value)).toBeUndefined();
  });
});
