import { expect, test } from "vitest";
import {
  jsonFlag,
  momentFlag,
  numberFlag,
  pastFlag,
  secondsFlag,
  secondsSpanFlag,
  spanFlag,
} from "../flags/flag-values.ts";
import { exactSpan, parseSpan, shownAgo, shownDue, shownSpan } from "./times.ts";

const NOW = Date.parse("2026-03-08T12:00:00Z");

test.each([
  [0, "0 ms"],
  [999, "999 ms"],
  [3_240, "3.2 s"],
  [42_900, "42 s"],
  [5 * 60_000, "5 min"],
  [3 * 3_600_000, "3 h"],
  [50 * 3_600_000, "2 d"],
])("%i ms is shown as %s", (ms, shown) => {
  expect(shownSpan(ms)).toBe(shown);
});

test.each([
  [2_000, "2 s"],
  [2_500, "2500 ms"],
  [90_000, "90 s"],
  [5_400_000, "90 min"],
  [7_200_000, "2 h"],
  [86_400_000, "1 d"],
])("%i ms, if a user set it, is shown as %s", (ms, shown) => {
  expect(exactSpan(ms)).toBe(shown);
});

test.each([
  ["2026-03-08T12:00:00.500Z", "now"],
  ["2026-03-08T11:59:57Z", "3 s ago"],
  ["2026-03-08T11:55:00Z", "5 min ago"],
  ["2026-03-08T15:00:00Z", "in 3 h"],
  ["2026-03-08T12:00:58.9Z", "in 59 s"],
  ["2026-03-08T12:59:59.100Z", "in 1 h"],
  ["2026-03-09T11:59:59.100Z", "in 1 d"],
])("%s is %s", (moment, shown) => {
  expect(shownAgo(moment, NOW)).toBe(shown);
});

test.each([
  ["2026-03-08T16:00:00+02:00", "in 2 h, Sun 16:00"],
  ["2026-03-09T09:00:00-05:00", "in 1 d, Mon 09:00"],
  ["2026-03-14T11:00:00+00:00", "in 6 d, Sat 11:00"],
  ["2026-03-16T09:00:00.250+00:00", "in 8 d, Mon 2026-03-16 09:00"],
])("what is due at %s is shown as %s", (moment, shown) => {
  expect(shownDue(moment, NOW)).toBe(shown);
});

test.each([
  ["500ms", 500],
  ["30s", 30_000],
  ["5m", 300_000],
  ["5 min", 300_000],
  ["1.5h", 5_400_000],
  ["2d", 172_800_000],
  ["1h30m", 5_400_000],
  ["1h 30m", 5_400_000],
  ["10 minutes", 600_000],
  ["1 hour", 3_600_000],
  ["1h and 5m", undefined],
  ["5constructor", undefined],
  ["30", undefined],
  ["-5m", undefined],
  ["5 weeks", undefined],
  ["", undefined],
])("%j is a span of %s ms", (text, ms) => {
  expect(parseSpan(text)).toBe(ms);
});

test("moments and spans on the command line become what the API takes", () => {
  for (const text of ["10m", "+10m", "in 10m", "in 10 minutes"]) {
    expect(momentFlag(text, NOW)).toBe("2026-03-08T12:10:00.000Z");
  }
  expect(momentFlag("2030-01-01T00:00:00Z", NOW)).toBe("2030-01-01T00:00:00Z");
  expect([spanFlag("30s"), spanFlag("5000"), spanFlag("soon")]).toEqual([30_000, 5_000, "soon"]);
  expect([numberFlag("-3"), numberFlag("high"), numberFlag("")]).toEqual([-3, "high", ""]);
  expect([secondsFlag("--wait", "5"), secondsFlag("--wait", "0.5"), secondsFlag("--wait", "2m")]).toEqual([
    5, 0.5, 120,
  ]);
});

test("spans become seconds, and spans back from now moments in seconds", () => {
  expect([secondsSpanFlag("2h"), secondsSpanFlag("90"), secondsSpanFlag("soon")]).toEqual([
    7_200,
    90,
    "soon",
  ]);
  const seconds = NOW / 1_000;
  expect(pastFlag("--since", "2h", NOW)).toBe(seconds - 7_200);
  expect(pastFlag("--since", "2026-03-08T11:59:59.5Z", NOW)).toBe(seconds - 1);
  expect(pastFlag("--since", "1746720000", NOW)).toBe(1_746_720_000);
});

test.each(["yesterday", "-5", "2026-03-08", ""])("--since %s is refused", (text) => {
  expect(() => pastFlag("--since", text, NOW)).toThrow(/^--since must be a span back from now like 2h/);
});

test.each(["0", "-1", "soon", ""])("--wait %s is refused", (text) => {
  expect(() => secondsFlag("--wait", text)).toThrow("--wait must be a number of seconds above 0");
});

test("what is no JSON is refused with the flag's name", () => {
  expect(jsonFlag("--params", '{"a":1}')).toEqual({ a: 1 });
  expect(() => jsonFlag("--params", "{a}")).toThrow(/^--params must be JSON/);
});
