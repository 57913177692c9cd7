import { describe, expect, test } from "vitest";
import type { StorageSignal } from "../../storage.ts";
import { type OpenWorld, TENANT } from "../world.ts";
import { create, createOnce, fire, HOUR, read, running, runsOf, unfired } from "./schedule-world.ts";

/** What happens to due times in the future after the clock was set back. */
export function describeRewindSchedule(open: OpenWorld): void {
  describe("the rows of due times", () => {
    test("are read in the order of those, without runs out of turn and others' rows", async () => {
      const world = await open();
      const schedule = await create(world);
      const other = await create(world);
      const now = world.clock.now();
      await fire(world, other, { runs: [running(world, other, { dueAt: now + HOUR })] });
      await fire(world, schedule, {
        runs: [
          running(world, schedule, { dueAt: now + 2 * HOUR }),
          { ...unfired("skipped", now + HOUR), firstDueAt: now + HOUR - 1, moments: 2 },
          running(world, schedule, { dueAt: now + 3 * HOUR, forced: true }),
        ],
      });
      const rows = (after: number, limit = 9) =>
        world.storage.schedules.dueRows({ tenant: TENANT, id: schedule.id, after, limit });
      const all = await rows(now);
      expect(all).toEqual([
        {
          runId: expect.any(Number),
          firstDueAt: now + HOUR - 1,
          dueAt: now + HOUR,
          moments: 2,
          started: false,
        },
        {
          runId: expect.any(Number),
          firstDueAt: now + 2 * HOUR,
          dueAt: now + 2 * HOUR,
          moments: 1,
          started: true,
        },
      ]);
      expect(await rows(now, 1)).toEqual(all.slice(0, 1));
      expect(await rows(now + HOUR)).toEqual(all.slice(1));
      const foreign = { tenant: "zeta", id: schedule.id, after: 0, limit: 9 };
      expect(await world.storage.schedules.dueRows(foreign)).toEqual([]);
    });
  });

  describe("a rewind", () => {
    test("takes back what did not start, lets the rest stand for less, and makes the schedule due", async () => {
      const world = await open();
      const schedule = await create(world);
      const now = world.clock.now();
      const at = (hours: number) => now + hours * HOUR;
      world.clock.step(5 * HOUR);
      const { revision } = await fire(world, schedule, {
        runs: [
          { ...unfired("missed", at(2)), firstDueAt: now, moments: 3 },
          { ...running(world, schedule, { dueAt: at(4) }), firstDueAt: at(3), moments: 2 },
          unfired("skipped", at(5)),
        ],
        nextFireAt: at(6),
      }).then(() => read(world, schedule));
      world.clock.step(-4.5 * HOUR);
      const kinds: StorageSignal["kind"][] = [];
      world.storage.subscribe(({ kind }) => void kinds.push(kind));
      const [missed, ran, skipped] = await world.storage.schedules.dueRows({
        tenant: TENANT,
        id: schedule.id,
        after: 0,
        limit: 9,
      });
      const rows = [
        { runId: missed?.runId as number, firstDueAt: now, dueAt: now, moments: 1 },
        { runId: ran?.runId as number, firstDueAt: at(4), dueAt: at(4), moments: 1 },
        { runId: skipped?.runId as number, firstDueAt: at(5), dueAt: at(5), moments: 0 },
      ];
      const rest = { firstDueAt: now - HOUR, dueAt: now - HOUR, moments: 1, reason: "was caught up with" };
      const params = {
        tenant: TENANT,
        id: schedule.id,
        rows,
        missed: [rest],
        nextFireAt: at(1),
        reopens: false,
      };
      expect(await world.storage.schedules.rewind({ ...params, revision: revision - 1 })).toBe(false);
      expect(await world.storage.schedules.rewind({ ...params, revision })).toBe(true);
      expect(kinds).toContain("schedules");
      const heard = (await world.storage.notifications.read({ after: 0, limit: 99 })).notifications.at(-1);
      expect(heard).toMatchObject({ kind: "run.missed", run: { dueAt: now - HOUR, reason: rest.reason } });
      expect(
        (await runsOf(world)).map(({ status, firstDueAt, dueAt, moments }) => [
          status,
          firstDueAt - now,
          dueAt - now,
          moments,
        ]),
      ).toEqual([
        ["missed", -HOUR, -HOUR, 1],
        ["running", 4 * HOUR, 4 * HOUR, 1],
        ["missed", 0, 0, 1],
      ]);
      expect(await read(world, schedule)).toMatchObject({
        revision: revision + 1,
        nextFireAt: at(1),
        lastDueAt: at(4),
        status: "active",
      });
    });

    test("leaves due times that have run between those that are missed afterwards, which share no row", async () => {
      const world = await open();
      const schedule = await create(world);
      const now = world.clock.now();
      const at = (hours: number) => now + hours * HOUR;
      await fire(world, schedule, { runs: [running(world, schedule, { dueAt: at(2) })] });
      await fire(world, schedule, { runs: [unfired("missed", at(1))] });
      await fire(world, schedule, { runs: [unfired("missed", at(3))] });
      await fire(world, schedule, { runs: [unfired("missed", at(4))] });
      const seen = (await runsOf(world)).map(({ dueAt, moments }) => [dueAt - now, moments]);
      expect(seen).toEqual([
        [4 * HOUR, 2],
        [HOUR, 1],
        [2 * HOUR, 1],
      ]);
    });

    test("touches nothing that does not lie ahead", async () => {
      const world = await open();
      const schedule = await create(world);
      const now = world.clock.now();
      await fire(world, schedule, { runs: [unfired("skipped", now)], nextFireAt: now + HOUR });
      const [row] = await world.storage.schedules.dueRows({
        tenant: TENANT,
        id: schedule.id,
        after: 0,
        limit: 1,
      });
      const { revision } = await read(world, schedule);
      const rows = [{ runId: row?.runId as number, firstDueAt: now, dueAt: now, moments: 0 }];
      const params = {
        tenant: TENANT,
        id: schedule.id,
        revision,
        rows,
        missed: [],
        nextFireAt: now,
        reopens: false,
      };
      expect(await world.storage.schedules.rewind(params)).toBe(false);
      expect(await read(world, schedule)).toMatchObject({ revision, nextFireAt: now + HOUR });
    });

    test("lets a one-shot that missed its only due time have it again", async () => {
      const world = await open();
      const schedule = await createOnce(world);
      const dueAt = world.clock.now();
      await fire(world, schedule, { runs: [unfired("missed", dueAt)], nextFireAt: null });
      expect(await read(world, schedule)).toMatchObject({ status: "failed", lastStatus: "missed" });
      world.clock.step(-HOUR);
      const [row] = await world.storage.schedules.dueRows({
        tenant: TENANT,
        id: schedule.id,
        after: 0,
        limit: 1,
      });
      const { revision } = await read(world, schedule);
      const rows = [{ runId: row?.runId as number, firstDueAt: dueAt, dueAt, moments: 0 }];
      const params = {
        tenant: TENANT,
        id: schedule.id,
        revision,
        rows,
        missed: [],
        nextFireAt: dueAt,
        reopens: true,
      };
      expect(await world.storage.schedules.rewind(params)).toBe(true);
      expect(await read(world, schedule)).toMatchObject({
        status: "active",
        nextFireAt: dueAt,
        lastDueAt: null,
        lastStatus: null,
        lastError: null,
        updatedAt: dueAt - HOUR,
      });
      expect(await runsOf(world)).toEqual([]);
    });

    test("leaves one that is paused without a next due time", async () => {
      const world = await open();
      const schedule = await create(world);
      const now = world.clock.now();
      await fire(world, schedule, { runs: [unfired("skipped", now + HOUR)], nextFireAt: null, pauses: "x" });
      const [row] = await world.storage.schedules.dueRows({
        tenant: TENANT,
        id: schedule.id,
        after: 0,
        limit: 1,
      });
      const { revision } = await read(world, schedule);
      const rows = [{ runId: row?.runId as number, firstDueAt: now, dueAt: now, moments: 0 }];
      const params = {
        tenant: TENANT,
        id: schedule.id,
        revision,
        rows,
        missed: [],
        nextFireAt: now + 1,
        reopens: false,
      };
      expect(await world.storage.schedules.rewind(params)).toBe(true);
      expect(await read(world, schedule)).toMatchObject({
        status: "paused",
        nextFireAt: null,
        lastDueAt: null,
      });
    });
  });
}
