import { describe, expect, test } from "vitest";
import { LANE, NODE, type OpenWorld, OTHER_LANE, OTHER_NODE, TENANT, type World } from "../world.ts";

export function describeNodes(open: OpenWorld): void {
  describe("nodes", () => {
    async function find({ storage }: World, node: string) {
      return (await storage.nodes.list()).find((record) => record.node === node);
    }

    test("are listed with a beat that grows at every renewal", async () => {
      const world = await open();
      expect((await world.storage.nodes.list()).map(({ node }) => node).sort()).toEqual([NODE, OTHER_NODE]);
      expect(await find(world, NODE)).toEqual({ node: NODE, beat: 0, dead: false });
      await world.storage.nodes.heartbeat({ node: NODE });
      await world.storage.nodes.heartbeat({ node: NODE });
      expect(await find(world, NODE)).toEqual({ node: NODE, beat: 2, dead: false });
      expect(await find(world, OTHER_NODE)).toEqual({ node: OTHER_NODE, beat: 0, dead: false });
    });

    test("are shown in detail: version, times, what they can run and run, and whether they drain", async () => {
      const world = await open();
      const { storage, clock, submit, claim } = world;
      const registeredAt = clock.now();
      const plain = {
        version: null,
        startedAt: registeredAt,
        seenAt: registeredAt,
        dead: false,
        draining: false,
      };
      expect(await storage.nodes.details()).toEqual([
        { node: NODE, ...plain, lanes: [] },
        { node: OTHER_NODE, ...plain, lanes: [] },
      ]);
      clock.step(5_000);
      await storage.nodes.heartbeat({ node: NODE });
      const startedAt = clock.now();
      const slots = { [LANE]: 4, [OTHER_LANE]: 0 };
      await storage.nodes.register({ node: "a third", version: "1.2.3", slots });
      await submit({}, {}, {});
      await claim({ limit: 2 });
      await claim({ node: "a third" });
      await storage.nodes.setSlots({ node: NODE, slots: { [OTHER_LANE]: 1 } });
      await storage.nodes.setSlots({ node: "a third", slots: {}, draining: true });
      await world.crash(OTHER_NODE);
      const third = { node: "a third", version: "1.2.3", startedAt, seenAt: startedAt };
      const runsOne = [{ lane: LANE, slots: 0, running: 1 }];
      const own = [
        { lane: OTHER_LANE, slots: 1, running: 0 },
        { lane: LANE, slots: 0, running: 2 },
      ];
      expect(await storage.nodes.details()).toEqual([
        { ...third, dead: false, draining: true, lanes: runsOne },
        { node: NODE, ...plain, seenAt: startedAt, lanes: own },
        { node: OTHER_NODE, ...plain, dead: true, lanes: [] },
      ]);
      await storage.nodes.setSlots({ node: "a third", slots: { [LANE]: 1 } });
      expect((await storage.nodes.details())[0]).toMatchObject({ draining: false });
    });

    test("learn at a heartbeat what they still hold", async () => {
      const { storage, submit, claim, finish } = await open();
      await submit({}, {}, {}, {});
      const [done, cancelled, held] = await claim({ limit: 3 });
      await claim({ node: OTHER_NODE });
      if (!done || !cancelled || !held) throw new Error("All three start.");
      await finish(done, { to: "done", result: null });
      await storage.tasks.cancel({ tenant: TENANT, ids: [cancelled.task.id], error: null });
      const { seq } = held.task;
      expect(await storage.nodes.heartbeat({ node: NODE })).toEqual({
        alive: true,
        held: [{ seq, token: held.token }],
      });
    });

    test("are declared dead only if they have not renewed since they were looked at", async () => {
      const world = await open();
      const { nodes } = world.storage;
      await nodes.heartbeat({ node: NODE });
      expect(await nodes.markDead({ node: NODE, beat: 0 })).toBe(false);
      expect(await nodes.markDead({ node: NODE, beat: 1 })).toBe(true);
      expect(await find(world, NODE)).toMatchObject({ dead: true });
      expect(await nodes.markDead({ node: NODE, beat: 1 })).toBe(false);
      expect(await nodes.markDead({ node: "stranger", beat: 0 })).toBe(false);
    });

    test("learn at a heartbeat that they were declared dead, and stay so", async () => {
      const world = await open();
      await world.submit({});
      await world.claim();
      await world.crash(NODE);
      const dead = { alive: false, held: [] };
      expect(await world.storage.nodes.heartbeat({ node: NODE })).toEqual(dead);
      expect(await world.storage.nodes.heartbeat({ node: "stranger" })).toEqual(dead);
      expect(await find(world, NODE)).toEqual({ node: NODE, beat: 0, dead: true });
    });

    test("are forgotten once they are dead and hold nothing, not before", async () => {
      const world = await open();
      const { storage } = world;
      await world.submit({});
      await world.claim();
      await storage.nodes.remove({ node: NODE });
      expect(await find(world, NODE)).toMatchObject({ dead: false });
      await world.crash(NODE);
      await storage.nodes.remove({ node: NODE });
      expect(await find(world, NODE)).toMatchObject({ dead: true });
      await storage.tasks.rescue({ node: NODE, limit: 1 });
      await storage.nodes.remove({ node: NODE });
      expect(await find(world, NODE)).toBeUndefined();
      await storage.nodes.remove({ node: NODE });
    });

    test("that live and hold nothing are not forgotten either", async () => {
      const world = await open();
      await world.storage.nodes.remove({ node: NODE });
      expect(await find(world, NODE)).toMatchObject({ dead: false });
    });
  });
}
