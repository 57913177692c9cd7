import { describe, expect, test } from "vitest";
import type { Rule } from "../model/rule.ts";
import {
  deferWhileDisabled,
  heldUntil,
  PUSH_MS,
  resumeAfterEnable,
  type StandingSchedule,
} from "./stand-still.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const START = Date.UTC(2026, 0, 1);

function every(everyMs: number, more: Partial<StandingSchedule> = {}): StandingSchedule {
  const rule: Rule = { kind: "every", everyMs, tz: "UTC" };
  return {
    rule,
    anchorAt: START,
    untilAt: null,
    updatedAt: START,
    lastDueAt: null,
    nextFireAt: START + everyMs,
    ...more,
  };
}

const daily: StandingSchedule = {
  rule: { kind: "days", every: 1, at: "09:00", tz: "Europe/Berlin" },
  anchorAt: START,
  untilAt: null,
  updatedAt: START,
  lastDueAt: null,
  nextFireAt: START + 8 * HOUR,
};

describe("a schedule of a disabled tenant", () => {
  test("skips the due time, and is checked again an hour later", () => {
    const at = START + 5 * MINUTE;
    expect(deferWhileDisabled(every(5 * MINUTE), at + 30)).toEqual({
      skipped: { firstDueAt: at, dueAt: at, moments: 1 },
      nextFireAt: at + PUSH_MS,
    });
  });

  test("is always checked next at one of its due times", () => {
    expect(deferWhileDisabled(daily, daily.nextFireAt + 5).nextFireAt).toBe(daily.nextFireAt + DAY);
    expect(deferWhileDisabled(every(25 * MINUTE), START + 25 * MINUTE).nextFireAt).toBe(START + 100 * MINUTE);
    expect(deferWhileDisabled(every(HOUR), START + HOUR + 900).nextFireAt).toBe(START + 2 * HOUR);
  });

  test("with `until` is checked before that, and skips nothing after it", () => {
    const ending = every(25 * MINUTE, { untilAt: START + 80 * MINUTE });
    expect(deferWhileDisabled(ending, START + 25 * MINUTE)).toEqual({
      skipped: { firstDueAt: START + 25 * MINUTE, dueAt: START + 25 * MINUTE, moments: 1 },
      nextFireAt: START + 75 * MINUTE,
    });
    const last = { ...ending, lastDueAt: START + 25 * MINUTE, nextFireAt: START + 75 * MINUTE };
    expect(deferWhileDisabled(last, START + 10 * HOUR)).toEqual({
      skipped: { firstDueAt: START + 50 * MINUTE, dueAt: START + 75 * MINUTE, moments: 2 },
      nextFireAt: null,
    });
    expect(resumeAfterEnable(last, START + 60 * MINUTE)?.nextFireAt).toBe(START + 75 * MINUTE);
  });

  test("covers all due times since the last check with one row", () => {
    const [last, next] = [START + 5 * MINUTE, START + 65 * MINUTE];
    const { skipped } = deferWhileDisabled(
      every(5 * MINUTE, { lastDueAt: last, nextFireAt: next }),
      next + 10,
    );
    expect(skipped).toEqual({ firstDueAt: last + 5 * MINUTE, dueAt: next, moments: 12 });
  });

  test("has no row for due times while it was paused", () => {
    const paused = { lastDueAt: START + 5 * MINUTE, updatedAt: START + 52 * MINUTE };
    const { skipped } = deferWhileDisabled(
      every(5 * MINUTE, { ...paused, nextFireAt: START + HOUR - 5 * MINUTE }),
      START + HOUR,
    );
    expect(skipped).toEqual({ firstDueAt: START + 55 * MINUTE, dueAt: START + HOUR, moments: 2 });
  });

  test("is not due before now, however long ago the last check was", () => {
    const now = START + 30 * DAY + 123;
    for (const schedule of [every(MINUTE), every(HOUR), every(7 * HOUR), daily]) {
      const { skipped, nextFireAt } = deferWhileDisabled(schedule, now);
      expect(nextFireAt).toBeGreaterThan(now);
      expect(skipped?.dueAt).toBeLessThanOrEqual(now);
    }
  });
});

describe("a schedule of a tenant that is enabled again", () => {
  const waiting = every(5 * MINUTE, { lastDueAt: START + 5 * MINUTE, nextFireAt: START + 65 * MINUTE });

  test("continues with the first future due time, and has a row for those before it", () => {
    expect(resumeAfterEnable(waiting, START + 22 * MINUTE)).toEqual({
      skipped: { firstDueAt: START + 10 * MINUTE, dueAt: START + 20 * MINUTE, moments: 3 },
      nextFireAt: START + 25 * MINUTE,
    });
  });

  test("has no row if no due time came meanwhile", () => {
    expect(resumeAfterEnable(waiting, START + 7 * MINUTE)).toEqual({
      skipped: null,
      nextFireAt: START + 10 * MINUTE,
    });
  });

  test("is left alone if it was never deferred, also when it is due", () => {
    expect(resumeAfterEnable(every(5 * MINUTE), START + MINUTE)).toBeNull();
    expect(resumeAfterEnable(every(5 * MINUTE), START + 5 * MINUTE)).toBeNull();
    expect(
      resumeAfterEnable(
        { ...daily, lastDueAt: daily.nextFireAt, nextFireAt: daily.nextFireAt + DAY },
        START + DAY,
      ),
    ).toBeNull();
  });
});

test("one that was held is due at its only due time, however late, or at the next due time of its new rule", () => {
  const once: Rule = { kind: "once", atMs: START, phrase: "then", tz: "UTC" };
  expect(heldUntil({ rule: once, anchorAt: START, untilAt: null }, START + DAY)).toBe(START);
  expect(heldUntil(every(5 * MINUTE), START + 7 * MINUTE)).toBe(START + 10 * MINUTE);
});
