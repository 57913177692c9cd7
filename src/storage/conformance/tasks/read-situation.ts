import { describe, expect, test } from "vitest";
import type { ClaimedTask } from "../../storage.ts";
import { customSpec, LANE, type OpenWorld, OTHER_LANE, TENANT, type World } from "../world.ts";

export function describeSituation(open: OpenWorld): void {
  describe("the status of a task", () => {
    test("has its agent, its state and the size of its input and its result", async () => {
      const world = await open();
      await world.submit({ id: "t", agent: "a", spec: customSpec("é".repeat(1_000)) });
      const look = (tenant = TENANT) => world.storage.tasks.status({ tenant, id: "t" });
      const waiting = await look();
      expect(waiting).toMatchObject({ agent: "a", state: "queued" });
      expect(waiting?.bytes).toBeGreaterThan(2_000);
      expect(waiting?.bytes).toBeLessThan(3_000);
      const [claimed] = await world.claim();
      expect((await look())?.state).toBe("running");
      await world.finish(claimed as ClaimedTask, { to: "done", result: "é".repeat(1_000) });
      expect(await look()).toEqual({ agent: "a", state: "done", bytes: (waiting?.bytes ?? 0) + 2_002 });
      expect(await look("other")).toBeNull();
    });

    test("comes in place of a task that takes more than the caller asked for", async () => {
      const world = await open();
      await world.submit({ id: "t", agent: "a", spec: customSpec("é".repeat(1_000)) });
      const bytes = (await world.storage.tasks.status({ tenant: TENANT, id: "t" }))?.bytes ?? 0;
      const read = (bytesMax: number) => world.storage.tasks.get({ tenant: TENANT, id: "t", bytesMax });
      expect(await read(bytes)).toMatchObject({ id: "t", state: "queued" });
      expect(await read(bytes - 1)).toBeNull();
    });
  });

  describe("the situation of a task", () => {
    async function look({ storage }: World, id: string) {
      const situation = await storage.tasks.situation({ tenant: TENANT, id });
      if (situation === null) throw new Error(`There is no task ${id}.`);
      return situation;
    }

    test("has the task, the limits, and what counts against them", async () => {
      const world = await open();
      await world.configureLane(LANE, { total: 5, perAgent: 3 });
      await world.storage.agents.configure({ tenant: TENANT, agent: "a", maxInflight: 4 });
      await world.submit(
        ...Array.from({ length: 4 }, () => ({ agent: "a" })),
        { agent: "b" },
        { agent: "a", lane: OTHER_LANE },
      );
      await world.claim({ limit: 3 });
      await world.claim({ lane: OTHER_LANE });
      await world.submit({ id: "t", agent: "a" });
      const { task, lane, agent } = await look(world, "t");
      expect(task).toEqual(await world.task("t"));
      expect([lane, agent]).toEqual([
        { inflight: 3, total: 5, perAgent: 3 },
        { inLane: 2, inflight: 3, max: 4 },
      ]);
    });

    test("names those ahead of it in order, ten at most, and counts them", async () => {
      const world = await open();
      await world.submit(...Array.from({ length: 12 }, (_, n) => ({ id: `n${n}` })), {
        id: "urgent",
        priority: 1,
      });
      await world.submit(
        { id: "t" },
        { id: "elsewhere", lane: OTHER_LANE },
        { id: "behind" },
        { agent: "other" },
      );
      const ten = ["urgent", "n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8"];
      expect((await look(world, "t")).ahead).toEqual({ ids: ten, count: 13 });
      expect((await look(world, "urgent")).ahead).toEqual({ ids: [], count: 0 });
      await world.storage.tasks.cancel({ tenant: TENANT, ids: ["t"], error: null });
      expect((await look(world, "t")).ahead).toEqual({ ids: [], count: 0 });
    });

    test("names the tasks ahead of it that wait for the same concurrency key, of all agents and lanes", async () => {
      const world = await open();
      const concurrencyKey = "k";
      await world.submit({ id: "holder", concurrencyKey });
      await world.claim();
      await world.submit(
        { id: "a", concurrencyKey },
        { id: "b", concurrencyKey, lane: OTHER_LANE, agent: "other" },
        { id: "t", concurrencyKey },
        { id: "behind", concurrencyKey },
        { id: "urgent", concurrencyKey, priority: 1 },
        { id: "ready" },
        { id: "another", concurrencyKey: "l" },
        { tenant: "other", concurrencyKey },
      );
      expect((await look(world, "t")).ahead).toEqual({ ids: ["urgent", "a", "b"], count: 3 });
      expect((await look(world, "urgent")).ahead).toEqual({ ids: [], count: 0 });
      expect((await look(world, "ready")).ahead).toEqual({ ids: [], count: 0 });
      expect((await look(world, "holder")).ahead).toEqual({ ids: [], count: 0 });
    });

    test("names what it depends on, with the state of each", async () => {
      const world = await open();
      await world.submit({ id: "a" }, { id: "b" }, { id: "t", dependsOn: ["b", "unknown", "a"] });
      await world.claim();
      expect((await look(world, "t")).parents).toEqual([
        { id: "a", state: "running" },
        { id: "b", state: "queued" },
      ]);
    });

    test("is shown to no other tenant", async () => {
      const { storage, submit } = await open();
      await submit({ id: "t" });
      expect(await storage.tasks.situation({ tenant: "other", id: "t" })).toBeNull();
      expect(await storage.tasks.situation({ tenant: TENANT, id: "u" })).toBeNull();
    });
  });
}
