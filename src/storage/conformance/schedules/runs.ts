import { describe, expect, test } from "vitest";
import type { ListRunsParams } from "../../storage.ts";
import { LANE, NODE, type OpenWorld, only, TENANT, type World } from "../world.ts";
import {
  create,
  createOnce,
  DONE,
  FAILED,
  fire,
  read,
  readNotifications,
  running,
  runOnce,
  runsOf,
  unfired,
} from "./schedule-world.ts";

/** The outcome of runs. */
export function describeRuns(open: OpenWorld): void {
  describe("a run", () => {
    test("ends with its task, and notifies how", async () => {
      const world = await open();
      const schedule = await create(world);
      await fire(world, schedule, { runs: [running(world, schedule)], nextFireAt: 9_999 });
      const { token, task } = only(await world.claim());
      world.clock.step(7);
      const usage = { inputTokens: 10, outputTokens: 3, contextTokens: 13 };
      const finishes = [{ seq: task.seq, token, settlement: DONE, usage, summary: "all quiet" }];
      await world.storage.tasks.finishAndClaim({ node: NODE, finishes, progress: [], claims: [] });
      const now = world.clock.now();
      expect(await runsOf(world)).toMatchObject([
        {
          status: "succeeded",
          completedAt: now,
          resultSummary: "all quiet",
          error: null,
          inputTokens: 10,
          outputTokens: 3,
          attempt: 1,
        },
      ]);
      expect(await read(world, schedule)).toMatchObject({
        status: "active",
        nextFireAt: 9_999,
        lastStatus: "succeeded",
        lastError: null,
        openRuns: 0,
        revision: 3,
        updatedAt: schedule.updatedAt,
      });
      expect((await readNotifications(world)).at(-1)).toMatchObject({
        kind: "run.completed",
        at: now,
        run: { status: "succeeded", completedAt: now, resultSummary: "all quiet" },
      });
    });

    test("goes on while its task is tried again, and fails when that does", async () => {
      const world = await open();
      const schedule = await create(world);
      await fire(world, schedule, { runs: [running(world, schedule)] });
      await runOnce(world, { to: "delayed", error: "no luck", runAt: world.clock.now() + 5 });
      expect(await runsOf(world)).toMatchObject([{ status: "running", attempt: 1, completedAt: null }]);
      world.clock.step(5);
      await world.storage.tasks.promoteDue({ limit: 9 });
      await runOnce(world, FAILED);
      expect(await runsOf(world)).toMatchObject([
        { status: "failed", error: "no luck", reason: null, attempt: 2, resultSummary: null },
      ]);
      expect(await read(world, schedule)).toMatchObject({
        status: "active",
        lastStatus: "failed",
        lastError: "no luck",
      });
      expect((await readNotifications(world)).at(-1)).toMatchObject({
        kind: "run.failed",
        run: { error: "no luck" },
      });
    });

    test.each([
      [
        "was cancelled",
        (world: World, id: string) => world.storage.tasks.cancel({ tenant: TENANT, ids: [id], error: null }),
        "cancelled",
        "cancelled",
      ],
      [
        "was overdue",
        (world: World) => {
          world.clock.step(100);
          return world.storage.tasks.expire({ limit: 9 });
        },
        "deadline exceeded while queued",
        null,
      ],
      [
        "was cleared from its lane",
        (world: World) =>
          world.storage.lanes.clear({ tenant: TENANT, name: LANE, error: "lane_cleared", limit: 9 }),
        "lane_cleared",
        "lane_cleared",
      ],
      [
        "was stopped in its session",
        (world: World) => world.storage.sessions.stop({ tenant: TENANT, key: "s", scope: "all", limit: 9 }),
        "stopped",
        "stopped",
      ],
    ])("fails when its task %s while it waited", async (_what, end, error, reason) => {
      const world = await open();
      const schedule = await create(world);
      const task = { id: "r1", session: { key: "s", maxConcurrent: 1 }, deadline: world.clock.now() + 50 };
      await fire(world, schedule, { runs: [running(world, schedule, { task })] });
      await end(world, "r1");
      expect(await runsOf(world)).toMatchObject([{ status: "failed", error, reason, attempt: 0 }]);
      expect(await read(world, schedule)).toMatchObject({ openRuns: 0, lastStatus: "failed" });
      expect(await world.storage.counters.recountAll()).toEqual([]);
    });

    test("fails with its node when it has no retries left", async () => {
      const world = await open();
      const schedule = await create(world);
      await fire(world, schedule, { runs: [running(world, schedule, { task: { maxRetriesIfLost: 0 } })] });
      await world.claim();
      await world.crash(NODE);
      await world.storage.tasks.rescue({ node: NODE, limit: 9 });
      expect(await runsOf(world)).toMatchObject([{ status: "failed", error: "worker lost", attempt: 1 }]);
    });

    test("is taken up again with its task", async () => {
      const world = await open();
      const schedule = await createOnce(world);
      await fire(world, schedule, {
        runs: [running(world, schedule, { task: { id: "r1" } })],
        nextFireAt: null,
      });
      await runOnce(world, FAILED);
      expect((await read(world, schedule)).status).toBe("failed");
      await world.storage.tasks.retry({ tenant: TENANT, id: "r1" });
      expect(await runsOf(world)).toMatchObject([{ status: "running", completedAt: null, error: null }]);
      expect(await read(world, schedule)).toMatchObject({ status: "active", openRuns: 1, nextFireAt: null });
      await runOnce(world, DONE, "at last");
      expect(await runsOf(world)).toMatchObject([
        { status: "succeeded", resultSummary: "at last", attempt: 2 },
      ]);
      expect(await read(world, schedule)).toMatchObject({ status: "completed", openRuns: 0, runCount: 1 });
      expect((await readNotifications(world)).map(({ kind }) => kind)).toEqual([
        "run.started",
        "run.failed",
        "run.started",
        "run.completed",
      ]);
    });

    test("is found by schedule, status and time, newest first, page by page", async () => {
      const world = await open();
      const schedule = await create(world);
      const other = await create(world);
      await create(world, { tenant: "zeta" });
      const begin = world.clock.now();
      await fire(world, schedule, { runs: [running(world, schedule, { dueAt: 1, firstDueAt: 1 })] });
      world.clock.step(10);
      await fire(world, other, { runs: [unfired("skipped", 2)] });
      world.clock.step(10);
      await fire(world, schedule, { runs: [running(world, schedule, { dueAt: 3, firstDueAt: 3 })] });
      const dueAts = async (params: Partial<ListRunsParams>) =>
        (await runsOf(world, params)).map(({ dueAt }) => dueAt);
      expect(await dueAts({})).toEqual([3, 2, 1]);
      expect(await dueAts({ schedule: schedule.id })).toEqual([3, 1]);
      expect(await dueAts({ status: "skipped" })).toEqual([2]);
      expect(await dueAts({ since: begin + 10 })).toEqual([3, 2]);
      expect(await dueAts({ since: begin + 10, status: "running", schedule: schedule.id })).toEqual([3]);
      await runOnce(world, DONE);
      expect(await dueAts({ since: begin + 20 })).toEqual([3, 1]);
      expect(await dueAts({ tenant: "zeta" })).toEqual([]);
      const first = await world.storage.schedules.listRuns({ tenant: TENANT, limit: 2 });
      expect(first.runs.map(({ dueAt }) => dueAt)).toEqual([3, 2]);
      const cursor = first.nextCursor ?? 0;
      const rest = await world.storage.schedules.listRuns({ tenant: TENANT, limit: 2, cursor });
      expect([rest.runs.map(({ dueAt }) => dueAt), rest.nextCursor]).toEqual([[1], null]);
    });

    test("goes when it has been over for long enough, and so do the notifications", async () => {
      const world = await open();
      const schedule = await create(world);
      await fire(world, schedule, { runs: [unfired("skipped", 1), running(world, schedule)] });
      world.clock.step(100);
      await fire(world, schedule, { runs: [unfired("skipped", 2)] });
      let more = true;
      while (more) ({ more } = await world.storage.schedules.prune({ retentionMs: 50, limit: 1 }));
      expect((await runsOf(world)).map(({ status }) => status)).toEqual(["skipped", "running"]);
      expect((await readNotifications(world)).map(({ kind }) => kind)).toEqual(["run.skipped"]);
      await world.storage.schedules.prune({ retentionMs: -1, limit: 100 });
      const { oldest, newest } = await world.storage.notifications.range();
      expect(oldest).toBe(newest + 1);
      await fire(world, schedule, { runs: [unfired("skipped", 3)] });
      expect(only(await readNotifications(world)).seq).toBeGreaterThan(newest);
    });

    test("has notifications that are known by more than their numbers, and found by when they were written", async () => {
      const world = await open();
      const { notifications } = world.storage;
      const schedule = await create(world);
      expect(await notifications.lastUntil({ at: world.clock.now() })).toBe(0);
      await fire(world, schedule, { runs: [unfired("skipped", 1)] });
      const at = world.clock.now();
      world.clock.step(10);
      await fire(world, schedule, { runs: [unfired("missed", 2)] });
      const all = await readNotifications(world);
      expect(all.map(({ kind }) => kind)).toEqual(["run.skipped", "run.missed"]);
      for (const { seq, kind: type, at: writtenAt } of all) {
        const mark = { type, at: writtenAt };
        expect(await notifications.mark({ seq })).toEqual(mark);
        const page = await notifications.read({ after: seq, limit: 1 });
        expect([page.mark, page.notifications.every((each) => each.seq > seq)]).toEqual([mark, true]);
      }
      const [first, second] = all.map(({ seq }) => seq);
      const page = await notifications.read({ after: 0, limit: 1 });
      expect([page.mark, page.more, page.notifications.map(({ seq }) => seq)]).toEqual([null, true, [first]]);
      expect(await notifications.mark({ seq: (second ?? 0) + 1 })).toBeNull();
      const found = [at - 1, at, at + 10].map((until) => notifications.lastUntil({ at: until }));
      expect(await Promise.all(found)).toEqual([0, first, second]);
    });

    test("keeps its notification when the clock is set back", async () => {
      const world = await open();
      const schedule = await create(world);
      await fire(world, schedule, { runs: [unfired("skipped", 1)] });
      world.clock.step(-50);
      await world.storage.schedules.prune({ retentionMs: 50, limit: 100 });
      expect((await readNotifications(world)).map(({ kind }) => kind)).toEqual(["run.skipped"]);
    });

    test("takes numbers that were never used, whatever was deleted", async () => {
      const world = await open();
      const first = await create(world);
      const { runs } = await fire(world, first, { runs: [unfired("skipped", 1)] });
      await world.storage.schedules.delete(first);
      const second = await create(world);
      const again = await fire(world, second, { runs: [unfired("skipped", 1)] });
      expect(second.id).toBeGreaterThan(first.id);
      expect(only(again.runs).id).toBeGreaterThan(only(runs).id);
    });
  });
}
