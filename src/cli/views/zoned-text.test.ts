import { expect, test } from "vitest";
import { zonedText } from "./zoned-text.ts";

test.each([
  ["UTC", "2026-05-11T07:00:00+00:00"],
  ["Europe/Berlin", "2026-05-11T09:00:00+02:00"],
  ["Asia/Kathmandu", "2026-05-11T12:45:00+05:45"],
  ["America/New_York", "2026-05-11T03:00:00-04:00"],
  ["Nowhere/Known", "2026-05-11T07:00:00+00:00"],
])("by the clocks of %s it is %s", (tz, text) => {
  expect(zonedText(Date.parse("2026-05-11T07:00:00Z"), tz)).toBe(text);
});

test("midnight is the beginning of a day, and what no zone is given for is shown as it is here", () => {
  const moment = Date.parse("2026-05-10T22:00:00Z");
  expect(zonedText(moment, "Europe/Berlin")).toBe("2026-05-11T00:00:00+02:00");
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
  expect(zonedText(moment)).toBe(zonedText(moment, timeZone));
});
