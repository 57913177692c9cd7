import { expect, test } from "vitest";
import { canSelectMatching, isForList, matchingInput } from "./bulk-filter.ts";

const NOW = Date.parse("2026-11-16T06:00:00Z");

test("all that match are the tasks of the list, in any order", () => {
  expect(
    matchingInput("cancel", { lane: "main", from: "1h", scheduleId: "7", order: "oldest" }, NOW),
  ).toEqual({
    action: "cancel",
    filter: {
      lane: "main",
      from: "2026-11-16T05:00:00.000Z",
      scheduleId: 7,
      state: ["queued", "delayed", "waiting_dependency", "assigned", "running"],
    },
  });
  expect(matchingInput("retry", { state: "failed" }, NOW)).toEqual({
    action: "retry",
    filter: { state: "failed" },
  });
});

test("a filter is never empty", () => {
  expect(matchingInput("delete", {}, NOW).filter).toEqual({
    state: ["done", "failed", "cancelled", "rejected"],
  });
});

test("what is chosen by its end is not what the server would choose", () => {
  expect(canSelectMatching({ order: "completed", from: "1h" })).toBe(false);
  expect(canSelectMatching({ order: "completed" })).toBe(true);
  expect(canSelectMatching({ from: "1h" })).toBe(true);
});

test("what names no schedule is not left out of the filter: the server refuses it", () => {
  expect(matchingInput("cancel", { scheduleId: "7x", state: "queued" }, NOW).filter).toEqual({
    scheduleId: "7x",
    state: "queued",
  });
});

test("an action is offered where the list may have tasks for it", () => {
  expect(isForList("delete", {})).toBe(true);
  expect(isForList("delete", { state: "queued,delayed" })).toBe(false);
  expect(isForList("cancel", { state: "failed,queued" })).toBe(true);
  expect(isForList("cancel", { state: "failed" })).toBe(false);
});
