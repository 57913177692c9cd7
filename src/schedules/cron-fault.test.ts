import fc from "fast-check";
import { expect, test } from "vitest";
import { isCron } from "./cron.ts";
import { cronFault } from "./cron-fault.ts";

test.each([
  ["60 * * * * *", 'the second "60" takes 0 to 59,'],
  ["61 * * * *", 'the minute "61" takes 0 to 59,'],
  ["0 61 * * * *", 'the minute "61" takes 0 to 59,'],
  ["0 24 * * *", 'the hour "24" takes 0 to 23,'],
  ["0 0 0 * *", 'the day of the month "0" takes 1 to 31,'],
  ["0 0 32W * *", 'the day of the month "32W" takes 1 to 31,'],
  ["0 0 * 13 *", 'the month "13" takes 1 to 12 or JAN to DEC,'],
  ["0 0 * * 8", 'the weekday "8" takes 0 to 7 (0 and 7 are Sunday) or SUN to SAT,'],
  ["0 0 * * 5#6", 'the weekday "5#6" takes'],
  ["0 0 * * funday", 'the weekday "funday" takes'],
  ["30-90 0 * * *", 'the minute "30-90" takes'],
  ["9-5 0 * * *", 'the minute "9-5" takes'],
  ["0/70 * * * *", 'the minute "0/70" takes'],
  ["1,,2 0 * * *", 'the minute "1,,2" takes'],
  ["* 25 * 13 *", 'the hour "25" takes'],
])("%s: %s", (expr, fault) => {
  expect(cronFault(expr)).toContain(fault);
});

test("a value of any length is named in a line", () => {
  expect(cronFault(`${"9".repeat(900)} * * * *`).length).toBeLessThan(200);
});

test("whatever is wrong, a field is named", () => {
  const value = fc.constantFrom(
    "*",
    "0",
    "7",
    "61",
    "*/0",
    "*/99",
    "L",
    "15W",
    "W",
    "?",
    "5#3",
    "5#9",
    "+1",
    "-",
    "x",
  );
  const expressions = fc.array(value, { minLength: 5, maxLength: 6 }).map((values) => values.join(" "));
  fc.assert(
    fc.property(expressions, (expr) => {
      fc.pre(!isCron(expr));
      expect(cronFault(expr)).toMatch(/^the (second|minute|hour|day of the month|month|weekday) "/);
    }),
  );
});
