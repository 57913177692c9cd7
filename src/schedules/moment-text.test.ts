import { expect, test } from "vitest";
import { isoText, minuteText } from "./moment-text.ts";

test.each([
  ["Europe/Berlin", "2026-05-08T12:23:00Z", "2026-05-08T14:23:00+02:00", "2026-05-08 14:23"],
  ["America/New_York", "2026-01-01T04:59:59.999Z", "2025-12-31T23:59:59.999-05:00", "2025-12-31 23:59"],
  ["Asia/Kathmandu", "2026-05-08T12:23:30Z", "2026-05-08T18:08:30+05:45", "2026-05-08 18:08"],
  ["UTC", "2026-05-08T12:23:00Z", "2026-05-08T12:23:00+00:00", "2026-05-08 12:23"],
  ["Africa/Monrovia", "1971-01-01T00:00:00Z", "1970-12-31T23:15:30-00:44:30", "1970-12-31 23:15"],
])("in %s, %s is %s, or %s to the minute", (tz, moment, iso, minute) => {
  expect(isoText(tz, Date.parse(moment))).toBe(iso);
  expect(minuteText(tz, Date.parse(moment))).toBe(minute);
});
