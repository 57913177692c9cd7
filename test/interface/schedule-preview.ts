import { describe, expect, test } from "vitest";
import { ACCEPTED_FORMS } from "../../src/schedules/accepted-forms.ts";
import { isoText } from "../../src/schedules/moment-text.ts";
import { localZone } from "../../src/schedules/zone.ts";
import { errorOf, type Open } from "./opened.ts";

export function describeSchedulePreview(open: Open): void {
  describe("a preview of schedules", () => {
    test("returns what was understood, when it is due by the clocks of its zone, and what they do", async () => {
      const { api } = await open();
      expect(
        await api.schedules.preview({
          schedule: "EVERY day at 2:30am",
          tz: "europe/berlin",
          from: "2030-03-30T00:00:00Z",
          count: 2,
        }),
      ).toEqual({
        normalized: "every day at 02:30",
        kind: "recurring",
        next: ["2030-03-30T02:30:00+01:00", "2030-03-31T03:00:00+02:00"],
        notes: [
          "In Europe/Berlin the clock skips from 2030-03-31 02:00 to 2030-03-31 03:00: what is due in between is due at the end of the gap, once.",
        ],
      });
    });

    test("begins now, in the zone of the server, and has five moments, by default", async () => {
      const { api, clock } = await open();
      await clock.advance(1_500);
      const hours = [1, 2, 3, 4, 5].map((n) => isoText(localZone(), clock.now() + n * 3_600_000));
      expect((await api.schedules.preview({ schedule: "hourly" })).next).toEqual(hours);
      expect(await api.schedules.preview({ schedule: "in 2 hours" })).toMatchObject({
        normalized: "in 2 hours",
        kind: "once",
        next: [hours[1]],
      });
    });

    test("may be of objects, with a zone of their own, and begin at a Date", async () => {
      const { api } = await open();
      const from = new Date("2030-01-01T00:00:00Z");
      const next = async (schedule: Parameters<typeof api.schedules.preview>[0]["schedule"]) =>
        (await api.schedules.preview({ schedule, from, count: 1 })).next;
      const tz = "UTC";
      expect(await next({ kind: "every", everyMs: 90_000, tz })).toEqual(["2030-01-01T00:01:30+00:00"]);
      expect(await next({ kind: "at", atMs: from.getTime() + 1_000, tz })).toEqual([
        "2030-01-01T00:00:01+00:00",
      ]);
      expect(await next({ kind: "cron", expr: "0 9 * * *", tz: "Asia/Kathmandu" })).toEqual([
        "2030-01-01T09:00:00+05:45",
      ]);
    });

    test("of what is not understood is refused with what could be said instead", async () => {
      const { api } = await open();
      expect(await errorOf(api.schedules.preview({ schedule: "every mondy" }))).toMatchObject({
        name: "RotaError",
        code: "invalid_field",
        message: expect.stringContaining("every mondy"),
        details: { field: "schedule", accepted: ACCEPTED_FORMS.map(({ form }) => form) },
      });
    });

    test("is refused with the field that is wrong", async () => {
      const { api } = await open();
      const schedule = "hourly";
      for (const [input, field, sentence] of [
        [undefined, "schedule", "a preview takes an object"],
        [[schedule], "schedule", "a preview takes an object"],
        [{}, "schedule", "must be a phrase"],
        [{ schedule: { kind: "every", everyMs: 1 } }, "schedule.everyMs", "from 1000"],
        [{ schedule, tz: "Berlin" }, "tz", "did you mean Europe/Berlin?"],
        [{ schedule, tz: 5 }, "tz", "IANA time zone"],
        [{ schedule: { kind: "every", everyMs: 9_000, tz: "UTC" }, tz: "Asia/Tokyo" }, "tz", "is Asia/Tokyo"],
        [{ schedule, from: "tomorrow" }, "from", "RFC 3339"],
        [{ schedule, from: 1_893_456_000_000 }, "from", "RFC 3339"],
        [{ schedule, from: "1969-12-31T23:59:59Z" }, "from", "the years 1970 to 2999"],
        [{ schedule, from: "3000-01-01T00:00:00Z" }, "from", "the years 1970 to 2999"],
        [{ schedule, count: 0 }, "count", "from 1 to 1000"],
        [{ schedule, count: 1_001 }, "count", "from 1 to 1000"],
        [{ schedule, count: "5" }, "count", 'not "5"'],
        [{ schedule, form: "2030-01-01T00:00:00Z" }, "form", "did you mean `from`?"],
        [{ shedule: schedule }, "shedule", "did you mean `schedule`?"],
      ] as const) {
        const error = await errorOf(api.schedules.preview(input as never));
        expect(error).toMatchObject({
          code: "invalid_field",
          message: expect.stringContaining(sentence),
          details: { field },
        });
      }
    });

    test("is made while it drains, too, from the first moment to the last", async () => {
      const { api, rota } = await open();
      await rota.drain();
      const next = async (from: string) =>
        (await api.schedules.preview({ schedule: "every day at 00:00", tz: "UTC", from, count: 1_000 })).next;
      expect(await next("1970-01-01T00:00:00Z")).toHaveLength(1_000);
      expect(await next("2999-12-30T12:00:00Z")).toEqual(["2999-12-31T00:00:00+00:00"]);
    });
  });
}
