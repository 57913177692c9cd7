import fc from "fast-check";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { changesIn, shownAt } from "../../test/support/watched-clock.ts";
import { checkZone, localZone, momentOf, spanAt, wallAt } from "./zone.ts";

describe("a zone", () => {
  test.each([
    ["Europe/Berlin", "Europe/Berlin"],
    ["europe/berlin", "Europe/Berlin"],
    ["asia/kathmandu", "Asia/Kathmandu"],
    ["UTC", "UTC"],
    ["Etc/GMT+3", "Etc/GMT+3"],
  ])("%s is %s", (written, name) => {
    expect(checkZone(written)).toBe(name);
  });

  test.each([
    ["Berlin", "did you mean Europe/Berlin?"],
    ["new york", "did you mean America/New_York?"],
    ["Europe/Brelin", "did you mean Europe/Berlin?"],
    ["+02:00", "must be an IANA time zone"],
    ["", "must be an IANA time zone"],
    ["Mars/Olympus_Mons", "must be an IANA time zone"],
    ["../../etc/passwd", "must be an IANA time zone"],
    ["x".repeat(100_000), "must be an IANA time zone"],
    [null, "not null"],
    [2, "not 2"],
  ])("%s is refused", (written, sentence) => {
    expect(() => checkZone(written)).toThrow(
      expect.objectContaining({ code: "invalid_field", message: expect.stringContaining(sentence) }),
    );
  });
});

const ZONES = Intl.supportedValuesOf("timeZone");

describe("the time on the wall", () => {
  test("is what Intl says, in any zone at any time", () => {
    const moments = fc.integer({ min: Date.UTC(1975, 0) / 1_000, max: Date.UTC(2060, 0) / 1_000 });
    fc.assert(
      fc.property(fc.constantFrom(...ZONES), moments, (tz, seconds) => {
        expect(wallAt(tz, seconds * 1_000)).toBe(shownAt(tz, seconds * 1_000));
      }),
      { numRuns: 300 },
    );
  });

  test("stands still nowhere: spans follow each other without a gap, and change at their borders", () => {
    let moment = Date.UTC(2000, 0);
    for (let count = 0; count < 40; count++) {
      const span = spanAt("Africa/Casablanca", moment);
      expect(span.startMs).toBeLessThanOrEqual(moment);
      expect(span.endMs).toBeGreaterThan(moment);
      if (span.endMs === Number.POSITIVE_INFINITY) return;
      const following = spanAt("Africa/Casablanca", span.endMs);
      expect(following).toMatchObject({ startMs: span.endMs, offsetBeforeMs: span.offsetMs });
      expect(following.offsetMs).not.toBe(span.offsetMs);
      moment = span.endMs;
    }
  });

  test.each([
    ["America/New_York", 2026],
    ["Australia/Lord_Howe", 2026],
    ["Africa/Casablanca", 2024],
    ["Pacific/Apia", 2011],
  ])("changes in %s in %i when Intl says so", (tz, year) => {
    const starts = changesIn(tz, year);
    expect(starts).not.toEqual([]);
    for (const start of starts) expect(spanAt(tz, start).startMs).toBe(start);
  });
});

describe("the moment of a time on the wall", () => {
  const at = (tz: string, wall: string) => new Date(momentOf(tz, Date.parse(`${wall}Z`))).toISOString();

  test("is the first of two, and the end of a gap", () => {
    expect(at("America/New_York", "2026-11-01T01:30:00")).toBe("2026-11-01T05:30:00.000Z");
    expect(at("America/New_York", "2026-11-01T02:00:00")).toBe("2026-11-01T07:00:00.000Z");
    expect(at("America/New_York", "2026-03-08T02:30:00")).toBe("2026-03-08T07:00:00.000Z");
    expect(at("Pacific/Apia", "2011-12-30T09:00:00")).toBe("2011-12-30T10:00:00.000Z");
    expect(at("Pacific/Kiritimati", "2026-01-01T00:00:00")).toBe("2025-12-31T10:00:00.000Z");
  });

  test("leads back to that time where the clock shows it", () => {
    const walls = fc.integer({ min: Date.UTC(1990, 0) / 60_000, max: Date.UTC(2060, 0) / 60_000 });
    fc.assert(
      fc.property(fc.constantFrom(...ZONES), walls, (tz, minutes) => {
        const wall = minutes * 60_000;
        const moment = momentOf(tz, wall);
        const { startMs, offsetBeforeMs } = spanAt(tz, moment);
        const isSkipped = moment === startMs && wall >= startMs + offsetBeforeMs;
        if (!isSkipped) expect(wallAt(tz, moment)).toBe(wall);
      }),
      { numRuns: 300 },
    );
  });
});

// Node returns this on a machine whose TZ is empty or names no zone.
test.each([
  ["Asia/Kathmandu", "Asia/Kathmandu"],
  [undefined, "UTC"],
  ["Etc/Unknown", "UTC"],
  ["+03:00", "UTC"],
])("a machine in the zone %s has the zone %s", (timeZone, zone) => {
  const options = vi.spyOn(Intl.DateTimeFormat.prototype, "resolvedOptions");
  onTestFinished(() => options.mockRestore());
  options.mockReturnValueOnce({ timeZone } as Intl.ResolvedDateTimeFormatOptions);
  expect(localZone()).toBe(zone);
});
