import { describe, expect, test } from "vitest";
import { SCHEDULE_DELETED, type ScheduleWork } from "../../../model/schedule.ts";
import type { ScheduleRecord, StorageSignal } from "../../storage.ts";
import { AGENT, type OpenWorld, only, TENANT } from "../world.ts";
import {
  create,
  createOnce,
  DONE,
  FAILED,
  fire,
  HOUR,
  newDefinition,
  read,
  readNotifications,
  running,
  runOnce,
  runsOf,
  unfired,
} from "./schedule-world.ts";

/** What is stored of schedules, and how their status changes. */
export function describeSchedules(open: OpenWorld): void {
  describe("large schedules", () => {
    const LARGE: ScheduleWork = { kind: "custom", payload: { text: "é".repeat(200_000) } };
    const ids = (records: readonly ScheduleRecord[]) => records.map(({ id }) => id);

    test("are kept with all that was said of them", async () => {
      const world = await open();
      const metadata = { text: "x".repeat(20_000) };
      const { tenant, id } = await create(world, { definition: { work: LARGE, metadata } });
      const kept = await world.storage.schedules.get({ tenant, id });
      expect({ ...kept }).toMatchObject({ work: LARGE, metadata });
    });

    test("are measured without being read", async () => {
      const world = await open();
      const { tenant, id } = await create(world, { definition: { work: LARGE } });
      const bytes = (await world.storage.schedules.size({ tenant, id })) ?? 0;
      expect(bytes).toBeGreaterThan(400_000);
      expect(bytes).toBeLessThan(401_000);
      expect(await world.storage.schedules.size({ tenant: "other", id })).toBeNull();
    });

    test("end a list with the one that makes it too large, and a page", async () => {
      const world = await open();
      const made: ScheduleRecord[] = [];
      for (let count = 0; count < 5; count += 1)
        made.push(await create(world, { definition: { work: LARGE } }));
      const newest = ids(made).reverse();
      const list = { tenant: TENANT, limit: 10 };
      const { schedules } = world.storage;
      expect(ids(await schedules.list(list))).toEqual(newest);
      expect(ids(await schedules.list({ ...list, bytesMax: 900_000 }))).toEqual(newest.slice(0, 3));
      expect(ids(await schedules.list({ ...list, bytesMax: 1 }))).toEqual(newest.slice(0, 1));
      const below = made[3]?.id ?? 0;
      expect(ids(await schedules.list({ ...list, below, bytesMax: 1 }))).toEqual([below - 1]);
      const page = ids(await schedules.page({ tenant: TENANT, after: 0, limit: 10 }));
      expect(page).toEqual(ids(made).slice(0, 3));
    });

    test("come few at a time when they are due, and those of each tenant do", async () => {
      const world = await open();
      const made: ScheduleRecord[] = [];
      for (const tenant of [TENANT, TENANT, "zeta"])
        made.push(await create(world, { definition: { work: LARGE }, tenant }));
      const due = await world.storage.schedules.due({ limit: 10 });
      expect(new Set(ids(due))).toEqual(new Set([made[0]?.id, made[2]?.id]));
    });
  });

  describe("a schedule", () => {
    test("is kept with all that was said of it", async () => {
      const world = await open();
      const definition = newDefinition({
        name: "häufig 🕐",
        conversationId: "c1",
        sessionKey: "user:1",
        postToSession: true,
        overlap: "queue",
        catchUp: "all",
        usefulForMs: 1_000,
        timeoutMs: 5_000,
        deleteAfterRun: true,
        rule: { kind: "weeks", every: 2, on: ["Mon", "Fri"], at: "09:00", tz: "Europe/Berlin" },
      });
      const made = await world.storage.schedules.create({
        tenant: TENANT,
        definition,
        status: "active",
        nextFireAt: 7,
        source: null,
      });
      const now = world.clock.now();
      expect(made).toEqual({
        ...definition,
        id: made.id,
        tenant: TENANT,
        status: "active",
        revision: 1,
        createdAt: now,
        updatedAt: now,
        nextFireAt: 7,
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
      });
      expect(await read(world, made)).toEqual(made);
      expect(await world.storage.schedules.get({ tenant: "zeta", id: made.id })).toBeNull();
    });

    test("is made once for the same source of a tenant", async () => {
      const world = await open();
      const first = await create(world, { source: "writ:1" });
      const again = await create(world, {
        source: "writ:1",
        definition: { work: { kind: "message", message: "another" } },
      });
      expect(again).toEqual(first);
      const others = [await create(world, { source: "writ:1", tenant: "zeta" }), await create(world)];
      expect(new Set([first, ...others].map(({ id }) => id)).size).toBe(3);
    });

    test("is listed by its last change, with filters, and by id", async () => {
      const world = await open();
      const [a, b, c] = [
        await create(world),
        await create(world, { definition: { agent: "other" } }),
        await create(world, { status: "paused", nextFireAt: null }),
      ];
      await create(world, { tenant: "zeta" });
      world.clock.step(5);
      await world.storage.schedules.update({ ...a, changes: { name: "first" } });
      const list = async (filter: { status?: "paused"; agent?: string } = {}) =>
        (await world.storage.schedules.list({ tenant: TENANT, limit: 10, ...filter })).map(({ id }) => id);
      expect(await list()).toEqual([a.id, c.id, b.id]);
      expect(await list({ status: "paused" })).toEqual([c.id]);
      expect(await list({ agent: "other" })).toEqual([b.id]);
      const byId = async (filter: { status?: "paused"; agent?: string; below: number; limit?: number }) =>
        (await world.storage.schedules.list({ tenant: TENANT, limit: 10, ...filter })).map(({ id }) => id);
      expect(await byId({ below: Number.MAX_SAFE_INTEGER })).toEqual([c.id, b.id, a.id]);
      expect(await byId({ below: c.id, limit: 1 })).toEqual([b.id]);
      expect(await byId({ below: c.id, agent: "other" })).toEqual([b.id]);
      expect(await byId({ below: c.id, status: "paused" })).toEqual([]);
      const count = (filter: { status?: "paused"; agent?: string } = {}) =>
        world.storage.schedules.count({ tenant: TENANT, ...filter });
      expect([await count(), await count({ status: "paused" }), await count({ agent: "other" })]).toEqual([
        3, 1, 1,
      ]);
      expect(await count({ status: "paused", agent: "other" })).toBe(0);
      const pages = await world.storage.schedules.page({ tenant: TENANT, after: a.id, limit: 1 });
      expect(pages.map(({ id }) => id)).toEqual([b.id]);
      expect(await world.storage.schedules.status({ tenant: TENANT })).toEqual({
        active: 2,
        paused: 1,
        running: 0,
        nextFireAt: b.nextFireAt,
      });
    });

    test("is changed only by a caller that knows it as it is", async () => {
      const world = await open();
      const made = await create(world);
      world.clock.step(3);
      const changed = await world.storage.schedules.update({
        ...made,
        changes: { work: { kind: "message", message: "new" }, nextFireAt: 99 },
      });
      expect(changed).toMatchObject({
        work: { kind: "message", message: "new" },
        nextFireAt: 99,
        revision: 2,
        createdAt: made.createdAt,
        updatedAt: world.clock.now(),
      });
      expect(
        await world.storage.schedules.update({
          ...made,
          changes: { work: { kind: "message", message: "late" } },
        }),
      ).toBeNull();
      expect(await world.storage.schedules.update({ ...made, tenant: "zeta", changes: {} })).toBeNull();
      expect((await read(world, made)).work).toMatchObject({ message: "new" });
    });

    test("stays as it is while a moment that has come has no row, if that is asked for", async () => {
      const world = await open();
      const made = await create(world, { nextFireAt: world.clock.now() + 10 });
      const pause = { ...made, changes: { status: "paused" }, unlessDue: true } as const;
      world.clock.step(10);
      expect(await world.storage.schedules.update(pause)).toBeNull();
      expect(await read(world, made)).toEqual(made);
      await fire(world, made, {
        runs: [unfired("missed", world.clock.now())],
        nextFireAt: world.clock.now() + 10,
      });
      expect(await world.storage.schedules.update({ ...pause, revision: 2 })).toMatchObject({
        status: "paused",
        nextFireAt: null,
      });
      expect(await runsOf(world)).toHaveLength(1);
    });

    test("has nothing due while it is paused, and notifies why it is", async () => {
      const world = await open();
      const made = await create(world);
      const paused = await world.storage.schedules.update({
        ...made,
        changes: { status: "paused" },
        pauseReason: "asked to",
      });
      expect(paused).toMatchObject({ status: "paused", nextFireAt: null });
      expect(await world.storage.schedules.nextDueAt()).toBeNull();
      await world.storage.schedules.update({
        ...made,
        revision: 2,
        changes: { status: "paused", name: "x" },
      });
      expect(await readNotifications(world)).toMatchObject([
        {
          kind: "schedule.paused",
          scheduleId: made.id,
          agent: AGENT,
          tenant: TENANT,
          run: null,
          reason: "asked to",
        },
      ]);
      const resumed = await world.storage.schedules.update({
        ...made,
        revision: 3,
        changes: { status: "active", nextFireAt: 500 },
      });
      expect(resumed).toMatchObject({ status: "active", nextFireAt: 500 });
      expect(await world.storage.schedules.nextDueAt()).toBe(500);
    });

    test("goes with its runs, whose tasks are cancelled", async () => {
      const world = await open();
      const schedule = await create(world, { definition: { overlap: "allow" } });
      await fire(world, schedule, { runs: [running(world, schedule, { task: { id: "r1" } })] });
      const held = only(await world.claim());
      world.clock.step(1);
      await fire(world, schedule, { runs: [running(world, schedule, { task: { id: "r2" } })] });
      expect(await world.storage.schedules.delete({ ...schedule, tenant: "zeta" })).toBeNull();
      const signals: StorageSignal[] = [];
      world.storage.subscribe((signal) => signals.push(signal));
      const deleted = await world.storage.schedules.delete(schedule);
      expect(deleted?.cancelled).toMatchObject([
        { id: "r1", token: held.token },
        { id: "r2", token: null },
      ]);
      expect(await world.task("r1")).toMatchObject({ state: "cancelled", error: SCHEDULE_DELETED });
      expect(await world.storage.schedules.get(schedule)).toBeNull();
      expect(await runsOf(world)).toEqual([]);
      expect((await readNotifications(world)).map(({ kind }) => kind)).toEqual([
        "run.started",
        "run.started",
        "run.failed",
        "run.failed",
        "schedule.canceled",
      ]);
      expect(await world.storage.schedules.delete(schedule)).toBeNull();
      const tokens = { kind: "fenced", tokens: [held.token], reason: "cancelled" };
      await expect.poll(() => signals).toContainEqual(tokens);
      await world.storage.tasks.retry({ tenant: TENANT, id: "r1" });
      expect(await world.storage.counters.recountAll()).toEqual([]);
    });
  });

  describe("a schedule that is deleted with care", () => {
    test("lets what runs come to its end, and cancels the rest", async () => {
      const world = await open();
      const schedule = await create(world, { definition: { overlap: "allow" } });
      await fire(world, schedule, { runs: [running(world, schedule, { task: { id: "r1" } })] });
      const held = only(await world.claim());
      world.clock.step(1);
      await fire(world, schedule, { runs: [running(world, schedule, { task: { id: "r2" } })] });
      const deleted = await world.storage.schedules.delete({ ...schedule, sparesRunning: true });
      expect(deleted?.cancelled).toMatchObject([{ id: "r2", token: null }]);
      expect(await runsOf(world)).toEqual([]);
      expect((await world.finish(held, DONE)).finished).toMatchObject([{ state: "done" }]);
      expect((await readNotifications(world)).at(-1)).toMatchObject({ kind: "schedule.canceled" });
      expect(await world.storage.counters.recountAll()).toEqual([]);
    });
  });

  describe("a schedule with many runs", () => {
    test("is deleted in slices, the oldest first, and fires nothing meanwhile", async () => {
      const world = await open();
      const schedule = await create(world, { definition: { overlap: "allow" } });
      for (let hour = 0; hour < 4; hour += 1)
        await fire(world, schedule, { runs: [unfired("skipped", hour * HOUR)] });
      world.clock.step(HOUR);
      await fire(world, schedule, { runs: [running(world, schedule, { task: { id: "r1" } })] });
      const { schedules } = world.storage;
      const first = await schedules.delete({ ...schedule, limit: 3 });
      expect(first).toMatchObject({ more: true, cancelled: [{ id: "r1" }] });
      expect((await runsOf(world)).map(({ dueAt }) => dueAt)).toEqual([world.clock.now(), 3 * HOUR]);
      expect(await read(world, schedule)).toMatchObject({
        status: "paused",
        nextFireAt: null,
        pausedReason: SCHEDULE_DELETED,
      });
      expect((await readNotifications(world)).map(({ kind }) => kind)).not.toContain("schedule.canceled");
      expect(await schedules.delete({ ...schedule, limit: 3 })).toEqual({ more: false, cancelled: [] });
      expect(await schedules.get(schedule)).toBeNull();
      expect(await runsOf(world)).toEqual([]);
      const kinds = (await readNotifications(world)).map(({ kind }) => kind);
      expect(kinds.filter((kind) => kind.startsWith("schedule."))).toEqual(["schedule.canceled"]);
      expect(await schedules.delete({ ...schedule, limit: 3 })).toBeNull();
    });

    test("keeps those that run until the last slice, so that every counter is right", async () => {
      const world = await open();
      const schedule = await create(world, { definition: { overlap: "allow" } });
      await fire(world, schedule, { runs: [running(world, schedule)] });
      const held = only(await world.claim());
      for (let hour = 1; hour < 4; hour += 1)
        await fire(world, schedule, { runs: [unfired("skipped", hour * HOUR)] });
      const params = { ...schedule, sparesRunning: true, limit: 3 };
      expect(await world.storage.schedules.delete(params)).toEqual({ more: true, cancelled: [] });
      expect(await read(world, schedule)).toMatchObject({ openRuns: 1 });
      expect(await world.storage.counters.recountAll()).toEqual([]);
      expect(await world.storage.schedules.delete(params)).toEqual({ more: false, cancelled: [] });
      expect((await world.finish(held, DONE)).finished).toMatchObject([{ state: "done" }]);
    });
  });

  describe("a schedule that is due once", () => {
    test.each([
      [DONE, "completed", "succeeded"],
      [FAILED, "failed", "failed"],
    ] as const)("is over when its run is: %o", async (settlement, status, lastStatus) => {
      const world = await open();
      const schedule = await createOnce(world);
      await fire(world, schedule, { runs: [running(world, schedule)], nextFireAt: null });
      expect(await read(world, schedule)).toMatchObject({ status: "active", nextFireAt: null });
      world.clock.step(5);
      await runOnce(world, settlement);
      expect(await read(world, schedule)).toMatchObject({ status, lastStatus, updatedAt: world.clock.now() });
    });

    test("is not over while it has a moment to come or another run goes", async () => {
      const world = await open();
      const schedule = await createOnce(world);
      await fire(world, schedule, { runs: [running(world, schedule, { forced: true })] });
      await runOnce(world, DONE);
      expect((await read(world, schedule)).status).toBe("active");
      await fire(world, schedule, { runs: [running(world, schedule)], nextFireAt: null });
      await fire(world, schedule, { runs: [running(world, schedule, { forced: true })], nextFireAt: null });
      await runOnce(world, DONE);
      expect((await read(world, schedule)).status).toBe("active");
    });

    test("stays paused before its moment whatever is run out of turn, and is over once that has come", async () => {
      const world = await open();
      const rule = { kind: "once", atMs: world.clock.now() + 5, phrase: "soon", tz: "UTC" } as const;
      const schedule = await create(world, { definition: { rule, deleteAfterRun: true } });
      const pause = async () => {
        const { revision } = await read(world, schedule);
        await world.storage.schedules.update({ ...schedule, revision, changes: { status: "paused" } });
      };
      await pause();
      await fire(world, schedule, { runs: [running(world, schedule, { forced: true })] });
      await runOnce(world, DONE);
      expect(await read(world, schedule)).toMatchObject({ status: "paused", openRuns: 0 });
      world.clock.step(5);
      const { revision } = await read(world, schedule);
      const changes = { status: "active", nextFireAt: rule.atMs } as const;
      await world.storage.schedules.update({ ...schedule, revision, changes });
      await fire(world, schedule, {
        runs: [running(world, schedule, { task: { id: "r" } })],
        nextFireAt: null,
      });
      await pause();
      await runOnce(world, FAILED);
      expect(await read(world, schedule)).toMatchObject({ status: "failed", openRuns: 0 });
      await world.storage.tasks.retry({ tenant: TENANT, id: "r" });
      await pause();
      await runOnce(world, DONE);
      expect(await world.storage.schedules.get(schedule)).toBeNull();
    });

    test("goes after it has succeeded, if that was asked for", async () => {
      const world = await open();
      const schedule = await createOnce(world, { deleteAfterRun: true });
      await fire(world, schedule, {
        runs: [running(world, schedule, { task: { id: "r1" } })],
        nextFireAt: null,
      });
      await runOnce(world, FAILED);
      expect((await read(world, schedule)).status).toBe("failed");
      await world.storage.tasks.retry({ tenant: TENANT, id: "r1" });
      await runOnce(world, DONE, "done");
      expect(await world.storage.schedules.get(schedule)).toBeNull();
      expect(await runsOf(world)).toEqual([]);
      expect((await readNotifications(world)).at(-1)).toMatchObject({
        kind: "run.completed",
        run: { resultSummary: "done" },
      });
    });

    test("stays while it has runs, even if it was completed before they ended", async () => {
      const world = await open();
      const schedule = await createOnce(world, { deleteAfterRun: true });
      await fire(world, schedule, { runs: [running(world, schedule)], nextFireAt: null });
      await fire(world, schedule, { runs: [running(world, schedule, { forced: true })], nextFireAt: null });
      const { revision } = await read(world, schedule);
      await world.storage.schedules.update({ ...schedule, revision, changes: { status: "completed" } });
      await runOnce(world, FAILED);
      expect(await read(world, schedule)).toMatchObject({ status: "completed", openRuns: 1 });
    });

    test("has failed when it was missed", async () => {
      const world = await open();
      const schedule = await createOnce(world);
      await fire(world, schedule, { runs: [unfired("missed", world.clock.now())], nextFireAt: null });
      expect(await read(world, schedule)).toMatchObject({
        status: "failed",
        lastStatus: "missed",
        lastError: "was missed",
        runCount: 0,
      });
    });

    test("ends as the run does that was going when its moment was skipped", async () => {
      const world = await open();
      const schedule = await createOnce(world);
      await fire(world, schedule, { runs: [running(world, schedule, { forced: true })] });
      await fire(world, schedule, { runs: [unfired("skipped", world.clock.now())], nextFireAt: null });
      expect((await read(world, schedule)).status).toBe("active");
      await runOnce(world, DONE);
      expect((await read(world, schedule)).status).toBe("completed");
    });
  });
}
