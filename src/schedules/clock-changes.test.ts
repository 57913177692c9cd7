import { Temporal } from "temporal-polyfill";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { isoText } from "./moment-text.ts";
import { nextMoments } from "./moments.ts";
import { parseSchedule } from "./schedule-input.ts";

/** The next moments of a schedule, made at `from`, as the clocks of its zone show them. */
function next(tz: string, schedule: string, from: string, limit: number): string[] {
  const after = Date.parse(from);
  const rule = parseSchedule(schedule, { now: after, tz });
  return nextMoments(rule, { after, anchor: after, limit }).map((moment) => isoText(tz, moment));
}

// On 8 March 2026 the clock skips from 02:00 to 03:00; on 1 November it goes back from 02:00 to 01:00.
describe("in New York", () => {
  const tz = "America/New_York";

  test.each(["30 2 * * *", "every day at 02:30", "every day at 2:30 am"])(
    "%s comes at the end of a spring gap",
    (schedule) => {
      expect(next(tz, schedule, "2026-03-07T00:00:00Z", 3)).toEqual([
        "2026-03-07T02:30:00-05:00",
        "2026-03-08T03:00:00-04:00",
        "2026-03-09T02:30:00-04:00",
      ]);
    },
  );

  test("several times of a rule inside the gap are due once", () => {
    expect(next(tz, "*/15 2 * * *", "2026-03-08T00:00:00-05:00", 3)).toEqual([
      "2026-03-08T03:00:00-04:00",
      "2026-03-09T02:00:00-04:00",
      "2026-03-09T02:15:00-04:00",
    ]);
  });

  test("a time at the end of the gap is due once", () => {
    expect(next(tz, "*/30 1-3 * * *", "2026-03-08T00:00:00-05:00", 5)).toEqual([
      "2026-03-08T01:00:00-05:00",
      "2026-03-08T01:30:00-05:00",
      "2026-03-08T03:00:00-04:00",
      "2026-03-08T03:30:00-04:00",
      "2026-03-09T01:00:00-04:00",
    ]);
  });

  test("a weekly time comes at the end of the gap, and only in that week", () => {
    expect(next(tz, "every sunday at 02:30", "2026-03-02T00:00:00Z", 2)).toEqual([
      "2026-03-08T03:00:00-04:00",
      "2026-03-15T02:30:00-04:00",
    ]);
  });

  test.each(["30 1 * * *", "every day at 01:30"])("%s comes once, the first time, in autumn", (schedule) => {
    expect(next(tz, schedule, "2026-10-31T12:00:00Z", 2)).toEqual([
      "2026-11-01T01:30:00-04:00",
      "2026-11-02T01:30:00-05:00",
    ]);
  });

  test("a time that comes twice is not due the second time", () => {
    expect(next(tz, "30 1 * * *", "2026-11-01T01:15:00-05:00", 1)).toEqual(["2026-11-02T01:30:00-05:00"]);
    expect(next(tz, "at 01:30", "2026-11-01T01:15:00-05:00", 1)).toEqual(["2026-11-02T01:30:00-05:00"]);
  });

  test("several times of one hour come once each in autumn", () => {
    expect(next(tz, "*/20 1 * * *", "2026-11-01T00:00:00-04:00", 4)).toEqual([
      "2026-11-01T01:00:00-04:00",
      "2026-11-01T01:20:00-04:00",
      "2026-11-01T01:40:00-04:00",
      "2026-11-02T01:00:00-05:00",
    ]);
  });

  test.each(["30 * * * *", "30 0-23 * * *", "30 */1 * * *"])(
    "%s comes every hour through both",
    (schedule) => {
      expect(next(tz, schedule, "2026-03-08T01:00:00-05:00", 3)).toEqual([
        "2026-03-08T01:30:00-05:00",
        "2026-03-08T03:30:00-04:00",
        "2026-03-08T04:30:00-04:00",
      ]);
      expect(next(tz, schedule, "2026-11-01T01:00:00-04:00", 3)).toEqual([
        "2026-11-01T01:30:00-04:00",
        "2026-11-01T01:30:00-05:00",
        "2026-11-01T02:30:00-05:00",
      ]);
    },
  );

  test("every two hours of elapsed time stays so", () => {
    expect(next(tz, "every 2 hours", "2026-03-07T23:30:00-05:00", 3)).toEqual([
      "2026-03-08T01:30:00-05:00",
      "2026-03-08T04:30:00-04:00",
      "2026-03-08T06:30:00-04:00",
    ]);
  });

  test("in N days keeps the time of day, in N hours the hours", () => {
    const from = "2026-03-07T12:00:00-05:00";
    expect(next(tz, "in 1 day", from, 1)).toEqual(["2026-03-08T12:00:00-04:00"]);
    expect(next(tz, "in 24 hours", from, 1)).toEqual(["2026-03-08T13:00:00-04:00"]);
  });

  test("one date inside the gap comes at its end", () => {
    expect(next(tz, "on 2026-03-08 at 02:30", "2026-01-01T00:00:00Z", 2)).toEqual([
      "2026-03-08T03:00:00-04:00",
    ]);
  });
});

test("in Berlin, days of a step are counted through both changes", () => {
  expect(next("Europe/Berlin", "every 3 days at 02:30", "2026-03-25T12:00:00Z", 3)).toEqual([
    "2026-03-26T02:30:00+01:00",
    "2026-03-29T03:00:00+02:00",
    "2026-04-01T02:30:00+02:00",
  ]);
  expect(next("Europe/Berlin", "every 2 weeks on sun at 02:30", "2026-10-20T12:00:00Z", 3)).toEqual([
    "2026-10-25T02:30:00+02:00",
    "2026-11-08T02:30:00+01:00",
    "2026-11-22T02:30:00+01:00",
  ]);
});

// On 4 October 2026 the clock skips from 02:00 to 02:30; on 5 April it goes back from 02:00 to 01:30.
test("on Lord Howe, half an hour is skipped and shown again", () => {
  const tz = "Australia/Lord_Howe";
  expect(next(tz, "15 2 * * *", "2026-10-03T12:00:00Z", 2)).toEqual([
    "2026-10-04T02:30:00+11:00",
    "2026-10-05T02:15:00+11:00",
  ]);
  expect(next(tz, "45 1 * * *", "2026-04-04T12:00:00Z", 2)).toEqual([
    "2026-04-05T01:45:00+11:00",
    "2026-04-06T01:45:00+10:30",
  ]);
  expect(next(tz, "45 * * * *", "2026-04-05T01:00:00+11:00", 3)).toEqual([
    "2026-04-05T01:45:00+11:00",
    "2026-04-05T01:45:00+10:30",
    "2026-04-05T02:45:00+10:30",
  ]);
});

// On 6 September 2026 the clock skips from 00:00 to 01:00; on 5 April it goes back from 00:00 to 23:00 the day before.
test("in Santiago, a day without a midnight begins at one", () => {
  const tz = "America/Santiago";
  expect(next(tz, "@daily", "2026-09-05T12:00:00Z", 2)).toEqual([
    "2026-09-06T01:00:00-03:00",
    "2026-09-07T00:00:00-03:00",
  ]);
  expect(next(tz, "every day at 23:30", "2026-04-04T12:00:00Z", 2)).toEqual([
    "2026-04-04T23:30:00-03:00",
    "2026-04-05T23:30:00-04:00",
  ]);
  expect(next(tz, "every day at 00:00", "2026-04-04T12:00:00Z", 2)).toEqual([
    "2026-04-05T00:00:00-04:00",
    "2026-04-06T00:00:00-04:00",
  ]);
});

// From 29 December 2011, the clock went on to the 31st.
test("in Apia, a time on the skipped day is due at the end of that day", () => {
  const tz = "Pacific/Apia";
  expect(next(tz, "every day at 09:00", "2011-12-29T20:00:00Z", 3)).toEqual([
    "2011-12-31T00:00:00+14:00",
    "2011-12-31T09:00:00+14:00",
    "2012-01-01T09:00:00+14:00",
  ]);
  expect(next(tz, "every fri at 09:00", "2011-12-28T20:00:00Z", 2)).toEqual([
    "2011-12-31T00:00:00+14:00",
    "2012-01-06T09:00:00+14:00",
  ]);
  expect(next(tz, "0 12 31 12 *", "2011-12-28T20:00:00Z", 2)).toEqual([
    "2011-12-31T12:00:00+14:00",
    "2012-12-31T12:00:00+14:00",
  ]);
});

test("in Kathmandu, where no clock changes, quarters of an hour from UTC make no difference", () => {
  expect(next("Asia/Kathmandu", "every weekday at 09:00", "2026-03-26T12:00:00Z", 3)).toEqual([
    "2026-03-27T09:00:00+05:45",
    "2026-03-30T09:00:00+05:45",
    "2026-03-31T09:00:00+05:45",
  ]);
});

test.each([
  ["many years ahead", "every 9000 days", "America/Boise", 2],
  ["by the hour", "0 * 29 2 *", "America/Juneau", 24],
  ["at a time of the day", "30 2 29 2 *", "America/Nome", 1],
])("the search skips the clock changes of the years before a due time, %s", (_when, schedule, tz, limit) => {
  const look = vi.spyOn(Temporal.ZonedDateTime.prototype, "getTimeZoneTransition");
  onTestFinished(() => look.mockRestore());
  const expr = schedule.startsWith("every") ? schedule : { kind: "cron", expr: schedule };
  const after = Date.parse("2032-03-01T00:00:00Z");
  const rule = parseSchedule(expr, { now: after, tz });
  expect(nextMoments(rule, { after, anchor: after, limit })).toHaveLength(limit);
  // Four years have eight; each takes two looks.
  expect(look.mock.calls.length).toBeLessThanOrEqual(12);
});
