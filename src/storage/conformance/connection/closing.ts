import { describe, expect, test } from "vitest";
import { NODE, newTask, type OpenWorld, ROOMY, ROOMY_SHARES, TENANT } from "../world.ts";

export function describeClosing(open: OpenWorld): void {
  describe("time and closing", () => {
    test("goes by the storage's clock", async () => {
      const { storage, clock } = await open();
      expect(await storage.now()).toBe(clock.now());
      clock.step(1234);
      expect(await storage.now()).toBe(clock.now());
    });

    test("closes as often as it is asked to", async () => {
      const { storage } = await open();
      await Promise.all([storage.close(), storage.close()]);
      await storage.close();
    });

    test("refuses everything once it is closed, and says so", async () => {
      const { storage } = await open();
      await storage.close();
      const calls = [
        () => storage.now(),
        () => storage.tasks.insert({ tasks: [newTask()], limits: ROOMY }),
        () => storage.tasks.finishAndClaim({ node: NODE, finishes: [], progress: [], claims: [] }),
        () => storage.tasks.get({ tenant: TENANT, id: "t" }),
        () => storage.tasks.list({ tenant: TENANT, limit: 1 }),
        () => storage.tasks.situation({ tenant: TENANT, id: "t" }),
        () => storage.tasks.counts({ tenant: TENANT }),
        () => storage.tasks.queueDepth({ tenant: TENANT }),
        () => storage.tasks.cancel({ tenant: TENANT, ids: ["t"], error: null }),
        () => storage.tasks.retry({ tenant: TENANT, id: "t" }),
        () => storage.tasks.promoteDue({ limit: 1 }),
        () => storage.tasks.expire({ limit: 1 }),
        () => storage.tasks.nextDueAt(),
        () => storage.tasks.rescue({ node: NODE, limit: 1 }),
        () => storage.tasks.prune({ retentionMs: 1, rejectedMax: 1, limit: 1 }),
        () => storage.events.read({ after: 0, limit: 1, bytesMax: 1 }),
        () => storage.bulks.get({ tenant: TENANT, id: "b" }),
        () => storage.bulks.claim({ leaseMs: 1 }),
        () => storage.events.range(),
        () => storage.nodes.heartbeat({ node: NODE }),
        () => storage.lanes.list(),
        () => storage.agents.create({ tenant: TENANT, agent: "a", maxInflight: null, definition: {} }),
        () => storage.agents.list(),
        () => storage.agents.bounded(),
        () => storage.deliveries.claim({ shares: ROOMY_SHARES, held: [], holdMs: 1 }),
        () => storage.deliveries.list({ tenant: TENANT, limit: 1 }),
        () => storage.tenants.list(),
        () => storage.tenants.delete({ id: TENANT, limit: 1 }),
        () => storage.keys.findByHashes({ hashes: ["h"] }),
        () => storage.keys.touch({ uses: [{ id: "k", at: 1 }] }),
        () => storage.audit.list({ tenant: TENANT, limit: 1 }),
        () => storage.counters.recountAll(),
      ];
      for (const call of calls) {
        await expect(call(), call.toString()).rejects.toMatchObject({ code: "storage_unavailable" });
      }
    });

    test("lets what was begun before end in one way or the other", async () => {
      const { storage, submit } = await open();
      const begun = submit({}).then(
        () => "stored",
        (error) => error.code,
      );
      await storage.close();
      expect(["stored", "storage_unavailable"]).toContain(await begun);
    });
  });
}
