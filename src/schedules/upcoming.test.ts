import { expect, test } from "vitest";
import type { Rule } from "../model/rule.ts";
import { momentsBetween } from "./moments.ts";
import { type DueSchedule, Upcoming } from "./upcoming.ts";

const HOUR = 3_600_000;
const tz = "UTC";

const RULES: readonly Rule[] = [
  { kind: "every", everyMs: 1_000, tz },
  { kind: "every", everyMs: 7_000, tz },
  { kind: "cron", expr: "*/5 * * * *", tz },
  { kind: "once", atMs: 90_000, phrase: "in 90 seconds", tz },
];

function scheduled(rule: Rule, rest: Partial<DueSchedule> = {}): DueSchedule {
  const nextFireAt = momentsBetween(rule, { after: 0, anchor: 0, until: HOUR, limit: 1 })[0] ?? null;
  return { rule, anchorAt: 0, nextFireAt, untilAt: null, runsLeft: null, ...rest };
}

/** Returns how many steps there were. */
function runThrough(steps: Generator<void, void, void>): number {
  return [...steps].length;
}

test.each([1, 10, 100, 2_000])("keeps the first %i due times of all schedules", (limit) => {
  const upcoming = new Upcoming({ from: 30_000, to: HOUR, limit });
  for (const rule of RULES) runThrough(upcoming.add(scheduled(rule)));
  const all = RULES.flatMap((rule) =>
    momentsBetween(rule, { after: 29_999, anchor: 0, until: HOUR, limit: 10_000 }),
  ).sort((a, b) => a - b);
  const { dueTimes, truncated } = upcoming.result;
  expect(dueTimes.map(({ at }) => at)).toEqual(all.slice(0, limit));
  expect(truncated).toBe(true);
});

test("says that nothing was left out where all fit", () => {
  const upcoming = new Upcoming({ from: 0, to: 10_000, limit: 10 });
  runThrough(upcoming.add(scheduled({ kind: "every", everyMs: 1_000, tz })));
  expect(upcoming.result.dueTimes).toHaveLength(10);
  expect(upcoming.result.truncated).toBe(false);
});

test("asks ten thousand busy schedules for little more than is kept", () => {
  let asked = 0;
  const rule: Rule = {
    kind: "every",
    tz,
    get everyMs() {
      asked += 1;
      return 1_000;
    },
  };
  const upcoming = new Upcoming({ from: 0, to: HOUR, limit: 2_000 });
  for (let index = 0; index < 10_000; index += 1)
    runThrough(upcoming.add({ ...scheduled(RULES[0] as Rule), rule }));
  expect(upcoming.result.dueTimes).toHaveLength(2_000);
  expect(asked).toBeLessThan(100_000);
});

test("computes one due time in each step", () => {
  const upcoming = new Upcoming({ from: 0, to: HOUR, limit: 2_000 });
  expect(runThrough(upcoming.add(scheduled({ kind: "every", everyMs: 2_000, tz })))).toBe(1_800);
});
