import { expect, test } from "vitest";
import { canonicalJson, canonicalSteps } from "./canonical-json.ts";

test("the order of keys makes no difference, at any depth, and that of arrays does", () => {
  expect(canonicalJson({ b: [{ d: 1, c: null }], a: "x" })).toBe('{"a":"x","b":[{"c":null,"d":1}]}');
  expect(canonicalJson([2, 1])).not.toBe(canonicalJson([1, 2]));
});

test("a key that JavaScript gives a meaning stays a key", () => {
  const value = JSON.parse('{"b":1,"__proto__":{"x":1},"a":2}');
  expect(canonicalJson(value)).toBe('{"__proto__":{"x":1},"a":2,"b":1}');
});

test("keys that are numbers come first, by size, as in every object", () => {
  const value = JSON.parse('{"b":1,"10":2,"9":3,"01":4,"4294967295":5,"a":6}');
  const copied = Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
  expect(canonicalJson(value)).toBe(JSON.stringify(copied));
  expect(canonicalJson(value)).toBe('{"9":3,"10":2,"01":4,"4294967295":5,"a":6,"b":1}');
});

test("a large value is written in steps of a thousand values, however they are nested", () => {
  const inner = Array.from({ length: 5_000 }, (_, index) => ({ [`key-${index}`]: [index] }));
  const steps = canonicalSteps({ inner, others: Object.fromEntries(inner.map((_, index) => [index, null])) });
  let count = 0;
  for (let step = steps.next(); !step.done; step = steps.next()) count += 1;
  // Three values for each of the first, one for each of the others.
  expect(count).toBe(20);
});
