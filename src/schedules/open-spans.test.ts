import { describe, expect, test } from "vitest";
import { openSpans } from "./open-spans.ts";

const rule = { kind: "every", everyMs: 10, tz: "UTC" } as const;
const schedule = { rule, anchorAt: 0, untilAt: null, nextFireAt: 10 };

describe("the due times that have come", () => {
  test("are one span where none is taken", () => {
    expect(openSpans(schedule, 35)).toEqual({
      spans: [{ first: 10, until: 35, isFollowed: false }],
      nextFireAt: 40,
    });
  });

  test("end where the schedule does", () => {
    expect(openSpans({ ...schedule, untilAt: 25 }, 35)).toEqual({
      spans: [{ first: 10, until: 25, isFollowed: false }],
      nextFireAt: null,
    });
  });

  test("are cut at those that have run, and the next is one that has not", () => {
    const taken = { dueAts: [10, 30, 40, 60, 70], isComplete: true };
    expect(openSpans({ ...schedule, taken }, 55)).toEqual({
      spans: [
        { first: 20, until: 29, isFollowed: true },
        { first: 50, until: 55, isFollowed: false },
      ],
      nextFireAt: 80,
    });
  });

  test("go no further than it is known which have run", () => {
    const taken = { dueAts: [20, 30], isComplete: false };
    expect(openSpans({ ...schedule, taken }, 95)).toEqual({
      spans: [{ first: 10, until: 19, isFollowed: true }],
      nextFireAt: 40,
    });
  });

  test("are no more spans than one plan takes", () => {
    const dueAts = Array.from({ length: 500 }, (_, index) => 20 * (index + 1));
    const { spans, nextFireAt } = openSpans({ ...schedule, taken: { dueAts, isComplete: true } }, 20_000);
    expect(spans).toHaveLength(100);
    expect(nextFireAt).toBe((spans.at(-1)?.first ?? 0) + 20);
  });
});
