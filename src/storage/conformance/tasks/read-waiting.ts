import { describe, expect, test } from "vitest";
import { AGENT, LANE, newTask, type OpenWorld, OTHER_LANE, ROOMY, TENANT } from "../world.ts";

export function describeWaiting(open: OpenWorld): void {
  describe("what waits", () => {
    const NOTHING = {
      forTasks: 0,
      delayed: 0,
      heldBack: 0,
      queues: [],
      readyElsewhere: 0,
      tenant: { disabled: false, inflight: 0, max: null },
    };

    test("is counted once each, by what could hold it", async () => {
      const world = await open();
      const { storage, submit, claim, finish, clock } = world;
      const waiting = () => storage.tasks.waiting({ tenant: TENANT });
      expect(await waiting()).toEqual(NOTHING);
      await submit({ id: "tried" });
      const [tried] = await claim();
      if (tried === undefined) throw new Error("It starts.");
      await finish(tried, { to: "delayed", error: "later", runAt: clock.now() + 1_000_000 });
      const session = { key: "s", maxConcurrent: 1 };
      await submit(
        { id: "a" },
        { runAt: clock.now() + 1_000 },
        { runAt: clock.now() + 2_000 },
        { dependsOn: ["a"] },
        { id: "of session", session, agent: "talker" },
        { session, agent: "talker" },
        { session, agent: "talker" },
        { concurrencyKey: "k", lane: OTHER_LANE },
        { concurrencyKey: "k", lane: OTHER_LANE },
        { tenant: "other" },
      );
      const batch = { id: "batch", tenant: TENANT, parallelism: 1, callbackUrl: null };
      const tasks = Array.from({ length: 5 }, () => newTask({ batch: batch.id, agent: "batcher" }));
      await storage.tasks.insert({ tasks, batches: [batch], limits: ROOMY });
      const limits = {
        lane: { inflight: 0, total: null },
        laneShare: null,
        inLane: { inflight: 0, max: null },
        agent: { inflight: 0, max: null },
      };
      const queue = { lane: LANE, ready: 1, executable: true, alone: false, limits };
      expect(await waiting()).toEqual({
        ...NOTHING,
        forTasks: 1,
        delayed: 3,
        heldBack: 7,
        queues: [
          { ...queue, lane: OTHER_LANE, agent: AGENT },
          { ...queue, agent: "batcher" },
          { ...queue, agent: AGENT },
          { ...queue, agent: "talker" },
        ],
      });
    });

    test("returns the limits of lane, agent and tenant, and the running tasks", async () => {
      const world = await open();
      const { storage, submit, claim } = world;
      await world.configureLane(LANE, { total: 7, perAgent: 3 });
      await storage.agents.configure({ tenant: TENANT, agent: AGENT, maxInflight: 4 });
      await submit({}, {}, {}, {}, { lane: OTHER_LANE }, { tenant: "other" });
      await claim({ limit: 2 });
      await claim({ lane: OTHER_LANE });
      const { queues, tenant } = await storage.tasks.waiting({ tenant: TENANT });
      expect(tenant).toEqual({ disabled: false, inflight: expect.any(Number), max: null });
      const inflight = tenant.inflight - 1;
      expect(queues).toEqual([
        {
          lane: LANE,
          agent: AGENT,
          ready: 4 - inflight,
          executable: true,
          alone: false,
          limits: {
            lane: { inflight: 2, total: 7 },
            laneShare: null,
            inLane: { inflight, max: 3 },
            agent: { inflight: inflight + 1, max: 4 },
          },
        },
      ]);
    });
  });
}
