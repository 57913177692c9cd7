import { expect, test } from "vitest";
import { canonicalJson } from "./canonical-json.ts";

test("the order of keys makes no difference, at any depth, and that of arrays does", () => {
  expect(canonicalJson({ b: [{ d: 1, c: null }], a: "x" })).toBe('{"a":"x","b":[{"c":null,"d":1}]}');
  expect(canonicalJson([2, 1])).not.toBe(canonicalJson([1, 2]));
});

test("a key that JavaScript gives a meaning stays a key", () => {
  const value = JSON.parse('{"b":1,"__proto__":{"x":1},"a":2}');
  expect(canonicalJson(value)).toBe('{"__proto__":{"x":1},"a":2,"b":1}');
});
