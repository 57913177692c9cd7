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

test("a large value is written once, however often its text is asked for", () => {
  const value = { text: "x".repeat(20_000) };
  const expected = JSON.stringify(value);
  const [texts, writes] = countingStringify(() => [jsonText(value), jsonText(value)]);
  expect(texts).toEqual([expected, expected]);
  expect(writes).toBe(1);
});

test("one that came from its text is not written at all", () => {
  const text = JSON.stringify(Array(10_000).fill(1));
  const value: unknown = JSON.parse(text);
  rememberText(value, text);
  expect(countingStringify(() => jsonText(value))).toEqual([text, 0]);
});

test("one that gets more fields is not written again, only they are", () => {
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

test("what JSON has no text for has none", () => {
  expect(jsonText(undefined)).toBeUndefined();
});
