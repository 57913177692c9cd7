import fc from "fast-check";
import { expect, test } from "vitest";
import { finished } from "../../test/support/finished.ts";
import { RotaError } from "../model/errors.ts";
import { ACCEPTED_FORMS } from "./accepted-forms.ts";
import { END_OF_TIME_MS } from "./horizon.ts";
import { previewSteps } from "./preview.ts";
import { parsePreviewInput } from "./preview-input.ts";

const WHEN = { now: Date.parse("2026-05-08T11:23:00Z"), tz: "Europe/Berlin" };
const ZONES = Intl.supportedValuesOf("timeZone");

test("what the input leaves out is as it is now, here, and five times", () => {
  expect(parsePreviewInput({ schedule: "hourly" }, WHEN)).toEqual({
    rule: { kind: "every", everyMs: 3_600_000, tz: "Europe/Berlin" },
    from: WHEN.now,
    count: 5,
  });
});

test("a phrase counts from the moment that is given, not from now", () => {
  const input = { schedule: "on 2020-06-01 at 12:00", tz: "UTC", from: "2020-01-01T00:00:00Z" };
  expect(parsePreviewInput(input, WHEN).rule).toMatchObject({ atMs: Date.parse("2020-06-01T12:00:00Z") });
});

test("every form, in any zone and from any moment, is previewed in order or refused", () => {
  const schedules = ACCEPTED_FORMS.map(({ example }) => example);
  const moments = fc.integer({ min: 0, max: END_OF_TIME_MS - 1 }).map((ms) => new Date(ms));
  fc.assert(
    fc.property(fc.constantFrom(...schedules), fc.constantFrom(...ZONES), moments, (schedule, tz, from) => {
      let input: ReturnType<typeof parsePreviewInput>;
      try {
        input = parsePreviewInput({ schedule, tz, from, count: 3 }, WHEN);
      } catch (error) {
        expect((error as Error).message).toMatch(/in the past|100 years/);
        return;
      }
      // Offsets with seconds, which some zones had until 1972, are nothing to Date.parse.
      const moments = finished(previewSteps(input.rule, input))
        .next.map(Date.parse)
        .filter((ms) => !Number.isNaN(ms));
      const all = [from.getTime(), ...moments];
      expect(all).toEqual([...new Set(all)].sort((a, b) => a - b));
    }),
    { numRuns: 150 },
  );
});

test("any input is accepted or refused with a RotaError", () => {
  const fields = fc.record(
    {
      schedule: fc.oneof(fc.constant("hourly"), fc.anything()),
      tz: fc.oneof(fc.constantFrom("UTC", "Etc/Unknown", "+02:00"), fc.anything()),
      from: fc.oneof(fc.date(), fc.anything()),
      count: fc.oneof(fc.integer({ max: 2_000 }), fc.anything()),
    },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(fc.oneof(fields, fc.anything()), (input) => {
      try {
        const { from, count } = parsePreviewInput(input, WHEN);
        expect([from >= 0 && from < END_OF_TIME_MS, count >= 1 && count <= 1_000]).toEqual([true, true]);
      } catch (error) {
        expect(error).toBeInstanceOf(RotaError);
      }
    }),
    { numRuns: 1_000 },
  );
});
