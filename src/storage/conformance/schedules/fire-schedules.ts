import { describe, expect, test } from "vitest";
import { REPLACED } from "../../../model/run.ts";
import type { ScheduleRecord, StorageSignal, UpdateScheduleParams } from "../../storage.ts";
import { AGENT, LANE, type OpenWorld, only, TENANT, type World } from "../world.ts";
import {
  create,
  createOnce,
  DONE,
  fire,
  HOUR,
  read,
  readNotifications,
  running,
  runsOf,
  unfired,
} from "./schedule-world.ts";

/** The outcome of due times. */
export function describeFireSchedules(open: OpenWorld): void {
  describe("a fire", () => {
    test("writes the run, makes the task and moves the schedule on, all at once", async () => {
      const world = await open();
      const schedule = await create(world);
      const now = world.clock.now();
      const given = running(world, schedule, {
        task: { id: "r1", session: { key: `schedule:${schedule.id}`, maxConcurrent: 1 } },
        requestId: "req-a",
      });
      world.clock.step(2);
      const { fired, runs } = await fire(world, schedule, {
        runs: [{ ...given, dueAt: now, firstDueAt: now }],
        nextFireAt: now + HOUR,
      });
      expect(fired).toBe(true);
      const { id, task } = only(runs);
      expect(task).toMatchObject({ id: "r1", state: "queued", position: 1 });
      expect(await read(world, schedule)).toEqual({
        ...schedule,
        revision: 2,
        nextFireAt: now + HOUR,
        lastDueAt: now,
        lastRunAt: now + 2,
        lastRunId: id,
        runCount: 1,
        openRuns: 1,
      });
      const run = await world.storage.schedules.getRun({ tenant: TENANT, id });
      expect(run).toEqual({
        id,
        tenant: TENANT,
        scheduleId: schedule.id,
        agent: AGENT,
        taskId: "r1",
        dueAt: now,
        firstDueAt: now,
        moments: 1,
        forced: false,
        status: "running",
        reason: null,
        startedAt: now + 2,
        completedAt: null,
        requestId: "req-a",
        resultSummary: null,
        error: null,
        inputTokens: 0,
        outputTokens: 0,
        attempt: 0,
      });
      expect(await world.task("r1")).toMatchObject({
        schedule: schedule.id,
        session: `schedule:${schedule.id}`,
        state: "queued",
      });
      const { tasks } = await world.storage.tasks.list({ tenant: TENANT, schedule: schedule.id, limit: 9 });
      expect(tasks.map((each) => each.id)).toEqual(["r1"]);
      expect((await world.events()).map(({ type, schedule: of }) => [type, of])).toEqual([
        ["task.created", schedule.id],
      ]);
      expect(await readNotifications(world)).toMatchObject([
        {
          kind: "run.started",
          scheduleId: schedule.id,
          agent: AGENT,
          at: now + 2,
          run: { id, status: "running", dueAt: now, moments: 1, startedAt: now + 2, completedAt: null },
        },
      ]);
      expect(only(await world.claim()).task).toMatchObject({ id: "r1", schedule: schedule.id });
      expect(await world.storage.schedules.getRun({ tenant: TENANT, id })).toMatchObject({ attempt: 1 });
      expect(await world.storage.schedules.getRun({ tenant: "zeta", id })).toBeNull();
    });

    test("does nothing for a schedule that was fired or changed since, or is gone", async () => {
      const world = await open();
      const schedule = await create(world);
      const stale = { revision: schedule.revision, runs: [running(world, schedule)] };
      await fire(world, schedule, { runs: [running(world, schedule)], nextFireAt: 5_000 });
      expect(await fire(world, schedule, stale)).toMatchObject({ fired: false, runs: [], cancelled: [] });
      await world.storage.schedules.update({ ...schedule, revision: 2, changes: { name: "x" } });
      expect(await fire(world, schedule, { ...stale, revision: 2 })).toMatchObject({ fired: false });
      await world.storage.schedules.delete(schedule);
      expect(await fire(world, schedule, { ...stale, revision: 3 })).toMatchObject({ fired: false });
      expect(await fire(world, { ...schedule, tenant: "zeta" }, stale)).toMatchObject({ fired: false });
    });

    test("fires others of the same call whatever becomes of one", async () => {
      const world = await open();
      const [gone, there] = [await create(world), await create(world)];
      await world.storage.schedules.delete(gone);
      const fires = [gone, there].map((schedule) => ({
        tenant: TENANT,
        id: schedule.id,
        revision: 1,
        runs: [running(world, schedule)],
        nextFireAt: null,
        pauses: null,
      }));
      const answers = await world.storage.schedules.fire({ fires });
      expect(answers.map(({ id, fired }) => [id, fired])).toEqual([
        [gone.id, false],
        [there.id, true],
      ]);
    });

    test("never gives a moment that has its row another, whatever the clock says", async () => {
      const world = await open();
      const schedule = await create(world);
      const dueAt = world.clock.now();
      await fire(world, schedule, { runs: [running(world, schedule, { dueAt })], nextFireAt: dueAt });
      const again = await fire(world, schedule, {
        runs: [running(world, schedule, { dueAt }), unfired("skipped", dueAt + HOUR)],
        nextFireAt: dueAt + 2 * HOUR,
      });
      expect(again).toMatchObject({ fired: true, runs: [{ task: null }] });
      expect((await runsOf(world)).map(({ status, dueAt: at }) => [status, at - dueAt])).toEqual([
        ["skipped", HOUR],
        ["running", 0],
      ]);
      expect(await read(world, schedule)).toMatchObject({
        runCount: 1,
        nextFireAt: dueAt + 2 * HOUR,
        lastDueAt: dueAt + HOUR,
      });
    });

    test("out of turn has no moment, and may come at any", async () => {
      const world = await open();
      const schedule = await create(world);
      const dueAt = world.clock.now();
      await fire(world, schedule, { runs: [running(world, schedule, { dueAt, forced: true })] });
      await fire(world, schedule, { runs: [running(world, schedule, { dueAt, forced: true })] });
      await fire(world, schedule, { runs: [running(world, schedule, { dueAt })] });
      expect((await runsOf(world)).map(({ forced }) => forced)).toEqual([false, true, true]);
      expect(await read(world, schedule)).toMatchObject({ runCount: 3, openRuns: 3, nextFireAt: dueAt });
    });

    test("leaves rows of what did not run, which count as no run", async () => {
      const world = await open();
      const schedule = await create(world);
      const now = world.clock.now();
      const { runs } = await fire(world, schedule, {
        runs: [unfired("missed", now - HOUR, 3), unfired("skipped", now)],
        nextFireAt: now + HOUR,
      });
      expect(runs.map(({ task }) => task)).toEqual([null, null]);
      expect(await runsOf(world)).toMatchObject([
        {
          status: "skipped",
          reason: "was skipped",
          startedAt: null,
          completedAt: now,
          taskId: null,
          moments: 1,
        },
        { status: "missed", reason: "was missed", dueAt: now - HOUR, firstDueAt: now - 3 * HOUR, moments: 3 },
      ]);
      expect(await read(world, schedule)).toMatchObject({
        runCount: 0,
        lastRunAt: null,
        lastRunId: null,
        lastStatus: null,
        lastDueAt: now,
        status: "active",
      });
      expect((await readNotifications(world)).map(({ kind }) => kind)).toEqual(["run.missed", "run.skipped"]);
    });

    test("adds what was missed to what was missed right before it", async () => {
      const world = await open();
      const schedule = await create(world);
      const now = world.clock.now();
      await fire(world, schedule, { runs: [unfired("missed", now, 2)] });
      world.clock.step(4);
      const { runs } = await fire(world, schedule, { runs: [unfired("missed", now + HOUR)] });
      expect(await runsOf(world)).toMatchObject([
        {
          id: only(runs).id,
          status: "missed",
          dueAt: now + HOUR,
          firstDueAt: now - HOUR,
          moments: 3,
          completedAt: now + 4,
        },
      ]);
      await fire(world, schedule, { runs: [unfired("skipped", now + 2 * HOUR)] });
      await fire(world, schedule, { runs: [unfired("missed", now + 3 * HOUR)] });
      expect((await runsOf(world)).map(({ status }) => status)).toEqual(["missed", "skipped", "missed"]);
      expect((await readNotifications(world)).map(({ run }) => run?.moments)).toEqual([2, 3, 1, 1]);
    });

    test("that cannot start is a failed run, and may pause the schedule", async () => {
      const world = await open();
      const schedule = await create(world);
      const now = world.clock.now();
      const error = 'agent "scout" not found';
      const failed = { ...unfired("missed", now), status: "failed", requestId: "req-f", error } as const;
      await fire(world, schedule, { runs: [failed], pauses: error, nextFireAt: now + HOUR });
      expect(await runsOf(world)).toMatchObject([
        { status: "failed", error, startedAt: now, completedAt: now, taskId: null, requestId: "req-f" },
      ]);
      expect(await read(world, schedule)).toMatchObject({
        status: "paused",
        nextFireAt: null,
        runCount: 1,
        lastStatus: "failed",
        lastError: error,
        openRuns: 0,
      });
      expect(await readNotifications(world)).toMatchObject([
        { kind: "run.failed", run: { error } },
        { kind: "schedule.paused", run: null, reason: error },
      ]);
    });

    test("can move a schedule on, or pause it, without a row", async () => {
      const world = await open();
      const [moves, pauses] = [await create(world), await createOnce(world)];
      const nextFireAt = world.clock.now() + HOUR;
      const common = { tenant: TENANT, revision: 1, runs: [] };
      const answers = await world.storage.schedules.fire({
        fires: [
          { ...common, id: moves.id, nextFireAt, pauses: null },
          { ...common, id: pauses.id, nextFireAt: null, pauses: "tenant disabled" },
        ],
      });
      expect(answers.map(({ fired, runs: rows }) => [fired, rows])).toEqual([
        [true, []],
        [true, []],
      ]);
      expect(await runsOf(world)).toEqual([]);
      const untouched = { lastDueAt: null, runCount: 0, revision: 2 };
      expect(await read(world, moves)).toMatchObject({ status: "active", nextFireAt, ...untouched });
      expect(await read(world, pauses)).toMatchObject({ status: "paused", nextFireAt: null, ...untouched });
      expect(await readNotifications(world)).toMatchObject([
        { kind: "schedule.paused", reason: "tenant disabled" },
      ]);
    });

    describe("while its tenant is disabled", () => {
      const held = { status: "paused", held: true, nextFireAt: null };

      async function openDisabled(): Promise<World> {
        const world = await open();
        const limits = {
          maxQueued: null,
          maxInflight: null,
          maxSchedules: null,
          maxSessions: null,
          maxStreams: null,
          maxAgents: null,
          maxStoredBytes: null,
        };
        await world.storage.tenants.create({ id: TENANT, name: TENANT, limits });
        await world.storage.tenants.setDisabled({ id: TENANT, disabled: true });
        return world;
      }

      const hold = (world: World, schedule: ScheduleRecord) =>
        fire(world, schedule, { nextFireAt: null, pauses: "tenant disabled", whileDisabled: true });

      test("holds what it pauses, until its status is named, and not what anything else pauses", async () => {
        const world = await openDisabled();
        const [once, other] = [await createOnce(world), await createOnce(world)];
        expect(once.held).toBe(false);
        await hold(world, once);
        await fire(world, other, { nextFireAt: null, pauses: "no agent" });
        expect(await read(world, other)).toMatchObject({ status: "paused", held: false });
        const update = async (changes: UpdateScheduleParams["changes"]) => {
          const { tenant, id, revision } = await read(world, once);
          return world.storage.schedules.update({ tenant, id, revision, changes });
        };
        expect(await update({ work: { kind: "message", message: "another" } })).toMatchObject(held);
        expect(await read(world, once)).toMatchObject(held);
        expect(await update({ status: "paused" })).toMatchObject({ status: "paused", held: false });
        expect(await update({ status: "active", nextFireAt: 5 })).toMatchObject({ held: false });
        await hold(world, once);
        expect(await read(world, once)).toMatchObject(held);
        expect(await update({ status: "active", nextFireAt: 5 })).toMatchObject({ held: false });
      });

      test("does nothing once that is enabled, or gone", async () => {
        const world = await openDisabled();
        const { storage, clock } = world;
        const [once, recurring] = [await createOnce(world), await create(world)];
        await storage.tenants.setDisabled({ id: TENANT, disabled: false });
        const pushed = {
          runs: [unfired("skipped", clock.now())],
          nextFireAt: clock.now() + HOUR,
          whileDisabled: true,
        };
        expect((await hold(world, once)).fired).toBe(false);
        expect((await fire(world, recurring, pushed)).fired).toBe(false);
        expect(await read(world, once)).toEqual(once);
        expect(await read(world, recurring)).toEqual(recurring);
        expect(await runsOf(world)).toEqual([]);
        const stranger = await create(world, { tenant: "unknown" });
        expect((await fire(world, stranger, pushed)).fired).toBe(false);
        await storage.tenants.setDisabled({ id: TENANT, disabled: true });
        expect((await fire(world, recurring, pushed)).fired).toBe(true);
        expect(await read(world, recurring)).toMatchObject({ status: "active", held: false });
      });

      test("holds nothing that is over", async () => {
        const world = await openDisabled();
        const once = await createOnce(world);
        await hold(world, once);
        await fire(world, once, { runs: [unfired("missed", world.clock.now())], nextFireAt: null });
        expect(await read(world, once)).toMatchObject({ status: "failed", held: false });
      });
    });

    test("that replaces has come when the others end: one that was paused before its only moment is taken up by it", async () => {
      const world = await open();
      const rule = { kind: "once", atMs: world.clock.now(), phrase: "now", tz: "UTC" } as const;
      const schedule = await create(world, { definition: { rule }, status: "paused", nextFireAt: null });
      await fire(world, schedule, { runs: [running(world, schedule, { forced: true })], nextFireAt: null });
      await fire(world, schedule, { runs: [running(world, schedule, { replaces: true })], nextFireAt: null });
      expect(await read(world, schedule)).toMatchObject({ status: "active", openRuns: 1, nextFireAt: null });
    });

    test("that replaces ends the runs that go, in the same moment", async () => {
      const world = await open();
      const schedule = await create(world);
      const session = { key: "s", maxConcurrent: 1 };
      await fire(world, schedule, { runs: [running(world, schedule, { task: { id: "r1", session } })] });
      const held = only(await world.claim());
      world.clock.step(1);
      const { cancelled } = await fire(world, schedule, {
        runs: [running(world, schedule, { task: { id: "r2", session }, replaces: true })],
      });
      expect(cancelled).toMatchObject([{ id: "r1", token: held.token, lane: LANE, agent: AGENT }]);
      expect(await world.task("r1")).toMatchObject({ state: "cancelled", error: REPLACED });
      expect(await runsOf(world)).toMatchObject([
        { status: "running", taskId: "r2" },
        { status: "failed", taskId: "r1", reason: REPLACED, error: REPLACED, attempt: 1 },
      ]);
      expect(await read(world, schedule)).toMatchObject({
        openRuns: 1,
        lastStatus: "failed",
        status: "active",
      });
      expect((await world.finish(held, DONE)).finished).toEqual([]);
      expect(only(await world.claim()).task.id).toBe("r2");
      expect((await readNotifications(world)).map(({ kind }) => kind)).toEqual([
        "run.started",
        "run.failed",
        "run.started",
      ]);
    });

    test("is signalled to those that wait for due times, notifications and work", async () => {
      const world = await open();
      const signals: StorageSignal["kind"][] = [];
      world.storage.subscribe(({ kind }) => signals.push(kind));
      const schedule = await create(world);
      await expect.poll(() => signals).toContain("schedules");
      signals.length = 0;
      await fire(world, schedule, { runs: [running(world, schedule)] });
      await expect.poll(() => signals).toContain("notifications");
      await expect.poll(() => signals).toContain("events");
    });
  });
}
