import { describe, expect, test } from "vitest";
import { HOUR, makeScheduler, SECOND } from "../../../test/support/schedules.ts";
import type { Fire, RunRecord, Storage } from "../../storage/storage.ts";
import { ManualClock } from "../../testing/manual-clock.ts";
import { until } from "../../testing/signals.ts";

const SLICE = 50;

/** A ticker, and a list of the schedules that each transaction fired. A transaction takes this long. */
async function makeWatched({ sliceMs = 0 }: { sliceMs?: number } = {}) {
  const clock = new ManualClock();
  const slices: (readonly Fire[])[] = [];
  const scheduler = await makeScheduler({
    clock,
    meddler: {
      after: ({ operation, params }) => {
        if (operation !== "schedules.fire") return;
        slices.push(params.fires);
        clock.set(clock.now() + sliceMs);
      },
    },
  });
  return { ...scheduler, slices };
}

async function runsOf(storage: Storage, tenant: string): Promise<readonly RunRecord[]> {
  return (await storage.schedules.listRuns({ tenant, limit: 1_000 })).runs;
}

describe("a tenant with more due times than can be fired", () => {
  test("falls behind alone: another's are fired in the next slice, whatever is due before them", async () => {
    const { engine, clock, anchor, create, slices, storage } = await makeWatched({ sliceMs: 100 });
    for (let made = 0; made < 3_000; made++) await create({ tenant: "attacker", everyMs: SECOND });
    await create({ tenant: "victim", everyMs: SECOND });
    await engine.start();
    await clock.advance(SECOND);
    await until(() => clock.now() >= anchor + 8 * SECOND, "eight seconds of slices");
    const [first] = slices;
    expect(first?.slice(0, 2).map(({ tenant }) => tenant)).toEqual(["attacker", "victim"]);
    expect(Math.max(...slices.map(({ length }) => length))).toBeLessThanOrEqual(SLICE);
    const victims = await runsOf(storage, "victim");
    expect(victims.length).toBeGreaterThanOrEqual(7);
    const lags = victims.map(({ startedAt, dueAt }) => (startedAt ?? 0) - dueAt);
    expect(Math.max(...lags)).toBeLessThanOrEqual(200);
    const waited = await storage.schedules.due({ limit: 1, after: "a" });
    expect(clock.now() - (waited[0]?.nextFireAt ?? 0)).toBeGreaterThan(5 * SECOND);
  });

  test("does not go first again where a single schedule of it fills a whole slice", async () => {
    const { engine, clock, create, slices } = await makeWatched();
    for (let made = 0; made < 5; made++) await create({ tenant: "attacker", catchUp: "all" });
    for (let made = 0; made < 3; made++) await create({ tenant: "victim" });
    clock.set(clock.now() + 3 * HOUR);
    await engine.start();
    await until(() => slices.flat().length >= 8, "all of them");
    expect(slices.slice(0, 2).map((fires) => fires[0]?.tenant)).toEqual(["attacker", "victim"]);
    expect(slices[0]).toHaveLength(1);
  });

  test("is one of many in turn: none is left out, also where more have something due than fit", async () => {
    const { engine, clock, create, slices } = await makeWatched();
    const tenants = Array.from({ length: 120 }, (_, place) => `tenant-${String(place).padStart(3, "0")}`);
    for (const tenant of tenants) for (let made = 0; made < 3; made++) await create({ tenant });
    await engine.start();
    await clock.advance(60 * SECOND);
    await until(() => slices.flat().length >= 360, "all of them");
    const turns = slices.flat().map(({ tenant }) => tenant);
    for (const round of [0, 120, 240]) expect(turns.slice(round, round + 120)).toEqual(tenants);
  });
});
