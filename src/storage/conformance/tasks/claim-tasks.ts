import { describe, expect, test } from "vitest";
import { NEWCOMER_LEAD } from "../../../model/lane.ts";
import { CONSECUTIVE_CRITICAL_MAX } from "../../../model/priority.ts";
import { idsOf, LANE, newTask, type OpenWorld, OTHER_LANE, only, ROOMY, type World } from "../world.ts";

export function describeClaimFairness(open: OpenWorld): void {
  /** Submits `count` tasks named `<agent><number from 1>`. */
  function submitMany(world: World, agent: string, count: number, priority = 2) {
    return world.submit(
      ...Array.from({ length: count }, (_, index) => ({ id: `${agent}${index + 1}`, agent, priority })),
    );
  }

  describe("fair-fifo", () => {
    test("starts an agent's tasks by priority, then in the order they came", async () => {
      const { submit, claim } = await open();
      await submit(
        { id: "a", priority: 3 },
        { id: "b" },
        { id: "c", priority: 1 },
        { id: "d" },
        { id: "e", priority: 1 },
      );
      expect(idsOf(await claim({ limit: 5 }))).toEqual(["c", "e", "b", "d", "a"]);
    });

    test("serves the agent with the fewest in flight first", async () => {
      const world = await open();
      await submitMany(world, "a", 3);
      await world.claim({ limit: 2 });
      await submitMany(world, "b", 3);
      expect(idsOf(await world.claim({ limit: 4 }))).toEqual(["b1", "b2", "a3", "b3"]);
    });

    test("does not let an agent wait for ever behind agents that are new", async () => {
      const world = await open();
      await submitMany(world, "old", 1);
      await world.finish(only(await world.claim()), { to: "done", result: null });
      await world.submit({ id: "waiting", agent: "old" });
      let newcomers = 0;
      for (;;) {
        await world.submit({ agent: `new-${newcomers}` });
        const started = only(await world.claim());
        await world.finish(started, { to: "done", result: null });
        if (started.task.id === "waiting") break;
        newcomers += 1;
        expect(newcomers).toBeLessThan(NEWCOMER_LEAD);
      }
      expect(newcomers).toBeGreaterThan(10);
    });

    test("breaks ties by who was served longest ago, then by who came first", async () => {
      const world = await open();
      await submitMany(world, "a", 3);
      await submitMany(world, "b", 3);
      await submitMany(world, "c", 3);
      const [a, b, c] = await world.claim({ limit: 3 });
      if (!a || !b || !c) throw new Error("All three start.");
      expect(idsOf([a, b, c])).toEqual(["a1", "b1", "c1"]);
      // The order of ends changes nothing: only the last start of each counts.
      for (const one of [c, a, b]) await world.finish(one, { to: "done", result: null });
      await submitMany(world, "d", 1);
      expect(idsOf(await world.claim({ limit: 4 }))).toEqual(["d1", "a2", "b2", "c2"]);
    });

    test("keeps an agent's age although its first task was rejected", async () => {
      const world = await open();
      const tasks = [newTask({ agent: "early" })];
      await world.storage.tasks.insert({ tasks, limits: { ...ROOMY, maxPerAgent: 0 } });
      await world.submit({ id: "b1", agent: "b" });
      await world.submit({ id: "e1", agent: "early" });
      expect(idsOf(await world.claim({ limit: 2 }))).toEqual(["e1", "b1"]);
    });

    test("pays no heed to priorities between agents, short of critical", async () => {
      const world = await open();
      await submitMany(world, "low", 2, 9);
      await submitMany(world, "high", 2, 1);
      expect(idsOf(await world.claim({ limit: 4 }))).toEqual(["low1", "high1", "low2", "high2"]);
    });

    test("lets critical tasks go ahead, the most urgent and oldest first", async () => {
      const world = await open();
      await submitMany(world, "a", 1);
      await world.submit({ id: "c1", agent: "c", priority: 0 }, { id: "d1", agent: "d", priority: -5 });
      await world.submit({ id: "c2", agent: "c", priority: 0 }, { id: "b1", agent: "b", priority: 0 });
      expect(idsOf(await world.claim({ limit: 5 }))).toEqual(["d1", "c1", "c2", "b1", "a1"]);
    });

    test("gives every eighth start to fairness while critical tasks keep coming", async () => {
      const world = await open();
      await submitMany(world, "c", 20, 0);
      await submitMany(world, "a", 3);
      const served = idsOf(await world.claim({ limit: 18 })).map((id) => id[0]);
      const critical = "c".repeat(CONSECUTIVE_CRITICAL_MAX);
      expect(served.join("")).toBe(`${critical}a${critical}acc`);
    });

    test("keeps the number of consecutive critical tasks from one claim to the next", async () => {
      const world = await open();
      await submitMany(world, "c", 20, 0);
      await submitMany(world, "a", 3);
      const served: string[] = [];
      for (let count = 0; count < 10; count += 1) served.push(...idsOf(await world.claim()));
      expect(served.map((id) => id[0]).join("")).toBe(`${"c".repeat(CONSECUTIVE_CRITICAL_MAX)}acc`);
    });

    test("gives the fair start to the agent that is next, even for a critical task", async () => {
      const world = await open();
      await submitMany(world, "c", 9, 0);
      expect(await world.claim({ limit: 9 })).toHaveLength(9);
    });

    test("counts in flight, turns and streaks for each lane by itself", async () => {
      const world = await open();
      await world.submit(
        { id: "a1", agent: "a", lane: OTHER_LANE },
        { id: "a2", agent: "a" },
        { id: "b1", agent: "b" },
      );
      await world.claim({ lane: OTHER_LANE });
      expect(idsOf(await world.claim({ limit: 2 }))).toEqual(["a2", "b1"]);
    });

    test("treats agents of the same name in two tenants as two", async () => {
      const world = await open();
      await submitMany(world, "a", 3);
      await world.submit({ id: "z1", agent: "a", tenant: "zeta" });
      expect(idsOf(await world.claim({ limit: 3 }))).toEqual(["a1", "z1", "a2"]);
    });
  });

  describe("priority-fifo", () => {
    test("starts by priority, then in the order they came, of all agents", async () => {
      const world = await open();
      await world.configureLane(LANE, { strategy: "priority-fifo" });
      await submitMany(world, "a", 2);
      await world.submit(
        { id: "b1", agent: "b", priority: 1 },
        { id: "c1", agent: "c" },
        { id: "d1", agent: "d", priority: 0 },
      );
      expect(idsOf(await world.claim({ limit: 2 }))).toEqual(["d1", "b1"]);
      expect(idsOf(await world.claim({ limit: 3 }))).toEqual(["a1", "a2", "c1"]);
    });

    test("lets critical tasks take as many starts as there are", async () => {
      const world = await open();
      await world.configureLane(LANE, { strategy: "priority-fifo" });
      await submitMany(world, "a", 1);
      await submitMany(world, "c", 12, 0);
      expect(idsOf(await world.claim({ limit: 13 })).at(-1)).toBe("a1");
    });

    test("passes over an agent that is at its limit", async () => {
      const world = await open();
      await world.configureLane(LANE, { strategy: "priority-fifo", perAgent: 1 });
      await submitMany(world, "a", 5, 0);
      await submitMany(world, "b", 1);
      expect(idsOf(await world.claim({ limit: 5 }))).toEqual(["a1", "b1"]);
    });

    test("takes over a lane that was fair until now, and gives it back", async () => {
      const world = await open();
      await submitMany(world, "a", 4);
      await submitMany(world, "b", 4);
      await world.configureLane(LANE, { strategy: "priority-fifo" });
      expect(idsOf(await world.claim({ limit: 2 }))).toEqual(["a1", "a2"]);
      await world.configureLane(LANE, { strategy: "fair-fifo" });
      expect(idsOf(await world.claim({ limit: 3 }))).toEqual(["b1", "b2", "a3"]);
    });
  });
}
