import { expect, test } from "vitest";
import { jsonWeight } from "./json-weight.ts";

test("a short text counts as many bytes as it has characters", () => {
  expect(jsonWeight("[{},{},{}]")).toBe(10);
});

test("a long text counts the memory of its objects, arrays, fields and items", () => {
  const prose = JSON.stringify("x".repeat(100_000));
  expect(jsonWeight(prose)).toBe(prose.length);
  const objects = `[${"{},".repeat(40_000)}{}]`;
  expect(jsonWeight(objects) / objects.length).toBeGreaterThan(20);
  const arrays = `[${"[1],".repeat(40_000)}[1]]`;
  expect(jsonWeight(arrays) / arrays.length).toBeGreaterThan(14);
  const numbers = JSON.stringify(Array.from({ length: 50_000 }, (_, n) => n));
  expect(jsonWeight(numbers) / numbers.length).toBeLessThan(4);
});

test("commas, braces and escaped quotes inside of strings are characters like others", () => {
  const prose = JSON.stringify('say "hello, {world}: [\\]" \\'.repeat(2_000));
  expect(jsonWeight(prose)).toBe(prose.length);
  const items = `[${`${prose},`.repeat(3)}{}]`;
  expect(jsonWeight(items) - items.length).toBe(jsonWeight(`[1,1,1,{}]${" ".repeat(20_000)}`) - 20_010);
});
