import { expect, test } from "vitest";
import type { ScheduledTask } from "../../../../src/client/index.ts";
import { fieldsOf, toChanges, toNewSchedule } from "./schedule-input.ts";

const SCHEDULE = {
  name: "Briefing",
  agent_id: "assistant",
  message: null,
  payload: { pages: 3 },
  schedule_phrase: "every day at 06:00",
  tz: "Europe/Berlin",
  overlap: "queue",
  catch_up: "none",
  pause_after_failures: 3,
} as unknown as ScheduledTask;

test("a new schedule leaves out empty fields", () => {
  const fields = { ...fieldsOf(undefined, "UTC"), schedule: "every hour", text: "Look." };
  expect(toNewSchedule(fields, true)).toEqual({
    schedule: "every hour",
    tz: "UTC",
    enabled: true,
    overlap: "skip",
    catch_up: "one",
    message: "Look.",
  });
});

test("a change sends what was changed and nothing else, so that the due times stay", () => {
  const before = fieldsOf(SCHEDULE, "UTC");
  expect(toChanges(before, before)).toEqual({});
  expect(toChanges(before, { ...before, name: "", pause_after_failures: "", lane: "crawl" })).toEqual({
    name: null,
    pause_after_failures: null,
    lane: "crawl",
  });
  expect(toChanges(before, { ...before, text: '{"pages": 4}', tz: "UTC" })).toEqual({
    payload: { pages: 4 },
    tz: "UTC",
  });
  expect(() => toChanges(before, { ...before, text: "{" })).toThrow(/^`payload` is not JSON/);
});
