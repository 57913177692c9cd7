import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Rule } from "../model/rule.ts";
import { doubledMoments, unaccountedMoments } from "./account-for-moments.ts";
import { momentsBetween } from "./moments.ts";

const EVERY_TEN: Rule = { kind: "every", everyMs: 10, tz: "UTC" };
const AT = { rule: EVERY_TEN, anchor: 0, after: 0, limit: 100 };

describe("accounting for moments", () => {
  test("finds none missing where every moment has its row", () => {
    const spans = [10, 20, 30].map((at) => ({ firstDueAt: at, dueAt: at }));
    expect(unaccountedMoments({ ...AT, before: 40, spans })).toEqual([]);
  });

  test("returns the due times without a row, up to the next one", () => {
    const spans = [{ firstDueAt: 20, dueAt: 20 }];
    expect(unaccountedMoments({ ...AT, before: 50, spans })).toEqual([10, 30, 40]);
    expect(unaccountedMoments({ ...AT, before: 50, spans, limit: 2 })).toEqual([10, 30]);
  });

  test("accepts a row that covers several due times, in any order of rows", () => {
    const spans = [
      { firstDueAt: 50, dueAt: 50 },
      { firstDueAt: 10, dueAt: 40 },
    ];
    expect(unaccountedMoments({ ...AT, before: 70, spans })).toEqual([60]);
  });

  test("steps over a row that stands for a year of seconds at once", () => {
    const rule: Rule = { kind: "cron", expr: "* * * * * *", tz: "UTC" };
    const year = Date.UTC(2027, 0, 1);
    const spans = [{ firstDueAt: Date.UTC(2026, 0, 1, 0, 0, 1), dueAt: year }];
    const account = { rule, anchor: 0, after: Date.UTC(2026, 0, 1), before: year + 2_000, limit: 10 };
    expect(unaccountedMoments({ ...account, spans })).toEqual([year + 1_000]);
  });

  test("returns the same as a check of every due time", () => {
    const spans = fc.array(
      fc.tuple(fc.nat({ max: 200 }), fc.nat({ max: 40 })).map(([at, more]) => ({
        firstDueAt: at,
        dueAt: at + more,
      })),
      { maxLength: 8 },
    );
    fc.assert(
      fc.property(spans, fc.nat({ max: 250 }), (given, before) => {
        const all = momentsBetween(EVERY_TEN, { after: 0, anchor: 0, until: before - 1, limit: 1_000 });
        const missing = all.filter((at) => !given.some((span) => span.firstDueAt <= at && at <= span.dueAt));
        expect(unaccountedMoments({ ...AT, before, spans: given })).toEqual(missing);
      }),
    );
  });

  test("names a moment that has two rows", () => {
    const once = { firstDueAt: 10, dueAt: 20 };
    expect(doubledMoments([once, { firstDueAt: 30, dueAt: 30 }])).toEqual([]);
    expect(doubledMoments([{ firstDueAt: 20, dueAt: 30 }, once])).toEqual([20]);
  });
});
