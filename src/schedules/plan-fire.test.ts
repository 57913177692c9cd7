import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Rule } from "../model/rule.ts";
import { CATCH_UPS, type CatchUp, OVERLAPS, type Overlap } from "../model/schedule.ts";
import { momentsBetween, nextMoment } from "./moments.ts";
import {
  CATCH_UP_MAX,
  type DueSchedule,
  LATE_MS,
  MOMENTS_MAX,
  type PlannedRun,
  planFire,
} from "./plan-fire.ts";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const MIDNIGHT = Date.UTC(2026, 0, 1);

const everySecond: Rule = { kind: "every", everyMs: SECOND, tz: "UTC" };

function every(everyMs: number): Rule {
  return { kind: "every", everyMs, tz: "UTC" };
}

function cron(expr: string, tz = "UTC"): Rule {
  return { kind: "cron", expr, tz };
}

function once(atMs: number): Rule {
  return { kind: "once", atMs, phrase: "in 1 hour", tz: "UTC" };
}

function schedule(overrides: Partial<DueSchedule> = {}): DueSchedule {
  return {
    rule: every(30 * MINUTE),
    anchorAt: MIDNIGHT,
    untilAt: null,
    maxRuns: null,
    runCount: 0,
    nextFireAt: MIDNIGHT + HOUR,
    overlap: "skip",
    catchUp: "one",
    usefulForMs: null,
    openRuns: 0,
    ...overrides,
  };
}

/** As what each run does with how many moments, as in `run 2, skip 1`. */
function deeds(runs: readonly PlannedRun[]): string {
  return runs.map((run) => `${deed(run)} ${run.moments}`).join(", ");
}

function deed(run: PlannedRun): string {
  if (run.status !== "running") return run.status === "skipped" ? "skip" : "miss";
  if (run.replaces) return "replace";
  return run.inTurn ? "turn" : "run";
}

describe("a schedule with `max_runs`", () => {
  const late = MIDNIGHT + 3 * HOUR;
  const planned = (overrides: Partial<DueSchedule>) =>
    planFire(schedule({ catchUp: "all", overlap: "allow", ...overrides }), late);

  test("starts no more runs than are left, and is not due after the last", () => {
    expect(deeds(planned({}).runs)).toBe("turn 1, turn 1, turn 1, turn 1, turn 1");
    expect(deeds(planned({ maxRuns: 5, runCount: 3 }).runs)).toBe("turn 1, turn 1");
    expect(deeds(planned({ maxRuns: 5, runCount: 3, catchUp: "one" }).runs)).toBe("run 5");
    expect(planned({ maxRuns: 5, runCount: 5 }).runs).toEqual([]);
  });

  test("does not count skipped and missed due times", () => {
    const skipping = { overlap: "skip", openRuns: 1, maxRuns: 1 } as const;
    const now = MIDNIGHT + HOUR;
    expect(deeds(planFire(schedule(skipping), now).runs)).toBe("skip 1");
    expect(deeds(planned({ catchUp: "none", maxRuns: 1 }).runs)).toBe("miss 4, run 1");
  });
});

describe("a schedule with `until`", () => {
  test("is due up to that time, even if it is read late, and never after", () => {
    const untilAt = MIDNIGHT + 2 * HOUR;
    const ending = schedule({ untilAt, catchUp: "all", overlap: "allow" });
    expect(planFire(ending, MIDNIGHT + HOUR)).toMatchObject({ nextFireAt: MIDNIGHT + 1.5 * HOUR });
    const plan = planFire(ending, MIDNIGHT + 20 * HOUR);
    expect(deeds(plan.runs)).toBe("turn 1, turn 1, turn 1");
    expect(plan.runs.at(-1)?.dueAt).toBe(untilAt);
    expect(plan.nextFireAt).toBeNull();
    expect(planFire(ending, untilAt).nextFireAt).toBeNull();
    const one = planFire({ ...ending, catchUp: "one" }, MIDNIGHT + 20 * HOUR).runs;
    expect(one).toMatchObject([{ dueAt: untilAt, moments: 3 }]);
  });
});

describe("two late due times and one on time", () => {
  const NOW = MIDNIGHT + 2 * HOUR + 30 * SECOND;
  /** By `usefulFor` in seconds: no limit, up to the second late due time, none of them. */
  const LONG = [null, 45 * 60] as const;
  const expected: readonly [CatchUp, readonly (number | null)[], Overlap, string, string][] = [
    ["one", LONG, "skip", "run 3", "skip 3"],
    ["one", LONG, "queue", "run 3", "run 3"],
    ["one", LONG, "replace", "replace 3", "replace 3"],
    ["one", LONG, "allow", "run 3", "run 3"],
    ["none", LONG, "skip", "miss 2, run 1", "miss 2, skip 1"],
    ["none", LONG, "queue", "miss 2, run 1", "miss 2, run 1"],
    ["none", LONG, "replace", "miss 2, replace 1", "miss 2, replace 1"],
    ["none", LONG, "allow", "miss 2, run 1", "miss 2, run 1"],
    ["all", [null], "skip", "turn 1, turn 1, turn 1", "turn 1, turn 1, turn 1"],
    ["all", [null], "queue", "turn 1, turn 1, turn 1", "turn 1, turn 1, turn 1"],
    ["all", [null], "replace", "turn 1, turn 1, turn 1", "turn 1, turn 1, turn 1"],
    ["all", [null], "allow", "turn 1, turn 1, turn 1", "turn 1, turn 1, turn 1"],
    ["all", [45 * 60], "skip", "miss 1, turn 1, turn 1", "miss 1, turn 1, turn 1"],
    ["all", [45 * 60], "queue", "miss 1, turn 1, turn 1", "miss 1, turn 1, turn 1"],
    ["all", [45 * 60], "replace", "miss 1, turn 1, turn 1", "miss 1, turn 1, turn 1"],
    ["all", [45 * 60], "allow", "miss 1, turn 1, turn 1", "miss 1, turn 1, turn 1"],
    ...CATCH_UPS.flatMap((catchUp) =>
      OVERLAPS.map((overlap): [CatchUp, number[], Overlap, string, string] => [
        catchUp,
        [20],
        overlap,
        "miss 3",
        "miss 3",
      ]),
    ),
  ];

  test.each(
    expected.flatMap(([catchUp, spans, overlap, idle, busy]) =>
      spans.map((usefulFor) => ({ catchUp, usefulFor, overlap, idle, busy })),
    ),
  )("catch_up $catchUp, useful_for $usefulFor, overlap $overlap: $idle; with a run going: $busy", (row) => {
    const { catchUp, usefulFor, overlap, idle, busy } = row;
    const usefulForMs = usefulFor === null ? null : usefulFor * SECOND;
    const params = { catchUp, overlap, usefulForMs };
    expect(deeds(planFire(schedule(params), NOW).runs)).toBe(idle);
    expect(deeds(planFire(schedule({ ...params, openRuns: 1 }), NOW).runs)).toBe(busy);
  });

  test("the rows say which moments they stand for, and the next moment comes after now", () => {
    expect(planFire(schedule(), NOW)).toEqual({
      runs: [
        {
          status: "running",
          firstDueAt: MIDNIGHT + HOUR,
          dueAt: MIDNIGHT + 2 * HOUR,
          moments: 3,
          replaces: false,
          inTurn: false,
        },
      ],
      nextFireAt: MIDNIGHT + 2.5 * HOUR,
    });
  });
});

describe("a moment", () => {
  const only = (now: number, overrides: Partial<DueSchedule> = {}) =>
    planFire(schedule({ catchUp: "none", rule: every(DAY), ...overrides }), now);

  test("that is now fires, and is not due again", () => {
    const { runs, nextFireAt } = only(MIDNIGHT + HOUR, { rule: every(HOUR) });
    expect(deeds(runs)).toBe("run 1");
    expect(nextFireAt).toBe(MIDNIGHT + 2 * HOUR);
  });

  test("in the future has no row", () => {
    expect(only(MIDNIGHT + HOUR - 1, { rule: every(HOUR) })).toEqual({
      runs: [],
      nextFireAt: MIDNIGHT + HOUR,
    });
  });

  test("is late when more than 60 seconds have passed, and not before", () => {
    expect(deeds(only(MIDNIGHT + HOUR + LATE_MS).runs)).toBe("run 1");
    expect(deeds(only(MIDNIGHT + HOUR + LATE_MS + 1).runs)).toBe("miss 1");
  });

  test("fires up to the last millisecond of useful_for", () => {
    const usefulForMs = 10 * SECOND;
    expect(deeds(only(MIDNIGHT + HOUR + usefulForMs, { usefulForMs }).runs)).toBe("run 1");
    expect(deeds(only(MIDNIGHT + HOUR + usefulForMs + 1, { usefulForMs }).runs)).toBe("miss 1");
  });

  test("that is skipped says why", () => {
    const { runs } = only(MIDNIGHT + HOUR, { openRuns: 1 });
    expect(runs).toMatchObject([{ status: "skipped", reason: "the previous run has not ended" }]);
  });

  test("that was stored as the next one fires even if the rule no longer has it", () => {
    const { runs, nextFireAt } = only(MIDNIGHT + HOUR + 7, {
      rule: every(HOUR),
      nextFireAt: MIDNIGHT + HOUR + 7,
    });
    expect(deeds(runs)).toBe("run 1");
    expect(nextFireAt).toBe(MIDNIGHT + 2 * HOUR);
  });
});

describe("a one-shot", () => {
  const AT = MIDNIGHT + HOUR;
  const shot = (overrides: Partial<DueSchedule> = {}) => schedule({ rule: once(AT), ...overrides });

  test("fires at its due time, and has no other", () => {
    const { runs, nextFireAt } = planFire(shot(), AT);
    expect(deeds(runs)).toBe("run 1");
    expect(nextFireAt).toBeNull();
  });

  test.each([
    ["one", "run 1"],
    ["all", "turn 1"],
    ["none", "miss 1"],
  ] as const)("whose moment was slept through, with catch_up %s: %s", (catchUp, expected) => {
    const { runs, nextFireAt } = planFire(shot({ catchUp }), AT + DAY);
    expect(deeds(runs)).toBe(expected);
    expect(nextFireAt).toBeNull();
  });

  test("that is later than useful_for is missed, and its row says so", () => {
    const { runs } = planFire(shot({ usefulForMs: HOUR }), AT + DAY);
    const reason = "the due time was more than 3600 s late, the limit of useful_for";
    expect(runs).toMatchObject([{ status: "missed", reason }]);
  });

  test("is skipped while a run that a caller requested is still running", () => {
    expect(deeds(planFire(shot({ openRuns: 1 }), AT).runs)).toBe("skip 1");
  });
});

describe("many moments", () => {
  test("on time fire one by one by the rule of overlap, and those that do not fire share a row", () => {
    const now = MIDNIGHT + HOUR + LATE_MS;
    const runs = (overlap: Overlap) =>
      planFire(schedule({ rule: everySecond, overlap, openRuns: 0 }), now).runs;
    expect(runs("allow")).toHaveLength(61);
    expect(new Set(runs("queue").map(({ status }) => status))).toEqual(new Set(["running"]));
    expect(deeds(runs("skip"))).toBe("run 1, skip 60");
  });

  test("are caught up with together if the first is late, including those on time", () => {
    const now = MIDNIGHT + HOUR + LATE_MS + 1;
    const plan = (catchUp: CatchUp) => planFire(schedule({ rule: everySecond, catchUp }), now).runs;
    expect(plan("one")).toMatchObject([{ status: "running", moments: 61, dueAt: MIDNIGHT + HOUR + LATE_MS }]);
    expect(deeds(plan("all"))).toBe(Array(61).fill("turn 1").join(", "));
    expect(deeds(plan("none"))).toBe("miss 1, run 1, skip 59");
  });

  test("beyond a hundred are missed when all are to be caught up with: the oldest of them", () => {
    const now = MIDNIGHT + HOUR + LATE_MS + 150 * MINUTE;
    const { runs } = planFire(schedule({ rule: every(MINUTE), catchUp: "all", overlap: "queue" }), now);
    const [missed, ...fired] = runs;
    expect(missed).toMatchObject({
      status: "missed",
      firstDueAt: MIDNIGHT + HOUR,
      dueAt: MIDNIGHT + HOUR + 51 * MINUTE,
      moments: 52,
      reason: "more than 100 due times had passed: only the newest 100 are caught up",
    });
    expect(fired.filter(({ status }) => status === "running")).toHaveLength(CATCH_UP_MAX);
    expect(fired.map(({ dueAt }) => dueAt)).toEqual(
      Array.from({ length: CATCH_UP_MAX }, (_, place) => MIDNIGHT + HOUR + (52 + place) * MINUTE),
    );
  });

  test("exactly a hundred are all caught up with", () => {
    const now = MIDNIGHT + HOUR + 99 * MINUTE;
    const { runs } = planFire(schedule({ rule: every(MINUTE), catchUp: "all" }), now);
    expect(runs.filter(({ status }) => status === "running")).toHaveLength(CATCH_UP_MAX);
    expect(runs.filter(({ status }) => status === "missed")).toEqual([]);
  });

  test("are counted up to a bound; a row with that number covers at least as many", () => {
    const now = MIDNIGHT + 365 * DAY;
    const { runs, nextFireAt } = planFire(schedule({ rule: everySecond }), now);
    expect(runs[0]).toMatchObject({ dueAt: now, moments: MOMENTS_MAX });
    expect(nextFireAt).toBe(now + SECOND);
  });

  // A walk through all of them would outlast any test.
  test.each([
    ["a step of a second", everySecond],
    ["a cron expression of every second", cron("* * * * * *")],
    ["a cron expression of every minute", cron("* * * * *", "Europe/Berlin")],
    ["a time of every day", { kind: "days", every: 1, at: "09:00", tz: "UTC" }],
  ] as const)("of %s, after a hundred years, are planned in a few rows", (_what, rule) => {
    const nextFireAt = nextMoment(rule, { after: MIDNIGHT, anchor: MIDNIGHT }) as number;
    for (const catchUp of CATCH_UPS) {
      const { runs } = planFire(
        schedule({ rule, catchUp, nextFireAt, overlap: "queue" }),
        MIDNIGHT + 36_500 * DAY,
      );
      expect(runs.length).toBeGreaterThan(0);
      expect(runs.length).toBeLessThanOrEqual(1 + CATCH_UP_MAX);
    }
  });
});

describe("whatever the rule and however long the gap", () => {
  const rules = fc.oneof(
    fc.integer({ min: 1, max: 7_200 }).map((sec) => every(sec * SECOND)),
    fc
      .constantFrom("*/7 * * * * *", "* * * * *", "*/20 9-11 * * 1-5", "0,30 2 * * *", "15 14 1 * *")
      .chain((expr) =>
        fc.constantFrom("UTC", "Europe/Berlin", "America/New_York").map((tz) => cron(expr, tz)),
      ),
    fc.constantFrom<Rule>(
      { kind: "days", every: 2, at: "02:30", tz: "Europe/Berlin" },
      { kind: "weeks", every: 1, on: ["Mon", "Thu"], at: "09:00", tz: "UTC" },
    ),
  );
  // Around the spring's clock change in Berlin.
  const anchors = fc.integer({ min: -3 * DAY, max: 3 * DAY }).map((ms) => Date.UTC(2026, 2, 29) + ms);
  const gaps = fc.oneof(fc.integer({ min: 0, max: 3 * MINUTE }), fc.integer({ min: 0, max: 4 * HOUR }));

  test("a limit on runs cuts the plan short and changes nothing before the cut", () => {
    fc.assert(
      fc.property(
        fc.record({
          rule: rules,
          anchorAt: anchors,
          gapMs: gaps,
          overlap: fc.constantFrom(...OVERLAPS),
          catchUp: fc.constantFrom(...CATCH_UPS),
          openRuns: fc.integer({ min: 0, max: 2 }),
          runCount: fc.nat({ max: 3 }),
          left: fc.nat({ max: 5 }),
        }),
        ({ gapMs, left, ...given }) => {
          const { rule, anchorAt: anchor, runCount } = given;
          const nextFireAt = nextMoment(rule, { after: anchor, anchor }) as number;
          const due = { ...given, usefulForMs: null, untilAt: null, nextFireAt };
          const now = nextFireAt + gapMs;
          const free = planFire({ ...due, maxRuns: null }, now);
          const bound = planFire({ ...due, maxRuns: runCount + left }, now);
          const started = (runs: readonly PlannedRun[]) =>
            runs.filter(({ status }) => status === "running").length;
          expect(started(bound.runs)).toBe(Math.min(left, started(free.runs)));
          expect(bound.runs).toEqual(free.runs.slice(0, bound.runs.length));
        },
      ),
    );
  });

  test("every moment up to now has one row, in order, and the next one comes after now", () => {
    fc.assert(
      fc.property(
        fc.record({
          rule: rules,
          anchorAt: anchors,
          gapMs: gaps,
          overlap: fc.constantFrom(...OVERLAPS),
          catchUp: fc.constantFrom(...CATCH_UPS),
          usefulForMs: fc.option(fc.integer({ min: 1, max: 8 * HOUR })),
          openRuns: fc.integer({ min: 0, max: 2 }),
          endsAfterMs: fc.option(gaps),
        }),
        ({ gapMs, endsAfterMs, ...given }) => {
          const { rule, anchorAt: anchor } = given;
          const nextFireAt = nextMoment(rule, { after: anchor, anchor }) as number;
          const now = nextFireAt + gapMs;
          const untilAt = endsAfterMs === null ? null : nextFireAt + endsAfterMs;
          const plan = planFire({ ...given, untilAt, maxRuns: null, runCount: 5, nextFireAt }, now);
          const until = Math.min(now, untilAt ?? now);
          const moments = momentsBetween(rule, { after: nextFireAt - 1, anchor, until, limit: 100_000 });
          const covered = plan.runs.flatMap(({ firstDueAt, dueAt, moments: count }) => {
            const own = moments.filter((moment) => moment >= firstDueAt && moment <= dueAt);
            expect(own).toHaveLength(count);
            expect([own.at(0), own.at(-1)]).toEqual([firstDueAt, dueAt]);
            return own;
          });
          expect(covered).toEqual(moments);
          const next = nextMoment(rule, { after: now, anchor }) as number;
          expect(plan.nextFireAt).toBe(next > (untilAt ?? next) ? null : next);
          // What was missed in a row shares its row.
          const statuses = plan.runs.map(({ status }) => status);
          expect(statuses.some((status, at) => status === "missed" && statuses[at + 1] === "missed")).toBe(
            false,
          );
        },
      ),
      { numRuns: 300 },
    );
  });
});

describe("with due times that have run already, after the clock was set back", () => {
  const NOW = MIDNIGHT + 4 * HOUR;
  const at = (hours: number) => MIDNIGHT + hours * HOUR;
  const taken = { dueAts: [at(1.5), at(3), at(4.5)], isComplete: true };

  test.each([
    ["one", "miss 1, miss 2, run 2"],
    ["none", "miss 1, miss 2, miss 1, run 1"],
    ["all", "turn 1, turn 1, turn 1, turn 1, turn 1"],
  ] as const)("catch_up %s leaves those out", (catchUp, expected) => {
    const { runs, nextFireAt } = planFire(schedule({ catchUp, taken }), NOW);
    expect(deeds(runs)).toBe(expected);
    for (const run of runs)
      for (const dueAt of taken.dueAts) expect(run.firstDueAt <= dueAt && dueAt <= run.dueAt).toBe(false);
    expect(nextFireAt).toBe(at(5));
  });

  test("no more than a hundred are caught up with, the newest of all", () => {
    const every2 = Array.from({ length: 60 }, (_, n) => MIDNIGHT + HOUR + (3 * n + 1) * SECOND);
    const due = schedule({ rule: everySecond, catchUp: "all", taken: { dueAts: every2, isComplete: true } });
    const { runs } = planFire(due, MIDNIGHT + HOUR + 3 * MINUTE);
    const fired = runs.filter(({ status }) => status === "running");
    expect(fired).toHaveLength(CATCH_UP_MAX);
    expect(fired.at(-1)?.dueAt).toBe(MIDNIGHT + HOUR + 3 * MINUTE);
  });
});
