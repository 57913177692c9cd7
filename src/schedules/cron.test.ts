import { expect, test } from "vitest";
import { readCron } from "./cron.ts";

function next(expr: string, from: string, count: number): string[] {
  const found: string[] = [];
  let wall: number | null = Date.parse(`${from}Z`);
  while (found.length < count) {
    wall = readCron(expr).next(wall);
    if (wall === null) break;
    found.push(new Date(wall).toISOString().slice(0, -".000Z".length));
  }
  return found;
}

test.each([
  ["30 9 * * 1-5", "2026-05-08T09:30:00", ["2026-05-11T09:30:00"]],
  ["30 9 * * MON,fri", "2026-05-08T09:29:59.999", ["2026-05-08T09:30:00", "2026-05-11T09:30:00"]],
  ["15 30 9 * * *", "2026-05-08T09:30:14.500", ["2026-05-08T09:30:15", "2026-05-09T09:30:15"]],
  ["0 0 * * 7", "2026-05-08T00:00:00", ["2026-05-10T00:00:00"]],
  ["0 0 29 2 *", "2026-05-08T00:00:00", ["2028-02-29T00:00:00", "2032-02-29T00:00:00"]],
  ["0 12 L * *", "2026-02-01T00:00:00", ["2026-02-28T12:00:00", "2026-03-31T12:00:00"]],
  ["0 12 * * 5#2", "2026-05-01T00:00:00", ["2026-05-08T12:00:00", "2026-06-12T12:00:00"]],
  ["0 12 * * 5L", "2026-05-01T00:00:00", ["2026-05-29T12:00:00"]],
  ["0 12 15W * *", "2026-08-01T00:00:00", ["2026-08-14T12:00:00"]],
  ["@hourly", "2026-05-08T09:30:00", ["2026-05-08T10:00:00"]],
  ["@weekly", "2026-05-08T09:30:00", ["2026-05-10T00:00:00"]],
  ["@MONTHLY", "2026-05-08T09:30:00", ["2026-06-01T00:00:00"]],
  ["@yearly", "2026-05-08T09:30:00", ["2027-01-01T00:00:00"]],
])("%s after %s comes at %j", (expr, from, expected) => {
  expect(next(expr, from, expected.length)).toEqual(expected);
});

test("matches either day if both the day of the month and the weekday are restricted", () => {
  expect(next("0 0 13 * 5", "2026-05-01T00:00:00", 4)).toEqual([
    "2026-05-08T00:00:00",
    "2026-05-13T00:00:00",
    "2026-05-15T00:00:00",
    "2026-05-22T00:00:00",
  ]);
});

test.each(["0 0 1,31 * *", "0 0 */5 * *", "0 0 1,30 * *"])("%s does not miss the first of March", (expr) => {
  expect(next(expr, "2026-02-27T00:00:00", 1)).toEqual(["2026-03-01T00:00:00"]);
});

test.each([
  ["* * * * *", false],
  ["0 0-23 * * *", false],
  ["0 0-11,12-23 1 1 *", false],
  ["@hourly", false],
  ["* 2 * * *", true],
  ["0 */2 * * *", true],
  ["0 1-23 * * *", true],
  ["@daily", true],
])("%s: that it names times of a day is %s", (expr, isFixed) => {
  expect(readCron(expr).isFixed).toBe(isFixed);
});

test("the search for a day that never comes ends", () => {
  expect(readCron("0 0 30 2 *").next(Date.UTC(2026, 0))).toBeNull();
});

test("a search from an earlier time returns the same result as before", () => {
  const cron = readCron("0 0 1 6 *");
  expect(cron.next(Date.UTC(2030, 0))).toBe(Date.UTC(2030, 5, 1));
  expect(cron.next(Date.UTC(2020, 0))).toBe(Date.UTC(2020, 5, 1));
});
