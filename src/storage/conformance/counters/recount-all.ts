import { describe, expect, test } from "vitest";
import type { RecountProgress } from "../../storage.ts";
import { AGENT, LANE, newTask, type OpenWorld, OTHER_LANE, ROOMY, TENANT } from "../world.ts";

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

    test("are counted in slices of as many rows as the caller allows", async () => {
      const { storage, submit, claim } = await open();
      const batches = [{ id: "b", tenant: TENANT, parallelism: 2, callbackUrl: null }];
      for (let count = 0; count < 4; count += 1)
        await submit({ agent: "a" }, { agent: "b" }, { session: { key: `s${count}`, maxConcurrent: 1 } });
      await storage.tasks.insert({
        tasks: [1, 2, 3].map(() => newTask({ batch: "b" })),
        batches,
        limits: ROOMY,
      });
      await claim({ limit: 3 });
      const seen: RecountProgress[] = [];
      const onSlice = (progress: RecountProgress) => void seen.push(progress);
      expect(await storage.counters.recountAll({ limit: 2, onSlice })).toEqual([]);
      const rows = seen.map(({ rows }, index) => rows - (seen[index - 1]?.rows ?? 0));
      expect(Math.max(...rows)).toBeLessThanOrEqual(2);
      expect(seen.at(-1)?.rows).toBeGreaterThanOrEqual(15);
      for (const { rows, rowsTotal } of seen) expect(rows).toBeLessThanOrEqual(rowsTotal);
    });

    test("are not taken for wrong because tasks come, start and end between slices", async () => {
      const { storage, submit, claim, finish, clock } = await open();
      await submit(...Array.from({ length: 12 }, (_, index) => ({ agent: `a${index % 3}` })));
      let slices = 0;
      const onSlice = async () => {
        slices += 1;
        if (slices > 30) return;
        const [added] = await submit(
          { agent: `a${slices % 5}` },
          { session: { key: "s", maxConcurrent: 1 } },
          { runAt: clock.now() + 1_000 },
        );
        const [held, other] = await claim({ limit: 2 });
        if (held !== undefined) await finish(held, { to: "done", result: null });
        if (other !== undefined) await finish(other, { to: "delayed", error: "x", runAt: clock.now() + 5 });
        if (slices % 3 === 0 && added !== undefined)
          await storage.tasks.cancel({ tenant: TENANT, ids: [added.id], error: null });
        clock.step(5);
        await storage.tasks.promoteDue({ limit: 5 });
        if (slices % 5 === 0) await storage.tasks.prune({ retentionMs: 10, rejectedMax: 5, limit: 3 });
      };
      expect(await storage.counters.recountAll({ limit: 3, onSlice })).toEqual([]);
      expect(await storage.counters.recountAll()).toEqual([]);
    });

    test("are no longer counted once the caller throws, and can be counted again", async () => {
      const { storage, submit } = await open();
      await submit({}, {}, {});
      let slices = 0;
      const onSlice = () => {
        slices += 1;
        throw new Error("enough");
      };
      await expect(storage.counters.recountAll({ limit: 1, onSlice })).rejects.toThrow("enough");
      expect(slices).toBe(1);
      await submit({});
      expect(await storage.counters.recountAll({ limit: 1 })).toEqual([]);
    });
  });
}
