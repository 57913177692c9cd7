import fc from "fast-check";
import { expect, test } from "vitest";
import { isDeeperThan } from "./json-depth.ts";

function depthOf(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(depthOf));
}

test("agrees with walking through the value", () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.nat(5), (value, max) => {
      expect(isDeeperThan(max, JSON.stringify(value))).toBe(depthOf(value) > max);
    }),
  );
});

test.each([
  ["brackets in a text", '"[[[[{{{{"', false],
  ["an escaped quote before brackets", '["\\"[[[[", 1]', false],
  ["an escaped backslash before the end of a text", '["\\\\", [[[1]]]]', true],
  ["exactly as deep as allowed", "[[[0000]]]", false],
])("reads %s", (_what, json, deeper) => {
  expect(isDeeperThan(3, json)).toBe(deeper);
});
