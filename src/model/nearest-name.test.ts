import { expect, test } from "vitest";
import { nearestName } from "./nearest-name.ts";

const KNOWN = ["agentId", "instruction", "message", "priority", "timeout"];

test.each([
  ["agentID", "agentId"],
  ["agent", "agentId"],
  ["instrction", "instruction"],
  ["mesage", "message"],
  ["PRIORITY", "priority"],
  ["timout", "timeout"],
])("%s was meant to be %s", (unknown, meant) => {
  expect(nearestName(unknown, KNOWN)).toBe(meant);
});

test.each(["", "x", "webhook", "zzzzzzzzzzz"])("nothing known is near %j", (unknown) => {
  expect(nearestName(unknown, KNOWN)).toBeUndefined();
});

test("a name of a megabyte is answered at once", () => {
  expect(nearestName("x".repeat(1_000_000), KNOWN)).toBeUndefined();
});
