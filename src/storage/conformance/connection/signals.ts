import { describe, expect, test } from "vitest";
import type { StorageSignal } from "../../storage.ts";
import { LANE, type OpenWorld, only, TENANT, type World } from "../world.ts";

export function describeSignals(open: OpenWorld): void {
  describe("signals", () => {
    /** Resolves with the next signal of this kind. If none comes, the test fails by its timeout. */
    function next<Kind extends StorageSignal["kind"]>(world: World, kind: Kind) {
      return new Promise<Extract<StorageSignal, { kind: Kind }>>((resolve) => {
        const unsubscribe = world.storage.subscribe((signal) => {
          if (signal.kind !== kind) return;
          unsubscribe();
          resolve(signal as Extract<StorageSignal, { kind: Kind }>);
        });
      });
    }

    test("announce events and of work when a task comes in", async () => {
      const world = await open();
      const signalled = Promise.all([next(world, "events"), next(world, "work")]);
      await world.submit({});
      await signalled;
    });

    test("announce events when a task ends and nothing is started", async () => {
      const world = await open();
      await world.submit({});
      const claimed = only(await world.claim());
      const signalled = next(world, "events");
      await world.finish(claimed, { to: "done", result: null });
      await signalled;
    });

    test("announce a due moment when a task is parked", async () => {
      const world = await open();
      const signalled = next(world, "due");
      await world.submit({ runAt: world.clock.now() + 100 });
      await signalled;
    });

    test("announce a due moment when a retry is parked", async () => {
      const world = await open();
      await world.submit({});
      const claimed = only(await world.claim());
      const signalled = next(world, "due");
      await world.finish(claimed, { to: "delayed", error: "busy", runAt: world.clock.now() + 100 });
      await signalled;
    });

    test("name which attempts a cancel has fenced off", async () => {
      const world = await open();
      await world.submit({ id: "a" }, { id: "b" }, { id: "c" });
      const [a, b] = await world.claim({ limit: 2 });
      const signalled = next(world, "fenced");
      await world.storage.tasks.cancel({ tenant: TENANT, ids: ["a", "b", "c"], error: null });
      expect([...(await signalled).tokens].sort((x, y) => x - y)).toEqual([a?.token, b?.token]);
    });

    test("announce work when due tasks have moved into the queue", async () => {
      const world = await open();
      await world.submit({ runAt: world.clock.now() + 1 });
      world.clock.step(1);
      const signalled = next(world, "work");
      await world.storage.tasks.promoteDue({ limit: 1 });
      await signalled;
    });

    test("announce work when a dead node's tasks are back", async () => {
      const world = await open();
      await world.submit({});
      await world.claim();
      await world.crash("north");
      const signalled = Promise.all([next(world, "work"), next(world, "events")]);
      await world.storage.tasks.rescue({ node: "north", limit: 1 });
      await signalled;
    });

    test("announce work when a limit changes", async () => {
      const world = await open();
      const lane = next(world, "work");
      await world.configureLane(LANE, { total: 9 });
      await lane;
      const agent = next(world, "work");
      await world.storage.agents.configure({ tenant: TENANT, agent: "scout", maxInflight: 9 });
      await agent;
    });

    test("reach every listener, and none that has left", async () => {
      const world = await open();
      const heard: string[] = [];
      const leave = world.storage.subscribe(() => heard.push("left"));
      leave();
      leave();
      const signalled = Promise.all([next(world, "events"), next(world, "events")]);
      await world.submit({});
      await signalled;
      expect(heard).toEqual([]);
    });
  });
}
