import { expect, test } from "vitest";
import { checkAgentId, toAgentId } from "./agent-id.ts";

test.each([
  "index",
  "team/a:1@b",
  "Überblick",
  "研究員",
  "مساعد",
  "मेरा एजेंट",
  "night shift",
  "👩‍🚀",
  "50%",
  "...",
  "x".repeat(128),
  "研".repeat(128),
  "👍".repeat(128),
])("%s can be the id of an agent", (id) => {
  expect(toAgentId(id)).toBe(id);
});

test("what looks the same is the same, however it was typed", () => {
  expect(toAgentId("U\u0308ber")).toBe("Über");
  expect(toAgentId("\u1100\u1161")).toBe("가");
  expect(toAgentId("e\u0301".repeat(128))).toBe("é".repeat(128));
});

test.each([
  "",
  " ",
  " a",
  "a ",
  ".",
  "..",
  "a\nb",
  "a\u0000b",
  "a\u007fb",
  "a\u0085b",
  "a\u202eb",
  "a\u200fb",
  "a\u2066b",
  "a\u2028b",
  "\ud800",
  "x".repeat(129),
  "👍".repeat(129),
  "x".repeat(1_000_000),
  5,
  null,
  undefined,
])("%j cannot", (id) => {
  expect(toAgentId(id)).toBeNull();
  expect(() => checkAgentId(id, "id")).toThrow("`id` must be 1 to 128 characters of any script");
});
