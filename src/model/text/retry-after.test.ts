import { expect, test } from "vitest";
import { retryAfterMs } from "./retry-after.ts";

const NOW = Date.parse("2026-03-08T12:00:00Z");

test.each([
  ["0", 0],
  ["120", 120_000],
  [" 5 ", 5_000],
  ["Sun, 08 Mar 2026 12:00:30 GMT", 30_000],
  ["Sun, 08 Mar 2026 11:00:00 GMT", 0],
])("%j asks for %i ms", (header, ms) => {
  expect(retryAfterMs(header, NOW)).toBe(ms);
});

test.each([null, "", "soon", "-5", "1.5", "2026-03-08", "Sun, 99 Foo 2026 12:00:30 GMT"])(
  "%j asks for nothing",
  (header) => {
    expect(retryAfterMs(header, NOW)).toBeUndefined();
  },
);
