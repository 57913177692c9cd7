import { describe, expect, test } from "vitest";
import { AGENT, LANE, type OpenWorld, OTHER_LANE, TENANT } from "./world.ts";

export function describeCounters(open: OpenWorld): void {
  describe("counters", () => {
    test("are right in an empty storage", async () => {
      const { storage } = await open();
      expect(await storage.counters.recountAll()).toEqual([]);
      for (const random of [0, 0.5, 0.999999])
        expect(await storage.counters.recountOne({ random })).toEqual([]);
    });

    test("are right after a bit of everything", async () => {
      const { storage, submit, claim, finish, clock, configureLane, crash } = await open();
      const faults = () => storage.counters.recountAll();
      await configureLane(LANE, { perAgent: 2, total: 3 });
      await storage.agents.configure({ tenant: TENANT, agent: AGENT, maxInflight: 2 });
      await submit({}, { lane: OTHER_LANE }, {}, { agent: "b", priority: 0 }, { runAt: clock.now() + 5 }, {});
      expect(await faults()).toEqual([]);
      const claimed = await claim({ limit: 5 });
      expect(await faults()).toEqual([]);
      clock.step(5);
      for (const one of claimed.slice(0, 1))
        await finish(one, { to: "delayed", error: "x", runAt: clock.now() });
      expect(await faults()).toEqual([]);
      await storage.tasks.promoteDue({ limit: 5 });
      await claim({ lane: OTHER_LANE, limit: 2, node: "south" });
      expect(await faults()).toEqual([]);
      await crash("south");
      await storage.tasks.rescue({ node: "south", limit: 5 });
      expect(await faults()).toEqual([]);
      for (const random of [0, 0.3, 0.6, 0.999999])
        expect(await storage.counters.recountOne({ random })).toEqual([]);
    });
  });
}
