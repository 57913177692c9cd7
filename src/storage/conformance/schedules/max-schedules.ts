import { describe, expect, test } from "vitest";
import type { ScheduleRecord, UpdateScheduleParams } from "../../storage.ts";
import { type OpenWorld, TENANT, type World } from "../world.ts";
import { create, read } from "./schedule-world.ts";

const FULL = { code: "conflict", details: { maxSchedules: 2 } };

/** How many schedules a tenant may have. */
export function describeMaxSchedules(open: OpenWorld): void {
  describe("a tenant with as many schedules as it may have", () => {
    test("gets no other, unless that was made before; others are free", async () => {
      const world = await open();
      await create(world, { maxSchedules: 2 });
      const made = await create(world, { maxSchedules: 2, source: "s", status: "paused", nextFireAt: null });
      await expect(create(world, { maxSchedules: 2 })).rejects.toMatchObject(FULL);
      expect(await create(world, { maxSchedules: 2, source: "s" })).toEqual(made);
      await create(world, { maxSchedules: 2, tenant: "zeta" });
      await create(world, { maxSchedules: null });
      expect(await world.storage.schedules.count({ tenant: TENANT })).toBe(3);
    });

    test("has exactly so many, however many are made at once", async () => {
      const world = await open();
      const made = await Promise.allSettled(
        Array.from({ length: 9 }, () => create(world, { maxSchedules: 4 })),
      );
      expect(made.filter(({ status }) => status === "fulfilled")).toHaveLength(4);
      expect(await world.storage.schedules.count({ tenant: TENANT })).toBe(4);
    });

    test("has room again once one is over or gone, and takes none up again without", async () => {
      const world = await open();
      const first = await create(world, { maxSchedules: 2 });
      const second = await create(world, { maxSchedules: 2 });
      await change(world, first, { status: "completed" });
      const third = await create(world, { maxSchedules: 2 });
      for (const status of ["active", "paused"] as const)
        await expect(change(world, first, { status })).rejects.toMatchObject(FULL);
      expect(await read(world, first)).toMatchObject({ status: "completed", revision: 2 });
      // Schedules that count already may change. A schedule that is over may change, unless the change reactivates it.
      await change(world, first, { name: "renamed" });
      await change(world, second, { status: "paused" });
      await change(world, second, { status: "active" });
      await world.storage.schedules.delete(third);
      expect(await change(world, first, { status: "active" })).toMatchObject({ status: "active" });
    });
  });
}

async function change(world: World, schedule: ScheduleRecord, changes: UpdateScheduleParams["changes"]) {
  const { tenant, id, revision } = await read(world, schedule);
  return world.storage.schedules.update({ tenant, id, revision, changes, maxSchedules: 2 });
}
