import { describe, expect, test } from "vitest";
import { parseScheduleChanges } from "../../schedules/schedule-changes-input.ts";
import { parseSchedule } from "../../schedules/schedule-input.ts";
import type { ScheduleRecord } from "../../storage/storage.ts";
import { editSchedule } from "./edit-schedule.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const MADE = Date.UTC(2026, 0, 1);
/** Half an hour later. */
const NOW = MADE + 30 * MINUTE;

function record(schedule: unknown, overrides: Partial<ScheduleRecord> = {}): ScheduleRecord {
  const rule = parseSchedule(schedule, { now: MADE, tz: "UTC" });
  return {
    id: 7,
    tenant: "default",
    name: null,
    agent: "index",
    work: { kind: "message", message: "look around" },
    phrase: String(schedule),
    rule,
    anchorAt: MADE,
    conversationId: null,
    sessionKey: null,
    postToSession: false,
    deleteAfterRun: false,
    retryPolicy: {
      maxRetries: 3,
      backoffMs: 2_000,
      backoffMultiplier: 2,
      maxBackoffMs: 30_000,
      jitter: 0.25,
    },
    overlap: "skip",
    catchUp: "one",
    usefulForMs: null,
    timeoutMs: null,
    lane: null,
    priority: null,
    metadata: null,
    callbackUrl: null,
    maxRuns: null,
    untilAt: null,
    pauseAfterFailures: null,
    status: "active",
    revision: 1,
    createdAt: MADE,
    updatedAt: MADE,
    nextFireAt: rule.kind === "once" ? rule.atMs : MADE + HOUR,
    lastDueAt: null,
    lastRunAt: null,
    lastRunId: null,
    runCount: 0,
    lastStatus: null,
    lastError: null,
    consecutiveFailures: 0,
    pausedReason: null,
    openRuns: 0,
    held: false,
    provenance: null,
    ...overrides,
  };
}

const PAUSED = { status: "paused", nextFireAt: null } as const;

function edit(before: ScheduleRecord, changes: object) {
  return editSchedule(before, parseScheduleChanges(changes, { timeoutMaxMs: 600_000 }), NOW);
}

test("what says the same as before writes nothing", () => {
  for (const changes of [{}, { enabled: true }, { status: "active" }, { tz: "utc" }]) {
    expect(edit(record("every hour"), changes), JSON.stringify(changes)).toEqual({});
  }
  expect(edit(record("every hour", PAUSED), { enabled: false })).toEqual({});
});

test("the given fields are changed, and nothing else", () => {
  expect(edit(record("every hour"), { name: "x", overlap: "queue", useful_for: 5 })).toEqual({
    name: "x",
    overlap: "queue",
    usefulForMs: 5_000,
  });
  expect(edit(record("every hour"), { retry: { base_delay_ms: 40_000 } })).toEqual({
    retryPolicy: { ...record("every hour").retryPolicy, backoffMs: 40_000, maxBackoffMs: 40_000 },
  });
});

describe("another number of runs, or another end", () => {
  const iso = (moment: number) => new Date(moment).toISOString();
  const DUE = MADE + HOUR;

  test("leaves one as it is that has not had enough", () => {
    expect(edit(record("every hour", { runCount: 2 }), { max_runs: 3 })).toEqual({
      maxRuns: 3,
      nextFireAt: DUE,
    });
    expect(edit(record("every hour"), { until: iso(DUE) })).toEqual({ untilAt: DUE, nextFireAt: DUE });
    const bounded = record("every hour", { maxRuns: 3, untilAt: DUE });
    expect(edit(bounded, { max_runs: null, until: null })).toEqual({
      maxRuns: null,
      untilAt: null,
      nextFireAt: DUE,
    });
  });

  test("completes a schedule that has reached its `max_runs` or `until`", () => {
    const over = { status: "completed", nextFireAt: null };
    expect(edit(record("every hour", { runCount: 3 }), { max_runs: 3 })).toEqual({ maxRuns: 3, ...over });
    expect(edit(record("every hour"), { until: iso(DUE - 1) })).toEqual({ untilAt: DUE - 1, ...over });
  });

  test("brings one back that was completed, if nothing else ends it", () => {
    const completed = { status: "completed", nextFireAt: null, runCount: 3, maxRuns: 3 } as const;
    const back = { status: "active", nextFireAt: DUE };
    expect(edit(record("every hour", completed), { max_runs: 4 })).toEqual({ maxRuns: 4, ...back });
    expect(edit(record("every hour", completed), { max_runs: null })).toEqual({ maxRuns: null, ...back });
    expect(edit(record("every hour", completed), { max_runs: 2 })).toEqual({ maxRuns: 2 });
    expect(edit(record("every hour", completed), { name: "x" })).toEqual({ name: "x" });
    const ended = { status: "completed", nextFireAt: null, untilAt: NOW + 1 } as const;
    expect(edit(record("every hour", ended), { until: iso(DUE) })).toEqual({ untilAt: DUE, ...back });
    expect(edit(record("every hour", completed), { max_runs: 4, status: "paused" })).toEqual({
      maxRuns: 4,
      ...PAUSED,
    });
  });

  test("leaves a paused schedule paused, and cannot resume one that has reached its limits", () => {
    const spent = { ...PAUSED, maxRuns: 3, runCount: 3 };
    expect(edit(record("every hour", spent), { max_runs: 4 })).toEqual({ maxRuns: 4 });
    expect(() => edit(record("every hour", spent), { status: "active" })).toThrow(
      "schedule 7 has reached `max_runs` (3): raise it",
    );
    expect(() => edit(record("every hour", { ...PAUSED, untilAt: NOW }), { status: "active" })).toThrow(
      "schedule 7 is not due any more before its `until`: give it a later one",
    );
    expect(() =>
      edit(record("every hour", { ...spent, status: "completed" }), { schedule: "hourly" }),
    ).toThrow("has reached `max_runs` (3)");
  });

  test("of one that is due once leaves it to its run, or nothing", () => {
    const open = record("in 1 hour", { runCount: 1, openRuns: 1 });
    expect(edit(open, { max_runs: 1 })).toEqual({ maxRuns: 1, nextFireAt: null });
    const early = record("in 1 hour", { runCount: 1 });
    expect(edit(early, { max_runs: 1 })).toEqual({ maxRuns: 1, status: "completed", nextFireAt: null });
    for (const changes of [{ until: iso(DUE - 1) }, { until: iso(DUE + HOUR), schedule: "in 2 hours" }]) {
      expect(() => edit(record("in 1 hour"), changes)).toThrow("`until` is before");
    }
  });

  test("is not to be past", () => {
    expect(() => edit(record("every hour"), { until: iso(NOW) })).toThrow("`until` is in the past");
  });
});

describe("a new schedule", () => {
  const rule = { kind: "every", everyMs: 2 * HOUR, tz: "UTC" };
  const counted = { phrase: "every 2 h", rule, anchorAt: NOW };

  test("counts from now", () => {
    expect(edit(record("every hour"), { schedule: " every 2  h" })).toEqual({
      ...counted,
      nextFireAt: NOW + 2 * HOUR,
    });
  });

  test("leaves one that is paused so, unless it is to go on", () => {
    expect(edit(record("every hour", PAUSED), { schedule: "every 2 h" })).toEqual(counted);
    expect(edit(record("every hour", PAUSED), { schedule: "every 2 h", enabled: true })).toEqual({
      ...counted,
      status: "active",
      nextFireAt: NOW + 2 * HOUR,
    });
  });

  test("brings one back that is over, paused if that is wanted", () => {
    for (const status of ["completed", "failed"] as const) {
      const over = record("in 10 minutes", { status, nextFireAt: null, lastDueAt: MADE + 10 * MINUTE });
      expect(edit(over, { schedule: "every 2 h" })).toEqual({
        ...counted,
        status: "active",
        nextFireAt: NOW + 2 * HOUR,
      });
      expect(edit(over, { schedule: "every 2 h", enabled: false })).toEqual({ ...counted, ...PAUSED });
    }
  });

  test("that recurs is no schedule to be deleted after its run", () => {
    const once = record("in 1 hour", { deleteAfterRun: true });
    expect(() => edit(once, { schedule: "every 2 h" })).toThrow("is for a schedule that is due once");
    expect(edit(once, { schedule: "every 2 h", delete_after_run: false })).toMatchObject(counted);
    expect(edit(once, { schedule: "in 2 h" })).toMatchObject({ nextFireAt: NOW + 2 * HOUR });
  });
});

describe("a new zone", () => {
  test("moves times on a wall, and counts from now", () => {
    const daily = record("every day at 09:00", { nextFireAt: MADE + 9 * HOUR });
    expect(edit(daily, { tz: "Asia/Tokyo" })).toEqual({
      rule: { kind: "days", every: 1, at: "09:00", tz: "Asia/Tokyo" },
      anchorAt: NOW,
      // 09:00 in Tokyo was at midnight.
      nextFireAt: MADE + 24 * HOUR,
    });
  });

  test.each([
    ["in 1 hour", "in 1 hour"],
    ["at 01:00", "on 2026-01-01 at 10:00"],
    ["tomorrow at 01:00", "on 2026-01-02 at 10:00"],
    ["at 2026-01-01T01:00:00Z", "on 2026-01-01 at 10:00"],
    // By the clocks of Tokyo this would be over.
    ["on 2026-01-01 at 09:00", "on 2026-01-01 at 18:00"],
    // It is due, and no node has fired it yet.
    ["on 2026-01-01 at 00:10", "on 2026-01-01 at 09:10"],
  ])("leaves the moment of %j where it is, and calls it %j", (schedule, phrase) => {
    const once = record(schedule);
    expect(edit(once, { tz: "Asia/Tokyo" })).toEqual({
      rule: { ...once.rule, phrase, tz: "Asia/Tokyo" },
      anchorAt: NOW,
    });
  });

  test("of one that is paused leaves it so", () => {
    expect(edit(record("every day at 09:00", PAUSED), { tz: "Asia/Tokyo" })).not.toHaveProperty("nextFireAt");
  });
});

test("one that waits for its tenant does so until a caller pauses it", () => {
  const held = record("in 10 minutes", { ...PAUSED, held: true });
  expect(edit(held, { message: "another" })).not.toHaveProperty("status");
  expect(edit(held, { schedule: "every hour" })).not.toHaveProperty("status");
  expect(edit(held, { status: "paused" })).toEqual({ status: "paused" });
  expect(edit(held, { enabled: false })).toEqual({ status: "paused" });
  expect(edit(record("in 10 minutes", PAUSED), { status: "paused" })).toEqual({});
});

describe("one that goes on after a pause", () => {
  test("is due at its next moment, on the grid that it had", () => {
    expect(edit(record("every hour", PAUSED), { enabled: true })).toEqual({
      status: "active",
      nextFireAt: MADE + HOUR,
    });
  });

  test("is due at its next moment, also where the clock was set back before others that have run", () => {
    const before = record("every hour", { ...PAUSED, lastDueAt: MADE + 5 * HOUR });
    expect(edit(before, { enabled: true })).toEqual({ status: "active", nextFireAt: MADE + HOUR });
  });

  test("and is due once is due at its moment, ahead or not", () => {
    for (const schedule of ["in 1 hour", "in 10 minutes"]) {
      const once = record(schedule, PAUSED);
      expect(edit(once, { enabled: true })).toEqual({
        status: "active",
        nextFireAt: once.rule.kind === "once" ? once.rule.atMs : null,
      });
    }
  });

  test("and could not run when its only moment came is due at once", () => {
    const had = record("in 10 minutes", { ...PAUSED, lastDueAt: MADE + 10 * MINUTE });
    expect(edit(had, { enabled: true })).toEqual({ status: "active", nextFireAt: NOW });
  });

  test("and has had its only moment ends with the run that still goes", () => {
    const had = record("in 10 minutes", { ...PAUSED, lastDueAt: MADE + 10 * MINUTE, openRuns: 1 });
    expect(edit(had, { enabled: true })).toEqual({ status: "active", nextFireAt: null });
  });
});

test.each(["completed", "failed"] as const)("one that is %s has nothing to go on with", (status) => {
  const over = record("in 10 minutes", { status, nextFireAt: null, lastDueAt: MADE + 10 * MINUTE });
  expect(() => edit(over, { enabled: true })).toThrow(
    "the due time of schedule 7 has passed: give it a new `schedule`, or run it now",
  );
});

test("one that is over cannot be paused, and is changed otherwise without coming back", () => {
  const over = record("in 10 minutes", { status: "completed", nextFireAt: null, lastDueAt: MADE });
  expect(() => edit(over, { enabled: false })).toThrow("schedule 7 is completed");
  expect(edit(over, { name: "x", tz: "Asia/Tokyo" })).toEqual({
    name: "x",
    rule: { ...over.rule, tz: "Asia/Tokyo" },
    anchorAt: NOW,
  });
});
