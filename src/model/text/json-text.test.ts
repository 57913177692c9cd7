import { expect, test, vi } from "vitest";
import { extendText, jsonText, rememberText } from "./json-text.ts";

function countingStringify<Result>(work: () => Result): [Result, number] {
  const stringify = vi.spyOn(JSON, "stringify");
  try {
    const result = work();
    return [result, stringify.mock.calls.length];
  } finally {
    stringify.mockRestore();
  }
}

test("a large value is serialized once, however often its text is read", () => {
  const value = { text: "x".repeat(20_000) };
  const expected = JSON.stringify(value);
  const [texts, writes] = countingStringify(() => [jsonText(value), jsonText(value)]);
  expect(texts).toEqual([expected, expected]);
  expect(writes).toBe(1);
});

test("a value that was parsed from its text is not serialized again", () => {
  const text = JSON.stringify(Array(10_000).fill(1));
  const value: unknown = JSON.parse(text);
  rememberText(value, text);
  expect(countingStringify(() => jsonText(value))).toEqual([text, 0]);
});

test("if a value gets more fields, only these are serialized", () => {
  const whole = { text: "x".repeat(20_000) };
  jsonText(whole);
  const more = { more: [1], other: { a: "ä" } };
  const all = { ...whole, ...more };
  extendText(all, whole, more);
  expect(countingStringify(() => jsonText(all))).toEqual([JSON.stringify({ ...whole, ...more }), 0]);
});

test.each([[null], [1], ["é"], [[]], [{ a: 1 }]])("%j is as JSON has it", (value) => {
  expect(jsonText(value)).toBe(JSON.stringify(value));
});

test("a value that JSON does not have has no text", () => {
  expect(jsonText(undefined)).toBeUndefined();
});
