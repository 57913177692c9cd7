import { expect, test } from "vitest";
import { hideValues } from "./mask.ts";

test("hides secrets wherever they stand, the longest first, and leaves short words alone", () => {
  const secrets = ["sk-12345", "sk-12345-and-more", "short", ""];
  expect(hideValues("sk-12345-and-more, sk-12345 and short", secrets)).toBe("…, … and short");
});

test("searches for a bounded number of secrets", () => {
  const many = Array.from({ length: 100_000 }, (_, index) => `secret-${index}`);
  const text = "x".repeat(4_096);
  const begin = performance.now();
  expect(hideValues(text, many)).toBe(text);
  expect(performance.now() - begin).toBeLessThan(1_000);
});
