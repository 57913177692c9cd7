import { expect, test } from "vitest";
import { parseTaskFilter } from "./task-filter-input.ts";

test("an empty filter is a page of a hundred of everything", () => {
  expect(parseTaskFilter({})).toEqual({ limit: 100 });
});

test("takes states as one, several or in a text, by either name, each once", () => {
  expect(parseTaskFilter({ state: "done" }).states).toEqual(["done"]);
  expect(parseTaskFilter({ state: ["pending", "completed", "done"] }).states).toEqual(["queued", "done"]);
  expect(parseTaskFilter({ state: "running, failed" }).states).toEqual(["running", "failed"]);
});

test("passes on what to look for", () => {
  const filter = {
    agentId: "a",
    priority: 0,
    lane: "main",
    sessionKey: "s",
    scheduleId: 17,
    q: "tsk_01",
    from: "2030-01-31T09:00:00Z",
    to: new Date(Date.UTC(2030, 0, 31, 10)),
    order: "oldest",
    limit: 1_000,
    cursor: "o42",
  };
  expect(parseTaskFilter(filter)).toEqual({
    agent: "a",
    priority: 0,
    lane: "main",
    session: "s",
    schedule: 17,
    search: "tsk_01",
    from: Date.UTC(2030, 0, 31, 9),
    to: Date.UTC(2030, 0, 31, 10),
    order: "oldest",
    limit: 1_000,
    cursor: 42,
  });
});

test("takes a priority by its name", () => {
  expect(parseTaskFilter({ priority: "high" })).toEqual({ priority: 1, limit: 100 });
});

test("takes `critical` for 0 and below, and a number for itself", () => {
  expect(parseTaskFilter({ priority: "critical" })).toEqual({ priorityMax: 0, limit: 100 });
  expect(parseTaskFilter({ priority: 0 })).toEqual({ priority: 0, limit: 100 });
  expect(parseTaskFilter({ priority: -7 })).toEqual({ priority: -7, limit: 100 });
});

test.each([
  [{ priority: "urgent" }, "must be an integer, lower first, or one of critical, high, normal, low"],
  [{ agentId: "two\nlines" }, "`agentId` must be 1 to 128 characters of any script"],
  [{ agentId: ["a", "b"] }, "`agentId` must be a string, not an array"],
  [{ lane: "a\0b" }, "`lane` must be the name of a lane"],
  [{ state: "finished" }, "`state` must be one of waiting_dependency, delayed, queued"],
  [{ state: "dine" }, "did you mean `done`?"],
  [{ state: "constructor" }, 'rejected, not "constructor"'],
  [{ state: 5 }, "must be a state"],
  [{ q: " " }, "`q` must be 1 to 200 characters: the id of a task"],
  [{ q: "x".repeat(201) }, "`q` must be 1 to 200 characters"],
  [{ q: "a\0b" }, "`q` must be the id of a task or its beginning"],
  [{ from: "yesterday" }, "`from` must be a time like"],
  [{ from: "2030-01-31T09:00:00Z", to: "2030-01-31T09:00:00Z" }, "`to` must be later than `from`"],
  [{ order: "olest" }, "`order` must"],
  [{ limit: 0 }, "from 1 to 1000"],
  [{ limit: 1_001 }, "from 1 to 1000"],
  [{ cursor: "abc" }, "`nextCursor` of the page before"],
  [{ cursor: "9999999999999999" }, "`nextCursor` of the page before"],
  [{ agent: "x" }, "did you mean `agentId`?"],
  [{ scheduleId: 0 }, "`scheduleId` must be the id of a schedule, an integer from 1 on, not 0"],
  [{ scheduleId: "17" }, 'not "17"'],
  [{ scheduleId: 1.5 }, "an integer from 1 on"],
])("refuses %j", (filter, message) => {
  expect(() => parseTaskFilter(filter)).toThrow(message);
});
