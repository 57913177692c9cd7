import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { openOracle } from "../../oracle/connection/open.ts";
import type { DueParams, ScheduleRecord, ScheduleStorage, Storage } from "../../storage.ts";
import { type OpenWorld, TENANT, type World } from "../world.ts";
import { create, newDefinition } from "./schedule-world.ts";

/** Which schedules fire next. */
export function describeDueSchedules(open: OpenWorld): void {
  describe("schedules that are due", () => {
    test("are those whose moment has come, of all tenants", async () => {
      const world = await open();
      const now = world.clock.now();
      const later = await create(world, { nextFireAt: now + 10 });
      const soon = await create(world, { nextFireAt: now + 5, tenant: "zeta" });
      await create(world, { nextFireAt: null, status: "paused" });
      await create(world, { nextFireAt: now + 11 });
      const { schedules } = world.storage;
      expect(await schedules.due({ limit: 9 })).toEqual([]);
      expect(await schedules.nextDueAt()).toBe(now + 5);
      expect(await schedules.nextDueAt({ tenant: TENANT })).toBe(now + 10);
      expect(await schedules.nextDueAt({ tenant: "beta" })).toBeNull();
      world.clock.step(10);
      expect(await schedules.due({ limit: 9 })).toEqual([later, soon]);
      expect(await schedules.due({ limit: 9, after: TENANT })).toEqual([soon, later]);
    });

    test("come from their tenants in turn, the longest due of each first", async () => {
      const world = await open();
      await createDue(world, { acme: [3, 1, 2], beta: [9], zeta: [4, 5] });
      expect(await due(world, { limit: 9 })).toEqual([
        "acme 1",
        "beta 9",
        "zeta 4",
        "acme 2",
        "zeta 5",
        "acme 3",
      ]);
      expect(await due(world, { limit: 9, after: "acme" })).toEqual([
        "beta 9",
        "zeta 4",
        "acme 1",
        "zeta 5",
        "acme 2",
        "acme 3",
      ]);
    });

    test("of one tenant take no more than its share where there are too many", async () => {
      const world = await open();
      await createDue(world, { acme: Array.from({ length: 40 }, (_, at) => at), zeta: [90] });
      expect(await due(world, { limit: 4 })).toEqual(["acme 0", "zeta 90", "acme 1"]);
      expect(await due(world, { limit: 4, after: "acme" })).toEqual(["zeta 90", "acme 0", "acme 1"]);
    });

    test("of more tenants than fit come round by round, so that none is left out", async () => {
      const world = await open();
      await createDue(world, { a: [1, 2, 3], b: [1, 2, 3], c: [50], d: [60] });
      expect(await due(world, { limit: 2 })).toEqual(["a 1", "b 1"]);
      expect(await due(world, { limit: 2, after: "b" })).toEqual(["c 50", "d 60"]);
      expect(await due(world, { limit: 2, after: "d" })).toEqual(["a 1", "b 1"]);
      expect(await due(world, { limit: 3, after: "c" })).toEqual(["d 60", "a 1", "b 1"]);
      expect(await due(world, { limit: 1, after: "unknown" })).toEqual(["a 1"]);
    });

    test("are the same ones in the same order as the oracle takes", async () => {
      const world = await open();
      const model = openOracle({ clock: world.clock });
      const situations = fc.record({
        tenants: fc.dictionary(fc.constantFrom("A", "a", "b", "b-2", "c", "z"), times()),
        limit: fc.integer({ min: 1, max: 8 }),
        after: fc.constantFrom("", "A", "a", "aa", "b", "b-2", "z", "zz"),
      });
      const look = async ({ schedules }: Storage, { tenants, limit, after }: Situation) => {
        const made = await createAll(schedules, world.clock.now(), tenants);
        const found = await schedules.due({ limit, after });
        for (const schedule of made) await schedules.delete(schedule);
        return found.map(({ tenant, name }) => `${tenant} ${name}`);
      };
      await fc.assert(
        fc.asyncProperty(situations, async (situation) => {
          expect(await look(world.storage, situation)).toEqual(await look(model, situation));
        }),
        { numRuns: 30 },
      );
    });
  });
}

/** Some are in the future. */
function times(): fc.Arbitrary<number[]> {
  return fc.array(fc.integer({ min: 90, max: 103 }), { maxLength: 7 });
}

/** By tenant, the due times of its schedules in milliseconds. The clock is at 100. */
type DueTimes = Readonly<Record<string, readonly number[]>>;

interface Situation extends Required<DueParams> {
  readonly tenants: DueTimes;
}

async function createDue(world: World, tenants: DueTimes): Promise<void> {
  await createAll(world.storage.schedules, world.clock.now(), tenants);
}

async function createAll(
  schedules: ScheduleStorage,
  now: number,
  tenants: DueTimes,
): Promise<ScheduleRecord[]> {
  const made: ScheduleRecord[] = [];
  for (const [tenant, dueTimes] of Object.entries(tenants)) {
    for (const at of dueTimes) {
      const definition = newDefinition({ name: String(at) });
      const nextFireAt = now - 100 + at;
      made.push(await schedules.create({ tenant, definition, status: "active", nextFireAt, source: null }));
    }
  }
  return made;
}

async function due(world: World, params: DueParams): Promise<string[]> {
  return (await world.storage.schedules.due(params)).map(({ tenant, name }) => `${tenant} ${name}`);
}
