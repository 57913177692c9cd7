import { describe, expect, test } from "vitest";
import { parseRunFilter, parseRunMode, parseScheduleFilter } from "./run-filter-input.ts";

describe("the filter of a list of runs", () => {
  test("selects the newest hundred of all runs by default", () => {
    expect(parseRunFilter({})).toEqual({ limit: 100 });
  });

  test("takes seconds, a status and a cursor", () => {
    const filter = { since: 1_746_720_000, status: "failed", limit: 5, cursor: "42" };
    expect(parseRunFilter(filter)).toEqual({
      since: 1_746_720_000_000,
      status: "failed",
      limit: 5,
      cursor: 42,
    });
  });

  test.each([
    [{ since: "yesterday" }, "an integer of seconds since 1970"],
    [{ since: 1_746_720_000_000 }, "an integer of seconds since 1970"],
    [{ since: -1 }, "from 0"],
    [{ status: "done" }, "must be running, succeeded, failed, skipped or missed"],
    [{ limit: 0 }, "from 1 to 100"],
    [{ limit: 101 }, "from 1 to 100"],
    [{ cursor: "abc" }, "`next_cursor` of the page before"],
    [{ task_id: 1 }, "unknown field `task_id`"],
  ])("%j is refused", (filter, sentence) => {
    expect(() => parseRunFilter(filter)).toThrow(sentence);
  });
});

test("the filter of a list of schedules takes a status", () => {
  expect([parseScheduleFilter({}), parseScheduleFilter({ status: "failed" })]).toEqual([
    { limit: 200 },
    { limit: 200, status: "failed" },
  ]);
  expect(() => parseScheduleFilter({ status: "canceled" })).toThrow(
    "must be active, paused, completed or failed",
  );
  expect(parseScheduleFilter({ limit: 5 })).toEqual({ limit: 5 });
  expect(() => parseScheduleFilter({ limit: 201 })).toThrow("`limit` must be");
});

test("a run is forced unless the mode is `due`", () => {
  expect([undefined, null, {}, { mode: null }, { mode: "force" }].map(parseRunMode)).toEqual(
    Array(5).fill("force"),
  );
  expect(parseRunMode({ mode: "due" })).toBe("due");
  for (const wrong of [{ mode: "now" }, { moed: null }, { force: true }, "due", []]) {
    expect(() => parseRunMode(wrong), JSON.stringify(wrong)).toThrow();
  }
});
