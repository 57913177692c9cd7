import { expect, test } from "vitest";
import { divide } from "./divide.ts";

test.each<[number, Record<string, number>, Record<string, number>]>([
  [5, { a: 2, b: 3 }, { a: 2, b: 3 }],
  [0, { a: 0, b: 0 }, { a: 0, b: 0 }],
  [10, { a: 1, b: 3 }, { a: 2, b: 8 }],
  [7, { a: 0, b: 0 }, { a: 7, b: 0 }],
  [3, { a: 3, b: 3, c: 3 }, { a: 1, b: 1, c: 1 }],
])("%i by a sample of %j is %j", (whole, sample, parts) => {
  expect(divide(whole, sample)).toEqual(parts);
});
