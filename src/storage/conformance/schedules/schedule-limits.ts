import { describe, expect, test } from "vitest";
import type { ScheduleDefinition } from "../../storage.ts";
import { NODE, type OpenWorld, only, TENANT, type World } from "../world.ts";
import {
  create,
  createOnce,
  DONE,
  FAILED,
  fire,
  HOUR,
  read,
  readNotifications,
  running,
  runOnce,
  runsOf,
  unfired,
} from "./schedule-world.ts";

/** What the owner of a schedule sets for its runs, and the limits at which it ends or pauses. */
export function describeScheduleLimits(open: OpenWorld): void {
  describe("a schedule that says what its runs are", () => {
    test("is kept as it was given, and can be changed and taken back", async () => {
      const world = await open();
      const given: Partial<ScheduleDefinition> = {
        work: { kind: "custom", payload: { deep: [1, "\u0000", null] } },
        lane: "team",
        priority: -1,
        metadata: { of: "\u0000" },
        callbackUrl: "https://example.com/done",
        maxRuns: 3,
        untilAt: 9_999_999_999_999,
        pauseAfterFailures: 0,
      };
      const made = await create(world, { definition: given });
      expect(made).toMatchObject({ ...given, consecutiveFailures: 0, pausedReason: null });
      expect(await read(world, made)).toEqual(made);
      const others: Partial<ScheduleDefinition> = {
        work: { kind: "instruction", instruction: "sum up" },
        lane: null,
        priority: null,
        metadata: null,
        callbackUrl: null,
        maxRuns: null,
        untilAt: null,
        pauseAfterFailures: null,
      };
      await world.storage.schedules.update({ ...made, changes: others });
      expect(await read(world, made)).toMatchObject(others);
      const work = { kind: "message", message: "hello" } as const;
      await world.storage.schedules.update({ ...(await read(world, made)), changes: { work } });
      expect((await read(world, made)).work).toEqual(work);
    });
  });

  describe("a schedule with a number of runs", () => {
    test("is completed by the fire of the last, which goes on to its end", async () => {
      const world = await open();
      const schedule = await create(world, { definition: { maxRuns: 2, overlap: "allow" } });
      const next = () => world.clock.now() + HOUR;
      await fire(world, schedule, { runs: [running(world, schedule)], nextFireAt: next() });
      expect(await read(world, schedule)).toMatchObject({ status: "active", nextFireAt: next() });
      world.clock.step(1);
      await fire(world, schedule, { runs: [running(world, schedule)], nextFireAt: next() });
      const completed = { status: "completed", nextFireAt: null, runCount: 2, updatedAt: world.clock.now() };
      expect(await read(world, schedule)).toMatchObject({ ...completed, openRuns: 2 });
      world.clock.step(1);
      await runOnce(world, DONE);
      await runOnce(world, FAILED);
      expect(await read(world, schedule)).toMatchObject({ ...completed, openRuns: 0, lastStatus: "failed" });
      expect((await readNotifications(world)).map(({ kind }) => kind)).toEqual([
        "run.started",
        "run.started",
        "run.completed",
        "run.failed",
      ]);
    });

    test("counts what was asked for out of turn and what could not start, not what was skipped or missed", async () => {
      const world = await open();
      const schedule = await create(world, { definition: { maxRuns: 2, overlap: "allow" } });
      const nextFireAt = world.clock.now() + HOUR;
      const now = world.clock.now();
      await fire(world, schedule, {
        runs: [unfired("skipped", now - 2), unfired("missed", now - 1)],
        nextFireAt,
      });
      expect(await read(world, schedule)).toMatchObject({ status: "active", runCount: 0 });
      await fire(world, schedule, { runs: [running(world, schedule, { forced: true })], nextFireAt });
      expect(await read(world, schedule)).toMatchObject({ status: "active", runCount: 1 });
      const failed = {
        ...unfired("missed", now),
        status: "failed",
        requestId: "req",
        error: "no agent",
      } as const;
      await fire(world, schedule, { runs: [failed], nextFireAt: null, pauses: "no agent" });
      // It has used up its runs: nothing is left to resume.
      const spent = { status: "completed", runCount: 2, pausedReason: null, consecutiveFailures: 1 };
      expect(await read(world, schedule)).toMatchObject(spent);
      expect((await readNotifications(world)).map(({ kind }) => kind)).not.toContain("schedule.paused");
    });

    test("that is paused is completed by a run out of turn that is its last", async () => {
      const world = await open();
      const schedule = await create(world, {
        definition: { maxRuns: 1 },
        status: "paused",
        nextFireAt: null,
      });
      await fire(world, schedule, { runs: [running(world, schedule, { forced: true })], nextFireAt: null });
      expect(await read(world, schedule)).toMatchObject({ status: "completed", nextFireAt: null });
    });

    test("that is due once has nothing more due, and ends as its run does", async () => {
      const world = await open();
      const schedule = await createOnce(world, { maxRuns: 1 });
      const early = running(world, schedule, { forced: true });
      await fire(world, schedule, { runs: [early], nextFireAt: world.clock.now() + HOUR });
      expect(await read(world, schedule)).toMatchObject({ status: "active", nextFireAt: null, openRuns: 1 });
      await runOnce(world, FAILED);
      expect(await read(world, schedule)).toMatchObject({ status: "failed", nextFireAt: null });
    });

    test("is not taken up again by a run that is retried", async () => {
      const world = await open();
      const schedule = await create(world, { definition: { maxRuns: 1 } });
      await fire(world, schedule, { runs: [running(world, schedule)], nextFireAt: null });
      const [run] = await runsOf(world);
      await runOnce(world, FAILED);
      await world.storage.tasks.retry({ tenant: TENANT, id: run?.taskId ?? "" });
      expect(await read(world, schedule)).toMatchObject({ status: "completed", openRuns: 1, runCount: 1 });
    });
  });

  test("a schedule that recurs and is never due again is completed by its last fire", async () => {
    const world = await open();
    const schedule = await create(world);
    await fire(world, schedule, { runs: [running(world, schedule)], nextFireAt: null });
    expect(await read(world, schedule)).toMatchObject({ status: "completed", nextFireAt: null, openRuns: 1 });
  });

  describe("a schedule that is paused after failures", () => {
    const failing = { pauseAfterFailures: 2, overlap: "allow" } as const;

    async function runAndEnd(world: World, schedule: Awaited<ReturnType<typeof create>>, end: typeof DONE) {
      world.clock.step(1);
      await fire(world, schedule, { runs: [running(world, schedule)], nextFireAt: world.clock.now() + HOUR });
      await runOnce(world, end);
    }

    test("is paused at the end of the last, with the reason, and notifies of it", async () => {
      const world = await open();
      const schedule = await create(world, { definition: failing });
      await runAndEnd(world, schedule, FAILED);
      expect(await read(world, schedule)).toMatchObject({ status: "active", consecutiveFailures: 1 });
      await runAndEnd(world, schedule, FAILED);
      const pausedReason = "failed runs in a row: 2";
      expect(await read(world, schedule)).toMatchObject({
        status: "paused",
        nextFireAt: null,
        consecutiveFailures: 2,
        pausedReason,
        held: false,
        updatedAt: world.clock.now(),
      });
      expect((await readNotifications(world)).slice(-2)).toMatchObject([
        { kind: "run.failed" },
        { kind: "schedule.paused", run: null, reason: pausedReason },
      ]);
    });

    test("counts from the last success, and what was cancelled neither way", async () => {
      const world = await open();
      const schedule = await create(world, { definition: failing });
      await runAndEnd(world, schedule, FAILED);
      await runAndEnd(world, schedule, DONE);
      expect(await read(world, schedule)).toMatchObject({ consecutiveFailures: 0 });
      await runAndEnd(world, schedule, FAILED);
      world.clock.step(1);
      await fire(world, schedule, { runs: [running(world, schedule)], nextFireAt: 9_999_999_999_999 });
      const [run] = await runsOf(world);
      await world.storage.tasks.cancel({ tenant: TENANT, ids: [run?.taskId ?? ""], error: "stopped" });
      expect(await read(world, schedule)).toMatchObject({
        status: "active",
        lastStatus: "failed",
        consecutiveFailures: 1,
      });
      await runAndEnd(world, schedule, FAILED);
      expect(await read(world, schedule)).toMatchObject({ status: "paused", consecutiveFailures: 2 });
    });

    test("is paused by several that end at once, and what else has fired goes on", async () => {
      const world = await open();
      const schedule = await create(world, { definition: failing });
      const now = world.clock.now();
      const runs = [1, 2, 3, 4].map((ms) => running(world, schedule, { dueAt: now + ms }));
      await fire(world, schedule, { runs, nextFireAt: now + HOUR });
      const claimed = await world.claim({ limit: 3 });
      expect(claimed).toHaveLength(3);
      const ends = [FAILED, FAILED, DONE];
      const finishes = claimed.map(({ token, task }, index) => ({
        seq: task.seq,
        token,
        settlement: ends[index] as typeof DONE,
      }));
      await world.storage.tasks.finishAndClaim({ node: NODE, finishes, progress: [], claims: [] });
      expect(await read(world, schedule)).toMatchObject({
        status: "paused",
        pausedReason: "failed runs in a row: 2",
        consecutiveFailures: 0,
        openRuns: 1,
      });
      expect((await readNotifications(world)).slice(-4).map(({ kind }) => kind)).toEqual([
        "run.failed",
        "run.failed",
        "schedule.paused",
        "run.completed",
      ]);
      only(await world.claim());
    });

    test("counts several that end at once also where nothing is paused", async () => {
      const world = await open();
      const schedule = await create(world, { definition: { overlap: "allow" } });
      const now = world.clock.now();
      const runs = [1, 2, 3].map((ms) => running(world, schedule, { dueAt: now + ms }));
      await fire(world, schedule, { runs, nextFireAt: now + HOUR });
      const finish = async (...ends: (typeof DONE)[]) => {
        const claimed = await world.claim({ limit: ends.length });
        const finishes = claimed.map(({ token, task }, index) => ({
          seq: task.seq,
          token,
          settlement: ends[index] as typeof DONE,
        }));
        await world.storage.tasks.finishAndClaim({ node: NODE, finishes, progress: [], claims: [] });
      };
      await finish(FAILED);
      expect(await read(world, schedule)).toMatchObject({ consecutiveFailures: 1 });
      await finish(DONE, FAILED);
      expect(await read(world, schedule)).toMatchObject({ status: "active", consecutiveFailures: 1 });
    });

    test("begins to count anew once it is made active, and forgets the reason", async () => {
      const world = await open();
      const schedule = await create(world, { definition: failing });
      for (const end of [FAILED, FAILED]) await runAndEnd(world, schedule, end);
      const paused = await read(world, schedule);
      const nextFireAt = world.clock.now() + HOUR;
      const named = await world.storage.schedules.update({ ...paused, changes: { name: "x" } });
      expect(named).toMatchObject({ pausedReason: paused.pausedReason, consecutiveFailures: 2 });
      await world.storage.schedules.update({
        ...(await read(world, schedule)),
        changes: { status: "active", nextFireAt },
      });
      const resumed = { status: "active", pausedReason: null, consecutiveFailures: 0, nextFireAt };
      expect(await read(world, schedule)).toMatchObject(resumed);
      await runAndEnd(world, schedule, FAILED);
      expect(await read(world, schedule)).toMatchObject({ status: "active", consecutiveFailures: 1 });
    });

    test("that is due once ends with its run, as ever", async () => {
      const world = await open();
      const schedule = await createOnce(world, { pauseAfterFailures: 1 });
      await fire(world, schedule, { runs: [running(world, schedule)], nextFireAt: null });
      await runOnce(world, FAILED);
      expect(await read(world, schedule)).toMatchObject({ status: "failed", consecutiveFailures: 1 });
    });
  });

  test("why a schedule is paused is kept, unless its owner wished it, until it no longer is", async () => {
    const world = await open();
    const schedule = await create(world);
    await fire(world, schedule, { pauses: "no agent", nextFireAt: null });
    expect(await read(world, schedule)).toMatchObject({ status: "paused", pausedReason: "no agent" });
    const update = async (changes: object, pauseReason?: string) => {
      const { tenant, id, revision } = await read(world, schedule);
      const reason = pauseReason === undefined ? {} : { pauseReason };
      return world.storage.schedules.update({ tenant, id, revision, changes, ...reason });
    };
    expect(await update({ status: "active", nextFireAt: 5 })).toMatchObject({ pausedReason: null });
    expect(await update({ status: "paused" }, "cannot be stored")).toMatchObject({
      pausedReason: "cannot be stored",
    });
    expect(await update({ status: "paused" })).toMatchObject({ pausedReason: null });
    expect(await update({ status: "completed" })).toMatchObject({ status: "completed", nextFireAt: null });
  });
}
