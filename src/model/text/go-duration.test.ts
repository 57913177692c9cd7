import { expect, test } from "vitest";
import { goDuration } from "./go-duration.ts";

test.each([
  [300, "5m0s"],
  [45, "45s"],
  [3_600, "1h0m0s"],
  [3_661, "1h1m1s"],
  [2_592_000, "720h0m0s"],
])("%i seconds are %s", (seconds, text) => {
  expect(goDuration(seconds)).toBe(text);
});
