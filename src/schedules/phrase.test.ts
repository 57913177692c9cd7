import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { RotaError } from "../model/errors.ts";
import { type Rule, scheduleKind, WEEKDAYS } from "../model/rule.ts";
import { ACCEPTED_FORMS } from "./accepted-forms.ts";
import { canonicalForm } from "./canonical-form.ts";
import { isoText } from "./moment-text.ts";
import { nextMoment } from "./moments.ts";
import { parseSchedule } from "./schedule-input.ts";

const TZ = "Europe/Berlin";
/** A Friday, 13:23 in Berlin. */
const NOW = Date.parse("2026-05-08T11:23:00Z");

function parse(phrase: string, { now = NOW, tz = TZ } = {}): Rule {
  return parseSchedule(phrase, { now, tz });
}

function refusal(schedule: unknown): RotaError {
  try {
    parseSchedule(schedule, { now: NOW, tz: TZ });
  } catch (error) {
    if (error instanceof RotaError) return error;
    throw error;
  }
  throw new Error("it is accepted");
}

describe("a phrase for one moment", () => {
  test.each([
    ["in 30 minutes", "in 30 minutes", "2026-05-08T13:53:00+02:00"],
    ["in 1 hour", "in 1 hour", "2026-05-08T14:23:00+02:00"],
    ["in 2 days", "in 2 days", "2026-05-10T13:23:00+02:00"],
    ["in 1 week", "in 1 week", "2026-05-15T13:23:00+02:00"],
    ["In  5 MIN", "in 5 minutes", "2026-05-08T13:28:00+02:00"],
    ["in 1h", "in 1 hour", "2026-05-08T14:23:00+02:00"],
    ["in an hour", "in 1 hour", "2026-05-08T14:23:00+02:00"],
    ["in 90 s", "in 90 seconds", "2026-05-08T13:24:30+02:00"],
    ["in a minute", "in 1 minute", "2026-05-08T13:24:00+02:00"],
    ["in one hour", "in 1 hour", "2026-05-08T14:23:00+02:00"],
    ["In Twelve Hours", "in 12 hours", "2026-05-09T01:23:00+02:00"],
    ["in two days", "in 2 days", "2026-05-10T13:23:00+02:00"],
    ["in half an hour", "in 30 minutes", "2026-05-08T13:53:00+02:00"],
    ["in half hour", "in 30 minutes", "2026-05-08T13:53:00+02:00"],
    ["in 1 hour 30 minutes", "in 1 hour 30 minutes", "2026-05-08T14:53:00+02:00"],
    ["in 1h30m", "in 1 hour 30 minutes", "2026-05-08T14:53:00+02:00"],
    ["in an hour and five minutes", "in 1 hour 5 minutes", "2026-05-08T14:28:00+02:00"],
    ["in 1 week 2 days 3 hours", "in 1 week 2 days 3 hours", "2026-05-17T16:23:00+02:00"],
    ["at noon", "at 12:00", "2026-05-09T12:00:00+02:00"],
    ["at Midnight", "at 00:00", "2026-05-09T00:00:00+02:00"],
    ["today at 23:59", "today at 23:59", "2026-05-08T23:59:00+02:00"],
    ["today 5pm", "today at 17:00", "2026-05-08T17:00:00+02:00"],
    ["tonight at 9 pm", "today at 21:00", "2026-05-08T21:00:00+02:00"],
    ["tomorrow noon", "tomorrow at 12:00", "2026-05-09T12:00:00+02:00"],
    ["on monday at 9:00", "on 2026-05-11 at 09:00", "2026-05-11T09:00:00+02:00"],
    ["on Mon", "on 2026-05-11 at 09:00", "2026-05-11T09:00:00+02:00"],
    ["on friday at 14:00", "on 2026-05-08 at 14:00", "2026-05-08T14:00:00+02:00"],
    ["on friday at 13:23", "on 2026-05-15 at 13:23", "2026-05-15T13:23:00+02:00"],
    ["next monday", "on 2026-05-11 at 09:00", "2026-05-11T09:00:00+02:00"],
    ["next friday at 14:00", "on 2026-05-15 at 14:00", "2026-05-15T14:00:00+02:00"],
    ["next sat at noon", "on 2026-05-09 at 12:00", "2026-05-09T12:00:00+02:00"],
    ["at 17:00", "at 17:00", "2026-05-08T17:00:00+02:00"],
    ["at 5 pm", "at 17:00", "2026-05-08T17:00:00+02:00"],
    ["at 9:30PM", "at 21:30", "2026-05-08T21:30:00+02:00"],
    ["at 9:30 p.m.", "at 21:30", "2026-05-08T21:30:00+02:00"],
    ["tomorrow 9A.M", "tomorrow at 09:00", "2026-05-09T09:00:00+02:00"],
    ["at 12:15 am", "at 00:15", "2026-05-09T00:15:00+02:00"],
    ["at 12pm", "at 12:00", "2026-05-09T12:00:00+02:00"],
    ["at 9:00", "at 09:00", "2026-05-09T09:00:00+02:00"],
    ["at 13:23", "at 13:23", "2026-05-09T13:23:00+02:00"],
    ["at 13:23:01", "at 13:23:01", "2026-05-08T13:23:01+02:00"],
    ["tomorrow", "tomorrow at 09:00", "2026-05-09T09:00:00+02:00"],
    ["TOMORROW at 8am", "tomorrow at 08:00", "2026-05-09T08:00:00+02:00"],
    ["tomorrow 23:59", "tomorrow at 23:59", "2026-05-09T23:59:00+02:00"],
    ["on 2026-06-01", "on 2026-06-01 at 09:00", "2026-06-01T09:00:00+02:00"],
    ["on 2026-12-01 at 12:00", "on 2026-12-01 at 12:00", "2026-12-01T12:00:00+01:00"],
    ["on 2028-02-29 at 6 am", "on 2028-02-29 at 06:00", "2028-02-29T06:00:00+01:00"],
    ["on 2126-05-08 at 13:23", "on 2126-05-08 at 13:23", "2126-05-08T13:23:00+02:00"],
    ["at 2026-06-01T12:00:00Z", "on 2026-06-01 at 14:00", "2026-06-01T14:00:00+02:00"],
    ["at 2026-10-25T02:30:00+01:00", "at 2026-10-25T02:30:00+01:00", "2026-10-25T02:30:00+01:00"],
  ])("%s is %s, that is %s", (phrase, canonical, moment) => {
    const rule = parse(phrase);
    expect(scheduleKind(rule)).toBe("once");
    expect(canonicalForm(rule)).toBe(canonical);
    expect(isoText(TZ, nextMoment(rule, { after: NOW, anchor: NOW }) as number)).toBe(moment);
  });
});

describe("a phrase for many moments", () => {
  test.each([
    ["every hour", "every hour", "2026-05-08T14:23:00+02:00"],
    ["hourly", "every hour", "2026-05-08T14:23:00+02:00"],
    ["every 15 minutes", "every 15 minutes", "2026-05-08T13:38:00+02:00"],
    ["every15min", "every 15 minutes", "2026-05-08T13:38:00+02:00"],
    ["every 60 minutes", "every hour", "2026-05-08T14:23:00+02:00"],
    ["every 36 hours", "every 36 hours", "2026-05-10T01:23:00+02:00"],
    ["every minute", "every minute", "2026-05-08T13:24:00+02:00"],
    ["every 30 seconds", "every 30 seconds", "2026-05-08T13:23:30+02:00"],
    ["every day", "every day at 09:00", "2026-05-09T09:00:00+02:00"],
    ["daily", "every day at 09:00", "2026-05-09T09:00:00+02:00"],
    ["daily at 18:00", "every day at 18:00", "2026-05-08T18:00:00+02:00"],
    ["every day at 6:05 pm", "every day at 18:05", "2026-05-08T18:05:00+02:00"],
    ["every day at 6:05 p.m.", "every day at 18:05", "2026-05-08T18:05:00+02:00"],
    ["every 2 days", "every 2 days at 09:00", "2026-05-09T09:00:00+02:00"],
    ["every 2 days at 14:00", "every 2 days at 14:00", "2026-05-08T14:00:00+02:00"],
    ["every other day", "every 2 days at 09:00", "2026-05-09T09:00:00+02:00"],
    ["every other day at noon", "every 2 days at 12:00", "2026-05-09T12:00:00+02:00"],
    ["every other week", "every 2 weeks on Mon at 09:00", "2026-05-11T09:00:00+02:00"],
    ["every other friday at 10:00", "every 2 weeks on Fri at 10:00", "2026-05-15T10:00:00+02:00"],
    ["every other hour", "every 2 hours", "2026-05-08T15:23:00+02:00"],
    ["every two hours", "every 2 hours", "2026-05-08T15:23:00+02:00"],
    ["every half hour", "every 30 minutes", "2026-05-08T13:53:00+02:00"],
    ["every half an hour", "every 30 minutes", "2026-05-08T13:53:00+02:00"],
    ["every 1 hour 30 minutes", "every 90 minutes", "2026-05-08T14:53:00+02:00"],
    ["every day at midnight", "every day at 00:00", "2026-05-09T00:00:00+02:00"],
    ["daily at noon", "every day at 12:00", "2026-05-09T12:00:00+02:00"],
    ["every weekday at noon", "every weekday at 12:00", "2026-05-11T12:00:00+02:00"],
    ["every week", "every Mon at 09:00", "2026-05-11T09:00:00+02:00"],
    ["weekly", "every Mon at 09:00", "2026-05-11T09:00:00+02:00"],
    ["every week at 10:00", "every Mon at 10:00", "2026-05-11T10:00:00+02:00"],
    ["every week on monday at 09:00", "every Mon at 09:00", "2026-05-11T09:00:00+02:00"],
    ["weekly on Thurs at 1pm", "every Thu at 13:00", "2026-05-14T13:00:00+02:00"],
    ["every 2 weeks", "every 2 weeks on Mon at 09:00", "2026-05-11T09:00:00+02:00"],
    ["every 2 weeks on fri at 9am", "every 2 weeks on Fri at 09:00", "2026-05-15T09:00:00+02:00"],
    ["every monday at 09:00", "every Mon at 09:00", "2026-05-11T09:00:00+02:00"],
    ["EVERY  Friday", "every Fri at 09:00", "2026-05-15T09:00:00+02:00"],
    ["every Mon and Thu at 09:00", "every Mon and Thu at 09:00", "2026-05-11T09:00:00+02:00"],
    ["every fri, mon,wed", "every Mon, Wed and Fri at 09:00", "2026-05-11T09:00:00+02:00"],
    ["every sat, and sun 8pm", "every Sat and Sun at 20:00", "2026-05-09T20:00:00+02:00"],
    ["every tue & tuesday", "every Tue at 09:00", "2026-05-12T09:00:00+02:00"],
    ["every weekday", "every weekday at 09:00", "2026-05-11T09:00:00+02:00"],
    ["every mon, tue, wed, thu and fri", "every weekday at 09:00", "2026-05-11T09:00:00+02:00"],
    ["0 9 * * 1-5", "0 9 * * 1-5", "2026-05-11T09:00:00+02:00"],
    ["*/10  *  * * * *", "*/10 * * * * *", "2026-05-08T13:23:10+02:00"],
    ["@daily", "@daily", "2026-05-09T00:00:00+02:00"],
  ])("%s is %s, first %s", (phrase, canonical, moment) => {
    const rule = parse(phrase);
    expect(scheduleKind(rule)).toBe("recurring");
    expect(canonicalForm(rule)).toBe(canonical);
    expect(isoText(TZ, nextMoment(rule, { after: NOW, anchor: NOW }) as number)).toBe(moment);
  });

  test.each(WEEKDAYS)("every %s comes on that day, however it is written", (weekday) => {
    const long = { Mon: "Monday", Tue: "Tuesday", Wed: "Wednesday", Thu: "Thursday" }[weekday as string];
    const rule = parse(`every ${weekday}`);
    expect(rule).toEqual(
      parse(`every ${(long ?? `${weekday === "Sat" ? "Satur" : weekday}day`).toUpperCase()}`),
    );
    const moment = nextMoment(rule, { after: NOW, anchor: NOW }) as number;
    expect(new Date(moment).toUTCString().slice(0, 3)).toBe(weekday);
  });
});

test.each(ACCEPTED_FORMS)("the example of $form is accepted, and is $kind", ({ example, kind }) => {
  expect(scheduleKind(parse(example))).toBe(kind);
});

describe("a phrase is refused", () => {
  test.each([
    ["", "it is empty"],
    ["   ", "it is empty"],
    ["evry day", 'did you mean "every"?'],
    ["tomorow", 'did you mean "tomorrow"?'],
    ["every mondy at 09:00", 'after "every" comes "mondy": did you mean "monday"?'],
    ["in 5 minuts", 'did you mean "minutes"?'],
    [
      "sometime soon",
      'it begins with "sometime", but one of in, at, today, tonight, tomorrow, on, next, every',
    ],
    ["17:00", "but one of in, at"],
    ["every", 'after "every" comes nothing'],
    ["in 5", "a unit like minutes is needed"],
    ["in thirteen minutes", "but a number is needed"],
    ["in fife minutes", 'did you mean "five"?'],
    ["in zero hours", "the number must be at least 1"],
    ["every zero minutes", "the number must be at least 1"],
    ["in half", 'comes nothing, but "an hour" is needed'],
    ["in half a day", 'comes "a", but "an hour" is needed'],
    ["in 1 hour 30", "a unit like minutes is needed"],
    ["in 30 minutes 1 hour", "larger units come first"],
    ["in 1 hour 1 hour", "larger units come first"],
    ["in 1 hour and", "comes nothing, but a number is needed"],
    ["in 1 hour 0 minutes", "the number must be at least 1"],
    ["every 1 hour 1 day", "larger units come first"],
    ["every day 2 hours", "may be a morning or an evening"],
    ["today", '"today" takes a time, as in "today at 17:00"'],
    ["today at 13:23", "that is in the past"],
    ["today at 9am", "that is in the past"],
    ["today at noon", "that is in the past"],
    ["tonight", '"tonight" takes a time from 17:00 to 23:59'],
    ["tonight at 1am", '"tonight" takes a time from 17:00 to 23:59'],
    ["tonight at midnight", "midnight may be the beginning of that day or its end: write 00:00 or 23:59"],
    ["today at midnight", "midnight may be the beginning of that day or its end: write 00:00 or 23:59"],
    ["tomorrow at midnight", "midnight may be the beginning of that day or its end"],
    ["on monday at midnight", "midnight may be the beginning of that day or its end"],
    ["every monday at midnight", "midnight may be the beginning of that day or its end"],
    ["at midnigt", 'did you mean "midnight"?'],
    ["on mondy", 'did you mean "monday"?'],
    ["on mon and tue", 'nothing can follow "on mon", but "and" does'],
    ["next", "comes nothing, but a weekday like monday is needed"],
    ["next week", 'comes "week", but a weekday like monday is needed'],
    ["next month", "but a weekday like monday is needed"],
    ["every other", "comes nothing, but a unit or a weekday is needed"],
    ["every other weekday", "but a unit or a weekday is needed"],
    ["every other hour at 10:00", "every 2 hours counts elapsed time"],
    ["every day at", "a time like 17:00 is needed"],
    ["every day at 09:00 please", 'nothing can follow "every day at 09:00", but "please" does'],
    ["every mon tue", 'nothing can follow "every mon", but "tue" does'],
    ["every mon and", "a day like Mon is needed"],
    ["every week on weekday", 'after "every week on" comes "weekday", but a day like Mon is needed'],
    ["every weekend", 'after "every" comes "weekend", but a number, a unit or a weekday is needed'],
    ["every 2nd day", 'after "every 2" comes "nd", but a unit like minutes is needed'],
    ["one day", 'it begins with "one", but one of in, at'],
    ["every wensday", 'did you mean "wednesday"?'],
    ["tommorow", 'did you mean "tomorrow"?'],
    ["at 9", "may be a morning or an evening"],
    ["every day at 7", "may be a morning or an evening"],
    ["at 24:00", "24:00 is no time of day"],
    ["at 9:5", "9:5 is no time of day"],
    ["at 9:60", "9:60 is no time of day"],
    ["at 13:00 pm", "13:00pm is no time of day"],
    ["at 0am", "0am is no time of day"],
    ["at 13 p.m.", "13pm is no time of day"],
    ["at 9 a.", "may be a morning or an evening"],
    ["at 123:00", "no time of day"],
    ["in 0 minutes", "the number must be at least 1"],
    ["every 0 hours", "the number must be at least 1"],
    ["in -5 minutes", "but a number is needed"],
    ["in 1.5 hours", "whole numbers only"],
    ["every 999 ms", "the shortest step is 1 second"],
    ["every 2 hours at 10:00", "counts elapsed time"],
    ["every month", "does not say which day"],
    ["in 3 months", "does not say which day"],
    ["every 2 mondays", 'write "every 2 weeks on Mon"'],
    ["on 01/02/2027", "but a date like 2030-06-01, or a weekday is needed"],
    ["on 2026-02-29", "there is no 2026-02-29"],
    ["on 2026-13-01", "there is no 2026-13-01"],
    ["on 2026-05-08", "that is in the past"],
    ["on 2026-05-08 at 13:23", "that is in the past"],
    ["on 2025-06-01 at 12:00", "that is in the past"],
    ["at 2020-01-01T00:00:00Z", "that is in the past"],
    ["on 2126-05-08 at 13:24", "more than 100 years ahead"],
    ["on 9999-12-31", "more than 100 years ahead"],
    ["in 101 years", "does not say which day"],
    ["in 36526 days", "more than 100 years"],
    ["every 99999999999999999999999 weeks", "more than 100 years"],
    ["every 876600 hours 1 minute", "more than 100 years"],
    [`in ${"9".repeat(400)} minutes`, "more than 100 years"],
    [`every ${"mon, ".repeat(200)}`, "longer than 500 characters"],
    ["0 0 30 2 *", "no such day comes in the next 100 years"],
    ["0 0 31 4,6,9,11 *", "no such day comes in the next 100 years"],
    ["61 * * * *", 'the minute "61" takes 0 to 59,'],
    ["1 2 3 4", "5 fields"],
    ["* * * * * * *", "5 fields"],
    ["@reboot", "the names are @hourly"],
    ["@dayly", "did you mean @daily?"],
    [`${"0,".repeat(600)}0 0 * * *`, "longer than 1000 characters"],
  ])("%s", (phrase, fault) => {
    const error = refusal(phrase);
    expect(error.message).toContain(fault);
    expect(error).toMatchObject({ code: "invalid_field", status: 400 });
    expect(error.details).toEqual({ field: "schedule", accepted: ACCEPTED_FORMS.map(({ form }) => form) });
  });
});

const WORDS = [
  ..."in at on every tomorrow hourly daily weekly day days week weeks weekday hour minutes monday tue sun and a one twelve zero half an other today tonight next noon midnight".split(
    " ",
  ),
  ..."09:00 9am 25:00 pm 5 0 2 99999 2027-06-01 2027-02-30 , : . * */5 @daily - é 日本 \u0000 \ud800".split(
    " ",
  ),
];

/** Phrases of users who know the forms, more or less. */
const sensible = fc
  .record({
    start: fc.constantFrom(
      "in",
      "every",
      "EVERY",
      "every week on",
      "every 3 weeks on",
      "weekly on",
      "at",
      "tomorrow",
      "today",
      "tonight",
      "on",
      "next",
      "every other",
    ),
    what: fc.oneof(
      fc
        .tuple(fc.nat({ max: 9 }), fc.constantFrom("days", "hours", "h"), fc.constantFrom("5", "two"))
        .map(([count, unit, further]) => `${count} ${unit} ${further} min`),
      fc.constantFrom("half an hour", "seven days", "noon", "midnight"),
      fc
        .tuple(fc.nat({ max: 400 }), fc.constantFrom("min", "hours", "d", "days", "weeks", "s", "ms"))
        .map((pair) => pair.join(" ")),
      fc.subarray([...WEEKDAYS], { minLength: 1 }).map((days) => days.join(", ")),
      fc.subarray([...WEEKDAYS], { minLength: 2, maxLength: 2 }).map((days) => days.join(" and ")),
      fc.constantFrom("2101-06-01", "2099-11-01", "day", "weekday", "hour", ""),
    ),
    time: fc.constantFrom(
      "",
      "at 09:00",
      "at 02:30",
      "2:30 am",
      "at 01:30:15",
      "at 23:59:59.999",
      "12pm",
      "at noon",
      "at midnight",
    ),
  })
  .map(({ start, what, time }) => `${start} ${what} ${time}`);

describe("any phrase", () => {
  const phrases = fc.oneof(
    // Half of all, since hardly any of the others are accepted.
    { arbitrary: sensible, weight: 3 },
    fc.string({ unit: "binary", maxLength: 60 }),
    fc.array(fc.constantFrom(...WORDS), { maxLength: 8 }).map((words) => words.join(" ")),
    fc
      .array(fc.constantFrom("*", "0", "5", "*/7", "1-5", "L", "15W", "?", "31", "2", "MON", "5#3", "+1"), {
        minLength: 4,
        maxLength: 7,
      })
      .map((fields) => fields.join(" ")),
  );
  const zones = fc.constantFrom("UTC", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu");
  const moments = fc.integer({ min: Date.UTC(2000, 0), max: Date.UTC(2100, 0) });

  test("is refused with a RotaError, or has a next moment and a canonical form that means the same", () => {
    let accepted = 0;
    fc.assert(
      fc.property(phrases, zones, moments, (phrase, tz, now) => {
        let rule: Rule;
        try {
          rule = parse(phrase, { now, tz });
        } catch (error) {
          expect(error).toBeInstanceOf(RotaError);
          return;
        }
        accepted += 1;
        expect(nextMoment(rule, { after: now, anchor: now })).toBeGreaterThan(now);
        expect(JSON.parse(JSON.stringify(rule))).toEqual(rule);
        expect(parse(canonicalForm(rule), { now, tz })).toEqual(rule);
      }),
      { numRuns: 4_000 },
    );
    // Otherwise the property would say nothing.
    expect(accepted).toBeGreaterThan(200);
  });

  test("an object means the same as its canonical form", () => {
    const times = fc.integer({ min: 1, max: 100 * 365 * 86_400_000 });
    fc.assert(
      fc.property(zones, moments, times, (tz, now, ms) => {
        for (const schedule of [
          { kind: "at", atMs: now + ms },
          { kind: "every", everyMs: 1_000 + ms },
        ]) {
          const rule = parseSchedule(schedule, { now, tz });
          expect(parse(canonicalForm(rule), { now, tz })).toEqual(rule);
        }
      }),
      { numRuns: 500 },
    );
  });
});
