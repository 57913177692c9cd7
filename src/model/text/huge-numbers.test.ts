import { expect, test } from "vitest";
import { hugeNumberIn } from "./huge-numbers.ts";

test.each([
  ['{"payload":{"rows":[1,{"n":1e400}]}}', "payload.rows[1].n"],
  ['{"a":-1E+999,"b":1e999}', "a"],
  [`{"payload":[${"9".repeat(400)}]}`, "payload[0]"],
  ["1e309", ""],
  ['{"payload":1e308,"text":"1e400 and 1e999","small":1e-400,"zero":0e999}', null],
  ['{"payload":9007199254740993}', null],
  ["null", null],
])("in %s it is at %s", (text, path) => {
  expect(hugeNumberIn(text, JSON.parse(text))).toBe(path);
});

test("a value nested as deep as a body allows does not exhaust the stack", () => {
  const depth = 100_000;
  const text = `${"[".repeat(depth)}1e999${"]".repeat(depth)}`;
  expect(hugeNumberIn(text, JSON.parse(text))).toBe("[0]".repeat(depth));
});
