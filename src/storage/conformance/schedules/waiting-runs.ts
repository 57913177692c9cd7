import { describe, expect, test } from "vitest";
import { SKIPPED_ROWS_MAX, TOO_MANY_WAITING } from "../../../model/run.ts";
import type { ScheduleRecord } from "../../storage.ts";
import { type OpenWorld, only, type World } from "../world.ts";
import {
  create,
  DONE,
  fire,
  HOUR,
  read,
  readNotifications,
  running,
  runOnce,
  runsOf,
  unfired,
} from "./schedule-world.ts";

/** How many runs of a schedule may wait. */
export function describeWaitingRuns(open: OpenWorld): void {
  describe("a schedule whose runs wait", () => {
    test("has a due time beyond the bound skipped, and says why", async () => {
      const world = await open();
      const schedule = await create(world, { definition: { overlap: "allow" } });
      for (let count = 0; count < 2; count += 1) await fireNext(world, schedule);
      const { fired, runs } = await fireNext(world, schedule);
      expect(fired).toBe(true);
      expect(only(runs).task).toBeNull();
      expect(await stories(world)).toEqual(["skipped 1 too_many_waiting", "running 1", "running 1"]);
      expect((await readNotifications(world)).at(-1)).toMatchObject({
        kind: "run.skipped",
        run: { reason: TOO_MANY_WAITING },
      });
      expect(await read(world, schedule)).toMatchObject({
        openRuns: 2,
        runCount: 2,
        status: "active",
        lastDueAt: world.clock.now(),
        nextFireAt: world.clock.now() + HOUR,
      });
      expect(await world.storage.counters.recountAll()).toEqual([]);
    });

    test("counts those that are neither running nor over, also while they wait for a retry", async () => {
      const world = await open();
      const schedule = await create(world, { definition: { overlap: "allow" } });
      for (let count = 0; count < 2; count += 1) await fireNext(world, schedule);
      const held = only(await world.claim());
      expect(only((await fireNext(world, schedule)).runs).task).not.toBeNull();
      expect(only((await fireNext(world, schedule)).runs).task).toBeNull();
      await world.finish(held, { to: "delayed", runAt: world.clock.now() + HOUR, error: "no luck" });
      await runOnce(world, DONE);
      expect(only((await fireNext(world, schedule)).runs).task).toBeNull();
      await runOnce(world, DONE);
      expect(only((await fireNext(world, schedule)).runs).task).not.toBeNull();
    });

    test("shares one row between due times that are skipped in a row, and notifies of the first alone", async () => {
      const world = await open();
      const schedule = await create(world, { definition: { overlap: "allow" } });
      for (let count = 0; count < 5; count += 1) await fireNext(world, schedule);
      expect(await stories(world)).toEqual(["skipped 3 too_many_waiting", "running 1", "running 1"]);
      const [row] = await runsOf(world);
      const now = world.clock.now();
      expect(row).toMatchObject({ dueAt: now, firstDueAt: now - 2 * HOUR, completedAt: now });
      const kinds = (await readNotifications(world)).map(({ kind }) => kind);
      expect(kinds).toEqual(["run.started", "run.started", "run.skipped"]);
      await runOnce(world, DONE);
      await fireNext(world, schedule);
      await fireNext(world, schedule);
      expect((await stories(world)).slice(0, 3)).toEqual([
        "skipped 1 too_many_waiting",
        "running 1",
        "skipped 3 too_many_waiting",
      ]);
      world.clock.step(HOUR);
      await fire(world, schedule, { runs: [unfired("skipped", world.clock.now())] });
      expect((await stories(world)).slice(0, 2)).toEqual([
        "skipped 1 was skipped",
        "skipped 1 too_many_waiting",
      ]);
    });

    test("has ten rows of due times that are skipped in a row for another reason, and counts the rest in the last", async () => {
      const world = await open();
      const schedule = await create(world);
      const skip = async (count: number, reason: string) => {
        for (let n = 0; n < count; n += 1) {
          world.clock.step(HOUR);
          const run = { ...unfired("skipped", world.clock.now()), status: "skipped" as const, reason };
          await fire(world, schedule, { runs: [run] });
        }
      };
      await skip(SKIPPED_ROWS_MAX + 5, "still going");
      const own = Array.from({ length: SKIPPED_ROWS_MAX - 1 }, () => "skipped 1 still going");
      expect(await stories(world)).toEqual(["skipped 6 still going", ...own]);
      const now = world.clock.now();
      expect((await runsOf(world))[0]).toMatchObject({ dueAt: now, firstDueAt: now - 5 * HOUR });
      const kinds = (await readNotifications(world)).map(({ kind }) => kind);
      expect(kinds).toEqual(Array.from({ length: SKIPPED_ROWS_MAX }, () => "run.skipped"));
      await skip(1, "tenant disabled");
      await skip(2, "still going");
      expect((await stories(world)).slice(0, 4)).toEqual([
        "skipped 1 still going",
        "skipped 1 still going",
        "skipped 1 tenant disabled",
        "skipped 6 still going",
      ]);
      // A due time cannot share the row of a later one.
      await skip(SKIPPED_ROWS_MAX - 2, "still going");
      const late = {
        ...unfired("skipped", world.clock.now() - 1),
        status: "skipped" as const,
        reason: "still going",
      };
      await fire(world, schedule, { runs: [late] });
      expect((await stories(world)).slice(0, 2)).toEqual(["skipped 1 still going", "skipped 1 still going"]);
    });

    test("fires as many of several due times as may wait, and skips the rest in one row", async () => {
      const world = await open();
      const schedule = await create(world, { definition: { overlap: "queue" } });
      await fireNext(world, schedule);
      const from = world.clock.now();
      const session = { key: "s", maxConcurrent: 1 };
      const runs = [1, 2, 3].map((hour) =>
        running(world, schedule, { dueAt: from + hour * HOUR, task: { session } }),
      );
      world.clock.step(3 * HOUR);
      const { runs: written } = await fire(world, schedule, {
        runs: [unfired("missed", from + 1), ...runs],
        waitingMax: 2,
      });
      expect(written.map(({ task }) => task !== null)).toEqual([false, true, false, false]);
      expect(await stories(world)).toEqual([
        "skipped 2 too_many_waiting",
        "running 1",
        "missed 1 was missed",
        "running 1",
      ]);
      expect(await read(world, schedule)).toMatchObject({ openRuns: 2, runCount: 2 });
    });

    test("refuses a run out of turn without a row, and lets one that replaces take the place of all", async () => {
      const world = await open();
      const schedule = await create(world, { definition: { overlap: "replace" } });
      for (let count = 0; count < 2; count += 1) await fireNext(world, schedule);
      const forced = [running(world, schedule, { forced: true })];
      expect(await fire(world, schedule, { runs: forced, waitingMax: 2 })).toMatchObject({
        fired: true,
        runs: [],
      });
      expect(await runsOf(world)).toHaveLength(2);
      world.clock.step(HOUR);
      const replacing = [running(world, schedule, { replaces: true })];
      const { runs, cancelled } = await fire(world, schedule, { runs: replacing, waitingMax: 2 });
      expect(only(runs).task).not.toBeNull();
      expect(cancelled).toHaveLength(2);
    });

    test("does not hold up another", async () => {
      const world = await open();
      const full = await create(world, { definition: { overlap: "allow" } });
      const other = await create(world, { definition: { overlap: "allow" } });
      for (let count = 0; count < 2; count += 1) await fireNext(world, full);
      world.clock.step(HOUR);
      const fires = await Promise.all(
        [full, other].map(async (each) => {
          const schedule = await read(world, each);
          const nextFireAt = world.clock.now() + HOUR;
          return { ...schedule, runs: [running(world, schedule)], nextFireAt, pauses: null, waitingMax: 2 };
        }),
      );
      const answers = await world.storage.schedules.fire({ fires });
      expect(answers.map(({ runs }) => only(runs).task !== null)).toEqual([false, true]);
    });
  });
}

/** Fires the next due time, an hour later. Two runs may wait. */
function fireNext(world: World, schedule: ScheduleRecord) {
  world.clock.step(HOUR);
  const nextFireAt = world.clock.now() + HOUR;
  return fire(world, schedule, { runs: [running(world, schedule)], nextFireAt, waitingMax: 2 });
}

/** All runs, newest first. */
async function stories(world: World): Promise<string[]> {
  return (await runsOf(world)).map(({ status, moments, reason }) =>
    [status, moments, ...(reason === null ? [] : [reason])].join(" "),
  );
}
