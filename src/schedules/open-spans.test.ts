import { describe, expect, test } from "vitest";
import { openSpans } from "./open-spans.ts";

const rule = { kind: "every", everyMs: 10, tz: "UTC" } as const;
const schedule = { rule, anchorAt: 0, untilAt: null, nextFireAt: 10 };

describe("due times that have passed", () => {
  test("are one span if none has run", () => {
    expect(openSpans(schedule, 35)).toEqual({
      spans: [{ first: 10, until: 35, isFollowed: false }],
      nextFireAt: 40,
    });
  });

  test("end at the end of the schedule", () => {
    expect(openSpans({ ...schedule, untilAt: 25 }, 35)).toEqual({
      spans: [{ first: 10, until: 25, isFollowed: false }],
      nextFireAt: null,
    });
  });

  test("are split at those that have run, and the next due time has not run", () => {
    const taken = { dueAts: [10, 30, 40, 60, 70], isComplete: true };
    expect(openSpans({ ...schedule, taken }, 55)).toEqual({
      spans: [
        { first: 20, until: 29, isFollowed: true },
        { first: 50, until: 55, isFollowed: false },
      ],
      nextFireAt: 80,
    });
  });

  test("end at the last one that is known to have run", () => {
    const taken = { dueAts: [20, 30], isComplete: false };
    expect(openSpans({ ...schedule, taken }, 95)).toEqual({
      spans: [{ first: 10, until: 19, isFollowed: true }],
      nextFireAt: 40,
    });
  });

  test("have at most as many spans as one plan takes", () => {
    const dueAts = Array.from({ length: 500 }, (_, index) => 20 * (index + 1));
    const { spans, nextFireAt } = openSpans({ ...schedule, taken: { dueAts, isComplete: true } }, 20_000);
    expect(spans).toHaveLength(100);
    expect(nextFireAt).toBe((spans.at(-1)?.first ?? 0) + 20);
  });
});
