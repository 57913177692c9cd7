import { describe, expect, test } from "vitest";
import { idsOf, LANE, type OpenWorld, only } from "../world.ts";

export function describeAgeing(open: OpenWorld): void {
  describe("ageing", () => {
    test("lifts a task that has waited so long by one step, and none over a critical one", async () => {
      const world = await open();
      await world.configureLane(LANE, { agingMs: 100 });
      await world.submit({ id: "low", priority: 3 });
      world.clock.step(50);
      await world.submit({ id: "normal", priority: 2 });
      world.clock.step(100);
      await world.submit({ id: "high", priority: 1 });
      world.clock.step(1_000);
      await world.submit({ id: "critical", priority: 0 });
      // low waited 50 ms longer than normal: half a step; normal waited 100 ms longer than high: one step, and came first.
      expect(idsOf(await world.claim({ limit: 9 }))).toEqual(["critical", "normal", "high", "low"]);
    });

    test("counts from the moment before which a task may not start", async () => {
      const world = await open();
      await world.configureLane(LANE, { agingMs: 100 });
      await world.submit({ id: "timed", priority: 3, runAt: world.clock.now() + 1_000 });
      await world.submit({ id: "later", priority: 2, runAt: world.clock.now() + 1_050 });
      world.clock.step(2_000);
      await world.storage.tasks.promoteDue({ limit: 10 });
      expect(idsOf(await world.claim({ limit: 9 }))).toEqual(["later", "timed"]);
    });

    test("puts what waits in order anew when it is changed, turned on or off", async () => {
      const world = await open();
      await world.submit({ id: "old-low", priority: 3 });
      world.clock.step(1_000);
      await world.submit({ id: "new-high", priority: 1 }, { id: "new-normal", priority: 2 });
      await world.configureLane(LANE, { agingMs: 10 });
      expect(await world.storage.counters.recountAll()).toEqual([]);
      const old = only(await world.claim());
      expect(old.task.id).toBe("old-low");
      await world.finish(old, { to: "queued", error: "back" });
      await world.configureLane(LANE, { agingMs: 0 });
      expect(await world.storage.counters.recountAll()).toEqual([]);
      expect(idsOf(await world.claim({ limit: 9 }))).toEqual(["new-high", "new-normal", "old-low"]);
    });
  });
}
