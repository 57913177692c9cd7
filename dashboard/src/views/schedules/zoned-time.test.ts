import { expect, test } from "vitest";
import { cityOf, formatInZone, formatSoon, nextClockChange, offsetIn, showsSame } from "./zoned-time.ts";

const NOW = Date.parse("2026-11-15T20:06:00Z");

test.each([
  ["2026-11-15T20:10:00Z", "Europe/Berlin", "21:10"],
  ["2026-11-15T23:30:00Z", "Europe/Berlin", "Mon 16 Nov 00:30"],
  ["2026-11-15T20:10:05.400Z", "Europe/Berlin", "21:10:05"],
  ["2026-11-15T23:30:00Z", "America/New_York", "18:30"],
  ["2027-03-28T01:00:00Z", "Europe/Berlin", "Sun 28 Mar 2027 03:00"],
  ["2026-11-16T00:00:00Z", "Nowhere/At_All", "Mon 16 Nov 00:00"],
])("%s in %s is %s", (at, zone, said) => {
  expect(formatInZone(Date.parse(at), NOW, zone)).toBe(said);
});

test("within a week the weekday says the day", () => {
  const say = (at: string) => formatSoon(Date.parse(at), NOW, "UTC");
  expect(say("2026-11-15T21:00:00Z")).toBe("21:00");
  expect(say("2026-11-16T02:30:00Z")).toBe("Mon 02:30");
  expect(say("2026-11-21T19:00:00Z")).toBe("Sat 19:00");
  expect(say("2026-11-22T19:00:00Z")).toBe("Sun 22 Nov 19:00");
});

test("the next clock change is found to the minute, and none where clocks do not change", () => {
  const change = nextClockChange("Europe/Berlin", NOW) ?? 0;
  expect(new Date(change).toISOString()).toMatch(/^2027-03-28T01:0[01]:00\.000Z$/);
  expect([offsetIn(change, "Europe/Berlin"), offsetIn(change - 120_000, "Europe/Berlin")]).toEqual([
    "UTC+2",
    "UTC+1",
  ]);
  expect(nextClockChange("Asia/Kolkata", NOW)).toBeUndefined();
});

test("zones are named by their place, and compared by what their clocks show", () => {
  expect(cityOf("America/Argentina/Buenos_Aires")).toBe("Buenos Aires");
  expect(showsSame(NOW, "Europe/Berlin", "Europe/Paris")).toBe(true);
  expect(showsSame(NOW, "Europe/Berlin", "Europe/London")).toBe(false);
});
