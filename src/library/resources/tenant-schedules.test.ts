import { describe, expect, test } from "vitest";
import { openTestRota } from "../../../test/support/rota.ts";
import { asSharedStorage, openMemory } from "../../../test/support/storages.ts";
import { createTenant, startedRota } from "../../../test/support/tenants.ts";
import { ManualClock } from "../../testing/manual-clock.ts";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const HOUR_SEC = 3_600;

describe("schedules of a disabled tenant", () => {
  const EVERY = { schedule: "every 10 minutes", message: "look around", tz: "UTC" };

  async function withSchedule(input: object = {}) {
    const made = await startedRota();
    const { id, tenant } = await createTenant(made.rota);
    const { scheduled_task } = await tenant.schedules.create({ ...EVERY, ...input });
    const rows = async () =>
      (await tenant.schedules.runs(scheduled_task.id)).runs
        .toReversed()
        .map(({ status, reason, moments, due_at }) => ({ status, reason, moments, due_at }));
    return { ...made, id, tenant, schedule: scheduled_task.id, start: made.clock.now() / SECOND, rows };
  }

  const SKIPPED = { status: "skipped", reason: "tenant disabled" };

  test("that recur are pushed by an hour, with a row for what did not fire", async () => {
    const { rota, clock, id, tenant, schedule, start, rows } = await withSchedule();
    await rota.tenants.disable(id);
    await clock.advance(10 * MINUTE);
    expect(await rows()).toEqual([{ ...SKIPPED, moments: 1, due_at: start + 600 }]);
    expect(await tenant.schedules.get(schedule)).toMatchObject({
      status: "active",
      next_fire_at: start + 600 + HOUR_SEC,
      run_count: 0,
    });
    await clock.advance(HOUR);
    expect(await rows()).toEqual([
      { ...SKIPPED, moments: 1, due_at: start + 600 },
      { ...SKIPPED, moments: 6, due_at: start + 600 + HOUR_SEC },
    ]);
    expect((await tenant.tasks.list()).count).toBe(0);
    expect((await rota.doctor()).checks.filter(({ ok }) => !ok)).toEqual([]);
  });

  test("that recur fire at their next moment once it is enabled, and every moment before has its row", async () => {
    const { rota, clock, id, tenant, schedule, start, rows } = await withSchedule();
    await rota.tenants.disable(id);
    await clock.advance(35 * MINUTE);
    await rota.tenants.enable(id);
    expect(await rows()).toEqual([
      { ...SKIPPED, moments: 1, due_at: start + 600 },
      { ...SKIPPED, moments: 2, due_at: start + 1_800 },
    ]);
    expect((await tenant.schedules.get(schedule)).next_fire_at).toBe(start + 2_400);
    await clock.advance(5 * MINUTE);
    expect((await rows()).at(-1)).toMatchObject({ status: "succeeded", due_at: start + 2_400 });
    expect((await rota.doctor()).checks.filter(({ ok }) => !ok)).toEqual([]);
  });

  test("that were not due meanwhile go on as if nothing had been", async () => {
    const { rota, clock, id, tenant, schedule, start, rows } = await withSchedule();
    await rota.tenants.disable(id);
    await clock.advance(5 * MINUTE);
    await rota.tenants.enable(id);
    await rota.tenants.enable(id);
    expect((await tenant.schedules.get(schedule)).next_fire_at).toBe(start + 600);
    await clock.advance(5 * MINUTE);
    expect(await rows()).toEqual([{ status: "succeeded", reason: null, moments: 1, due_at: start + 600 }]);
  });

  test("whose end comes meanwhile are completed, with a row for what did not fire", async () => {
    const until = { until: "2026-01-01T00:30:00Z" };
    const { rota, clock, id, tenant, schedule, start, rows } = await withSchedule(until);
    await rota.tenants.disable(id);
    await clock.advance(10 * MINUTE);
    // Looked at once more at the last of its moments, rather than an hour later.
    expect(await tenant.schedules.get(schedule)).toMatchObject({
      status: "active",
      next_fire_at: start + 1_800,
    });
    await clock.advance(HOUR);
    expect(await rows()).toEqual([
      { ...SKIPPED, moments: 1, due_at: start + 600 },
      { ...SKIPPED, moments: 2, due_at: start + 1_800 },
    ]);
    expect(await tenant.schedules.get(schedule)).toMatchObject({ status: "completed", next_fire_at: 0 });
    expect((await rota.doctor()).checks.filter(({ ok }) => !ok)).toEqual([]);
  });

  test("that were paused with it, and given a rule that has come to its end, are completed", async () => {
    const { rota, clock, id, tenant, schedule } = await withSchedule({ schedule: "in 10 minutes" });
    await rota.tenants.disable(id);
    await clock.advance(10 * MINUTE);
    const changes = { schedule: "every 10 minutes", until: "2026-01-01T00:30:00Z" };
    await tenant.schedules.update(schedule, changes);
    expect(await tenant.schedules.get(schedule)).toMatchObject({
      status: "paused",
      paused_reason: "tenant disabled",
    });
    await clock.advance(HOUR);
    await rota.tenants.enable(id);
    expect(await tenant.schedules.get(schedule)).toMatchObject({ status: "completed", paused_reason: null });
  });

  test("that are due once are paused, and fire once it is enabled", async () => {
    const { rota, clock, id, tenant, schedule, start, rows } = await withSchedule({
      schedule: "in 10 minutes",
    });
    await rota.tenants.disable(id);
    const notified: string[] = [];
    const reading = (async () => {
      for await (const { kind, reason } of tenant.notifications()) notified.push(`${kind}: ${reason}`);
    })();
    await clock.advance(20 * MINUTE);
    expect(await tenant.schedules.get(schedule)).toMatchObject({ status: "paused", next_fire_at: 0 });
    expect(await rows()).toEqual([]);
    expect(notified).toEqual(["schedule.paused: tenant disabled"]);
    await rota.tenants.enable(id);
    await clock.advance(SECOND);
    expect(await rows()).toMatchObject([{ status: "succeeded", due_at: start + 600 }]);
    expect(await tenant.schedules.get(schedule)).toMatchObject({ status: "completed", run_count: 1 });
    await rota.stop();
    await reading;
  });

  test("that a caller paused stay so", async () => {
    const { rota, clock, id, tenant, schedule, rows } = await withSchedule({ schedule: "in 10 minutes" });
    const recurring = (await tenant.schedules.create(EVERY)).scheduled_task.id;
    await tenant.schedules.update(schedule, { status: "paused" });
    await tenant.schedules.update(recurring, { status: "paused" });
    await rota.tenants.disable(id);
    await clock.advance(20 * MINUTE);
    await rota.tenants.enable(id);
    await clock.advance(20 * MINUTE);
    for (const each of [schedule, recurring]) {
      expect(await tenant.schedules.get(each)).toMatchObject({ status: "paused", run_count: 0 });
    }
    expect(await rows()).toEqual([]);
  });

  test("that a caller paused after their due time stay so, and those that wait for their tenant do not", async () => {
    const { rota, clock, id, tenant, schedule } = await withSchedule({ schedule: "in 10 minutes" });
    const make = async () =>
      (await tenant.schedules.create({ ...EVERY, schedule: "in 10 minutes" })).scheduled_task.id;
    const [paused, resumed, edited] = [await make(), await make(), await make()];
    const moved = await make();
    await rota.tenants.disable(id);
    await clock.advance(20 * MINUTE);
    await tenant.schedules.update(paused, { status: "paused" });
    await tenant.schedules.update(resumed, { status: "active" });
    await tenant.schedules.update(edited, { message: "something else" });
    await tenant.schedules.update(moved, { schedule: "every 10 minutes" });
    await clock.advance(SECOND);
    await rota.tenants.enable(id);
    await clock.advance(SECOND);
    const statuses = async (...ids: number[]) =>
      Promise.all(ids.map(async (each) => (await tenant.schedules.get(each)).status));
    expect(await statuses(schedule, resumed, edited)).toEqual(["completed", "completed", "completed"]);
    expect(await statuses(paused, moved)).toEqual(["paused", "active"]);
    await clock.advance(10 * MINUTE);
    expect(await tenant.schedules.get(moved)).toMatchObject({ run_count: 1 });
    await tenant.schedules.update(paused, { status: "active" });
    await clock.advance(SECOND);
    expect(await statuses(paused)).toEqual(["completed"]);
  });

  test("that were paused for a reason of their own when their moment came stay so", async () => {
    const { rota, clock, id, tenant } = await withSchedule();
    await tenant.agents.create({ id: "brief", executor: { type: "echo" } });
    const orphan = await tenant.schedules.create({ ...EVERY, agent: "brief", schedule: "in 10 minutes" });
    await tenant.agents.delete("brief");
    await clock.advance(10 * MINUTE);
    expect((await tenant.schedules.get(orphan.scheduled_task.id)).status).toBe("paused");
    await rota.tenants.disable(id);
    await rota.tenants.enable(id);
    expect((await tenant.schedules.get(orphan.scheduled_task.id)).status).toBe("paused");
  });

  test("do not run either when a caller requests it", async () => {
    const { rota, id, tenant, schedule, rows } = await withSchedule();
    await rota.tenants.disable(id);
    await expect(tenant.schedules.run(schedule)).rejects.toMatchObject({
      code: "conflict",
      message: expect.stringContaining("the tenant is disabled"),
    });
    expect(await rows()).toEqual([]);
    await rota.tenants.enable(id);
    expect(await tenant.schedules.run(schedule)).toMatchObject({ ran: true });
  });

  test("that came while no process ran stand still, too", async () => {
    const clock = new ManualClock();
    const storage = await openMemory(clock);
    const first = await openTestRota({ clock, storage: asSharedStorage(storage) });
    const { id, tenant } = await createTenant(first.rota);
    const { scheduled_task } = await tenant.schedules.create(EVERY);
    await first.rota.tenants.disable(id);
    await first.rota.stop();
    await clock.advance(3 * HOUR + 5 * MINUTE);
    const { rota } = await startedRota({ clock, storage });
    await clock.advance(SECOND);
    const { runs } = await rota.tenant(id).schedules.runs(scheduled_task.id);
    expect(runs).toMatchObject([{ ...SKIPPED, moments: 18 }]);
  });
});
