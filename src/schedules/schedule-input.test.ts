import fc from "fast-check";
import { expect, test } from "vitest";
import { RotaError } from "../model/errors.ts";
import { parseSchedule } from "./schedule-input.ts";

const NOW = Date.parse("2026-05-08T11:23:00Z");
const WHEN = { now: NOW, tz: "Europe/Berlin" };

test.each([
  [
    { kind: "at", atMs: NOW + 60_000 },
    { kind: "once", atMs: NOW + 60_000, phrase: "on 2026-05-08 at 13:24", tz: "Europe/Berlin" },
  ],
  [
    { kind: "every", everyMs: 1_000 },
    { kind: "every", everyMs: 1_000, tz: "Europe/Berlin" },
  ],
  [
    { kind: "cron", expr: " 0  9 * * 1-5 " },
    { kind: "cron", expr: "0 9 * * 1-5", tz: "Europe/Berlin" },
  ],
  [
    { kind: "cron", expr: "@daily", tz: "asia/kathmandu" },
    { kind: "cron", expr: "@daily", tz: "Asia/Kathmandu" },
  ],
])("%j is a rule", (schedule, rule) => {
  expect(parseSchedule(schedule, WHEN)).toEqual(rule);
});

test.each([
  [undefined, "schedule", "`schedule` is missing: it must be a phrase, or an object"],
  [null, "schedule", "must be a phrase, or an object"],
  [42, "schedule", "must be a phrase, or an object"],
  [["every day"], "schedule", "must be a phrase, or an object"],
  [{}, "schedule.kind", "must be at, every or cron"],
  [{ kind: "crn" }, "schedule.kind", "did you mean `cron`?"],
  [{ kind: "toString" }, "schedule.kind", "must be at, every or cron"],
  [{ kind: "at" }, "schedule.atMs", "must be an integer of milliseconds"],
  [{ kind: "at", atMs: "soon" }, "schedule.atMs", 'not "soon"'],
  [{ kind: "at", atMs: NOW }, "schedule.atMs", "that is in the past"],
  [{ kind: "at", atMs: 8.64e15 }, "schedule.atMs", "more than 100 years ahead"],
  [{ kind: "at", atMs: Number.NaN }, "schedule.atMs", "must be an integer"],
  [{ kind: "at", everyMs: 5_000 }, "schedule.everyMs", "unknown field"],
  [{ kind: "every", everyMs: 999 }, "schedule.everyMs", "from 1000 to"],
  [{ kind: "every", everyMs: 1_000.5 }, "schedule.everyMs", "must be an integer"],
  [{ kind: "every", everyMs: 1e15 }, "schedule.everyMs", "from 1000 to"],
  [{ kind: "cron" }, "schedule.expr", "must be a cron expression"],
  [{ kind: "cron", expr: 5 }, "schedule.expr", "must be a cron expression"],
  [{ kind: "cron", expr: "" }, "schedule.expr", "5 fields"],
  [{ kind: "cron", expr: "every day" }, "schedule.expr", "5 fields"],
  [{ kind: "cron", expr: "2030-01-01T00:00:00" }, "schedule.expr", "5 fields"],
  [{ kind: "cron", expr: "0 0 30 2 *" }, "schedule.expr", "no such day comes"],
  [{ kind: "cron", expr: "0 9 * * *", tz: "Berlin" }, "schedule.tz", "did you mean Europe/Berlin?"],
  [{ kind: "cron", expr: "0 9 * * *", timezone: "UTC" }, "schedule.timezone", "unknown field"],
])("%j is refused", (schedule, field, sentence) => {
  expect(() => parseSchedule(schedule, WHEN)).toThrow(
    expect.objectContaining({
      code: "invalid_field",
      message: expect.stringContaining(sentence),
      details: expect.objectContaining({ field }),
    }),
  );
  expect(() => parseSchedule(schedule, WHEN)).not.toThrow("undefined");
});

test("what is refused names the field that it came in", () => {
  expect(() => parseSchedule("soon", WHEN, "when")).toThrow(/^`when` "soon"/);
});

test("any input is a rule or refused with a RotaError", () => {
  const objects = fc.record(
    {
      kind: fc.oneof(fc.constantFrom("at", "every", "cron"), fc.anything()),
      atMs: fc.oneof(fc.integer(), fc.anything()),
      everyMs: fc.oneof(fc.integer(), fc.anything()),
      expr: fc.oneof(fc.string(), fc.anything()),
      tz: fc.oneof(fc.constantFrom("UTC", "Europe/Berlin"), fc.anything()),
    },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(fc.oneof(objects, fc.anything()), (schedule) => {
      try {
        parseSchedule(schedule, WHEN);
      } catch (error) {
        expect(error).toBeInstanceOf(RotaError);
      }
    }),
    { numRuns: 2_000 },
  );
});
