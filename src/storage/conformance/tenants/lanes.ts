import { describe, expect, test } from "vitest";
import { AGENT, idsOf, LANE, NODE, type OpenWorld, OTHER_LANE, OTHER_NODE, only, TENANT } from "../world.ts";

export function describeLanesAndAgents(open: OpenWorld): void {
  describe("lanes", () => {
    const done = { to: "done", result: null } as const;

    test("say how they are configured and how much is in them", async () => {
      const { storage, submit, claim, configureLane, clock } = await open();
      await configureLane(LANE, { total: 9, perAgent: 4, perTenant: 6, strategy: "priority-fifo" });
      await submit({}, { tenant: "zeta" }, { runAt: clock.now() + 1 }, {});
      await claim();
      const lanes = (await storage.lanes.list()).sort((a, b) => (a.name < b.name ? -1 : 1));
      expect(lanes).toEqual([
        {
          name: OTHER_LANE,
          total: null,
          perAgent: null,
          perTenant: null,
          strategy: "fair-fifo",
          agingMs: 0,
          waiting: 0,
          inflight: 0,
          running: 0,
          oldestAt: null,
        },
        {
          name: LANE,
          total: 9,
          perAgent: 4,
          perTenant: 6,
          strategy: "priority-fifo",
          agingMs: 0,
          waiting: 3,
          inflight: 1,
          running: 1,
          oldestAt: expect.any(Number),
        },
      ]);
    });

    test("stay as they are when others are configured", async () => {
      const { storage, configureLane } = await open();
      await configureLane(LANE, { total: 3 });
      await configureLane("third", { total: 1 });
      const totals = (await storage.lanes.list()).map(({ name, total }) => [name, total]);
      expect(Object.fromEntries(totals)).toEqual({ [LANE]: 3, [OTHER_LANE]: null, third: 1 });
    });

    test("never run more than their total, on any number of nodes", async () => {
      const { submit, claim, configureLane } = await open();
      await configureLane(LANE, { total: 3 });
      await submit({}, {}, {}, {}, {});
      expect(await claim({ limit: 2 })).toHaveLength(2);
      expect(await claim({ node: OTHER_NODE, limit: 2 })).toHaveLength(1);
      expect(await claim({ limit: 2 })).toEqual([]);
    });

    test("never run more of one agent than their limit, and go on to the next", async () => {
      const { submit, claim, finish, configureLane } = await open();
      await configureLane(LANE, { perAgent: 2 });
      await submit({ id: "a1" }, { id: "a2" }, { id: "a3" }, { id: "b1", agent: "b" });
      const claimed = await claim({ limit: 4 });
      expect(idsOf(claimed)).toEqual(["a1", "b1", "a2"]);
      expect(await claim({ node: OTHER_NODE })).toEqual([]);
      await finish(only(claimed.slice(0, 1)), done);
      expect(idsOf(await claim({ limit: 4 }))).toEqual(["a3"]);
    });

    test("let the next in line start when a running task leaves in any way", async () => {
      const { storage, submit, claim, finish, crash, configureLane, clock } = await open();
      await configureLane(LANE, { perAgent: 1 });
      await submit(...Array.from({ length: 6 }, (_, index) => ({ id: `t${index}`, maxRetriesIfLost: 0 })));
      await finish(only(await claim()), { to: "failed", error: "x" });
      await finish(only(await claim()), { to: "delayed", error: "x", runAt: clock.now() + 1000 });
      const third = only(await claim());
      await storage.tasks.cancel({ tenant: TENANT, ids: [third.task.id], error: null });
      const fourth = only(await claim({ node: OTHER_NODE }));
      await crash(OTHER_NODE);
      expect(await claim()).toEqual([]);
      await storage.tasks.rescue({ node: OTHER_NODE, limit: 1 });
      const fifth = only(await claim());
      expect([third.task.id, fourth.task.id, fifth.task.id]).toEqual(["t2", "t3", "t4"]);
      expect(await claim()).toEqual([]);
    });

    test("touch nothing that runs when a limit is lowered, and wait until it is kept again", async () => {
      const { storage, submit, claim, finish, configureLane } = await open();
      await submit(...Array.from({ length: 6 }, () => ({})));
      const running = await claim({ limit: 3 });
      await configureLane(LANE, { total: 2, perAgent: 2 });
      expect(await storage.counters.recountAll()).toEqual([]);
      expect(await claim()).toEqual([]);
      for (const one of running.slice(0, 1)) await finish(one, done);
      expect(await claim()).toEqual([]);
      for (const one of running.slice(1, 2)) expect((await finish(one, done)).finished).toHaveLength(1);
      expect(await claim({ limit: 5 })).toHaveLength(1);
    });

    test("let waiting tasks start as soon as a limit is raised or lifted", async () => {
      const { submit, claim, configureLane } = await open();
      await configureLane(LANE, { perAgent: 1, total: 1 });
      await submit({}, {}, {}, {});
      expect(await claim({ limit: 5 })).toHaveLength(1);
      await configureLane(LANE, { perAgent: 2, total: 3 });
      expect(await claim({ limit: 5 })).toHaveLength(1);
      await configureLane(LANE, { perAgent: null, total: 3 });
      expect(await claim({ limit: 5 })).toHaveLength(1);
      await configureLane(LANE, {});
      expect(await claim({ limit: 5 })).toHaveLength(1);
    });
  });

  describe("agents", () => {
    test("keep their own limit over all lanes", async () => {
      const { storage, submit, claim, finish } = await open();
      await storage.agents.configure({ tenant: TENANT, agent: AGENT, maxInflight: 2 });
      await submit({ id: "a" }, { id: "b", lane: OTHER_LANE }, { id: "c" }, { id: "d", lane: OTHER_LANE });
      const first = only(await claim());
      await claim({ lane: OTHER_LANE, node: OTHER_NODE });
      expect(await claim({ limit: 2 })).toEqual([]);
      expect(await claim({ lane: OTHER_LANE, limit: 2 })).toEqual([]);
      expect(await storage.counters.recountAll()).toEqual([]);
      await finish(first, { to: "done", result: null });
      expect(idsOf(await claim({ lane: OTHER_LANE, limit: 2 }))).toEqual(["d"]);
    });

    test("keep it within one claim that serves two lanes", async () => {
      const { storage, submit } = await open();
      await storage.agents.configure({ tenant: TENANT, agent: AGENT, maxInflight: 3 });
      await submit({}, {}, { lane: OTHER_LANE }, { lane: OTHER_LANE }, { lane: OTHER_LANE, agent: "other" });
      const claims = [
        { lane: LANE, limit: 5 },
        { lane: OTHER_LANE, limit: 5 },
      ];
      const { claimed } = await storage.tasks.finishAndClaim({
        node: NODE,
        finishes: [],
        progress: [],
        claims,
      });
      expect(claimed.map(({ task }) => `${task.lane} ${task.agent}`)).toEqual([
        `${LANE} ${AGENT}`,
        `${LANE} ${AGENT}`,
        `${OTHER_LANE} ${AGENT}`,
        `${OTHER_LANE} other`,
      ]);
    });

    test("may start in one lane what an end in another has just made room for", async () => {
      const { storage, submit, claim } = await open();
      await storage.agents.configure({ tenant: TENANT, agent: AGENT, maxInflight: 1 });
      await submit({ lane: OTHER_LANE }, { id: "next" });
      const { token, task } = only(await claim({ lane: OTHER_LANE }));
      const finishes = [{ seq: task.seq, token, settlement: { to: "done", result: null } as const }];
      const claims = [{ lane: LANE, limit: 1 }];
      const { claimed } = await storage.tasks.finishAndClaim({ node: NODE, finishes, progress: [], claims });
      expect(idsOf(claimed)).toEqual(["next"]);
    });

    test("keep a limit that was set before their first task", async () => {
      const { storage, submit, claim } = await open();
      await storage.agents.configure({ tenant: TENANT, agent: "new", maxInflight: 1 });
      await submit({ agent: "new" }, { agent: "new" }, { agent: "new", lane: OTHER_LANE });
      expect(await claim({ limit: 3 })).toHaveLength(1);
      expect(await claim({ lane: OTHER_LANE })).toEqual([]);
    });

    test("obey a new limit at once, without losing what runs", async () => {
      const { storage, submit, claim, finish } = await open();
      await submit({}, {}, {}, { lane: OTHER_LANE });
      const running = await claim({ limit: 2 });
      const limit = (maxInflight: number | null) =>
        storage.agents.configure({ tenant: TENANT, agent: AGENT, maxInflight });
      await limit(1);
      expect(await claim({ limit: 5 })).toEqual([]);
      await finish(only(running.slice(0, 1)), { to: "done", result: null });
      expect(await claim({ limit: 5 })).toEqual([]);
      await limit(2);
      expect(await claim({ limit: 5 })).toHaveLength(1);
      expect(await claim({ lane: OTHER_LANE })).toEqual([]);
      await limit(null);
      expect(await claim({ lane: OTHER_LANE })).toHaveLength(1);
    });

    test("of the same name in another tenant have a limit of their own", async () => {
      const { storage, submit, claim } = await open();
      await storage.agents.configure({ tenant: TENANT, agent: AGENT, maxInflight: 1 });
      await submit({}, {}, { tenant: "zeta" }, { tenant: "zeta" });
      const claimed = await claim({ limit: 4 });
      expect(claimed.map(({ task }) => task.tenant)).toEqual([TENANT, "zeta", "zeta"]);
    });
  });
}
