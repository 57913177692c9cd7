import { describe, expect, test } from "vitest";
import { finished } from "../../test/support/finished.ts";
import { PREVIEW_COUNT } from "../model/schedule.ts";
import { previewSteps } from "./preview.ts";
import { parseSchedule } from "./schedule-input.ts";

function previewOf(schedule: unknown, tz: string, from: string, count: number) {
  const now = Date.parse(from);
  return finished(previewSteps(parseSchedule(schedule, { now, tz }), { from: now, count }));
}

test("a preview returns the canonical form and the due times in the zone", () => {
  expect(previewOf("every monday at 9am", "Europe/Berlin", "2026-05-08T11:23:00Z", 2)).toEqual({
    normalized: "every Mon at 09:00",
    kind: "recurring",
    next: ["2026-05-11T09:00:00+02:00", "2026-05-18T09:00:00+02:00"],
    notes: [],
  });
  expect(previewOf("in 1 hour", "UTC", "2026-05-08T11:23:00.250Z", 5)).toEqual({
    normalized: "in 1 hour",
    kind: "once",
    next: ["2026-05-08T12:23:00.250+00:00"],
    notes: [],
  });
});

test.each([
  ["in one hour", "in 1 hour", "2026-05-08T14:23:00+02:00"],
  ["in half an hour", "in 30 minutes", "2026-05-08T13:53:00+02:00"],
  ["in 1 hour 30 minutes", "in 1 hour 30 minutes", "2026-05-08T14:53:00+02:00"],
  ["today at 23:59", "today at 23:59", "2026-05-08T23:59:00+02:00"],
  ["on monday at 9:00", "on 2026-05-11 at 09:00", "2026-05-11T09:00:00+02:00"],
  ["next monday", "on 2026-05-11 at 09:00", "2026-05-11T09:00:00+02:00"],
  ["every other day", "every 2 days at 09:00", "2026-05-09T09:00:00+02:00"],
  ["at noon", "at 12:00", "2026-05-09T12:00:00+02:00"],
  ["at midnight", "at 00:00", "2026-05-09T00:00:00+02:00"],
])("a preview of %s says %s, and %s", (schedule, normalized, next) => {
  expect(previewOf(schedule, "Europe/Berlin", "2026-05-08T11:23:00Z", 1)).toMatchObject({
    normalized,
    next: [next],
    notes: [],
  });
});

test("days of a compound amount keep the time of day; its hours are added afterwards", () => {
  // The clock skips an hour in the night between: a day later is 23 hours later.
  expect(previewOf("in 1 day 2 hours", "Europe/Berlin", "2026-03-28T12:00:00+01:00", 1).next).toEqual([
    "2026-03-29T14:00:00+02:00",
  ]);
});

test("a preview lists a thousand due times at most", () => {
  expect(previewOf("hourly", "UTC", "2026-01-01T00:00:00Z", 5_000).next).toHaveLength(PREVIEW_COUNT.max);
});

const SPRING = "In America/New_York the clock skips from 2026-03-08 02:00 to 2026-03-08 03:00";
const AUTUMN = "In America/New_York the clock goes back from 2026-11-01 02:00 to 2026-11-01 01:00";

describe("a clock change is noted", () => {
  const notes = (schedule: string, from: string, count = 5) =>
    previewOf(schedule, "America/New_York", from, count).notes;

  test("where it skips a time", () => {
    const skipped = [`${SPRING}: what is due in between is due at the end of the gap, once.`];
    expect(notes("every day at 02:30", "2026-03-06T00:00:00Z")).toEqual(skipped);
    expect(notes("*/10 2 * * *", "2026-03-08T00:00:00-05:00")).toEqual(skipped);
  });

  test("where it repeats a time, once however many times there are", () => {
    const repeated = [`${AUTUMN}: what is due in between is due the first time only.`];
    expect(notes("every day at 01:30", "2026-10-30T00:00:00Z")).toEqual(repeated);
    expect(notes("*/10 1 * * *", "2026-11-01T00:00:00-04:00", 6)).toEqual(repeated);
  });

  test("where the intervals in local time are uneven", () => {
    expect(notes("every 2 hours", "2026-10-31T23:00:00-04:00")).toEqual([
      `${AUTUMN}: this schedule goes on by elapsed time.`,
    ]);
    expect(notes("0 * * * *", "2026-03-08T00:30:00-05:00")).toEqual([
      `${SPRING}: this schedule goes on by elapsed time.`,
    ]);
  });

  test("where it moves a single time, or makes it one of two", () => {
    expect(notes("on 2026-03-08 at 02:30", "2026-01-01T00:00:00Z")).toEqual([
      `${SPRING}: there is no 02:30, and it is due at the end of the gap.`,
    ]);
    expect(notes("on 2026-11-01 at 01:30", "2026-01-01T00:00:00Z")).toEqual([
      `${AUTUMN}: this is the first of two such times.`,
    ]);
  });

  test.each(["every day at 03:00", "every day at 09:00", "0 3 * * *", "on 2026-03-08 at 03:00"])(
    "but not for %s, which it does not touch",
    (schedule) => {
      expect(notes(schedule, "2026-03-06T00:00:00Z")).toEqual([]);
    },
  );

  test("at most twenty times", () => {
    expect(notes("30 1,2 * 3,11 0", "2026-01-01T00:00:00Z", 1_000)).toHaveLength(20);
  });
});
