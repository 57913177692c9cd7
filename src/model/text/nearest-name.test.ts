import { expect, test } from "vitest";
import { meantName, nearestName } from "./nearest-name.ts";

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

test("a name of a megabyte is compared at once", () => {
  expect(nearestName("x".repeat(1_000_000), KNOWN)).toBeUndefined();
});

test.each([
  ["timezone", ["schedule", "tz"], "tz"],
  ["timeZone", ["schedule", "tz"], "tz"],
  ["prompt", ["message", "priority"], "message"],
  ["data", ["message", "metadata", "payload"], "payload"],
  ["threadId", ["sessionKey", "lane"], "sessionKey"],
  ["queue", ["lane", "sessionKey"], "lane"],
  ["limit", ["name", "limits"], "limits"],
  ["delay", ["deadline", "runAt"], "runAt"],
  ["retries", ["retryPolicy", "ref"], "retryPolicy"],
  ["retries", ["retry", "message"], "retry"],
  ["cron", ["schedule", "name"], "schedule"],
  ["finished", ["done", "failed"], "done"],
  ["name", ["id", "lane"], "id"],
  ["cron", ["message"], undefined],
  ["constructor", ["message"], undefined],
  ["mesage", ["message"], "message"],
])("%s is the name of a field in other systems, of %j", (unknown, known, meant) => {
  expect(meantName(unknown, known)).toBe(meant);
});
