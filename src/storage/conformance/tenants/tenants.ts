import { describe, expect, test } from "vitest";
import { type OpenWorld, OTHER_NODE } from "../world.ts";

export function describeTenants(open: OpenWorld): void {
  describe("the wall between tenants", () => {
    test("hides tasks of one from the other", async () => {
      const { storage, submit } = await open();
      await submit({ id: "a", tenant: "one" }, { id: "b", tenant: "two" });
      expect(await storage.tasks.get({ tenant: "two", id: "a" })).toBeNull();
      const { tasks } = await storage.tasks.list({ tenant: "two", limit: 10 });
      expect(tasks.map(({ id }) => id)).toEqual(["b"]);
      expect(await storage.tasks.counts({ tenant: "three" })).toEqual({});
    });

    test("keeps a cursor of one from showing tasks of the other", async () => {
      const { storage, submit } = await open();
      await submit({ tenant: "one" }, { tenant: "two" }, { tenant: "one" }, { tenant: "one" });
      const { nextCursor } = await storage.tasks.list({ tenant: "one", limit: 1 });
      const cursor = nextCursor ?? 0;
      const { tasks } = await storage.tasks.list({ tenant: "two", limit: 10, cursor });
      expect(tasks.map(({ tenant }) => tenant)).toEqual(["two"]);
    });

    test("keeps one from cancelling or retrying what is the other's", async () => {
      const { storage, submit, claim, task, events } = await open();
      await submit({ id: "runs", tenant: "one" }, { id: "ended", tenant: "one" });
      await claim();
      await storage.tasks.cancel({ tenant: "one", ids: ["ended"], error: null });
      const before = await events();
      expect(
        await storage.tasks.cancel({ tenant: "two", ids: ["runs", "ended"], error: "mine now" }),
      ).toEqual([
        { id: "runs", found: false },
        { id: "ended", found: false },
      ]);
      expect(await storage.tasks.retry({ tenant: "two", id: "ended" })).toEqual({ found: false });
      expect((await task("runs", "one")).state).toBe("running");
      expect(await events()).toEqual(before);
    });

    test("counts depth for each by itself, whatever the agents are called", async () => {
      const { storage, submit, claim } = await open();
      await submit(
        { tenant: "one", agent: "a" },
        { tenant: "two", agent: "a" },
        { tenant: "two", agent: "a" },
      );
      await claim();
      expect(await storage.tasks.queueDepth({ tenant: "one" })).toEqual({
        queued: 0,
        inflight: 1,
        agents: {},
        ready: {},
      });
      expect(await storage.tasks.queueDepth({ tenant: "two" })).toEqual({
        queued: 2,
        inflight: 0,
        agents: { a: 2 },
        ready: { a: 2 },
      });
    });

    test("does not stand between a node and the tasks of any tenant", async () => {
      const { storage, submit, claim, crash } = await open();
      await submit({ id: "a", tenant: "one" }, { id: "b", tenant: "two" });
      expect(await claim({ node: OTHER_NODE, limit: 2 })).toHaveLength(2);
      await crash(OTHER_NODE);
      const rescued = await storage.tasks.rescue({ node: OTHER_NODE, limit: 5 });
      expect([rescued.requeued.length, rescued.failed]).toEqual([2, []]);
    });

    test("keeps apart names that only differ where a careless key would join them", async () => {
      const { storage, submit, claim } = await open();
      for (const joint of ["/", "\n", " ", ":", ","]) {
        const mine = { tenant: "a", agent: `b${joint}c` };
        const theirs = { tenant: `a${joint}b`, agent: "c" };
        await storage.agents.configure({ ...mine, maxInflight: 1 });
        const inserted = await submit(mine, theirs, theirs);
        expect(inserted.map(({ position }) => position)).toEqual([1, 1, 2]);
        expect(await claim({ limit: 9 })).toHaveLength(3);
      }
    });

    test("keeps apart names that differ in case or in the spaces around them", async () => {
      const { submit } = await open();
      const tenants = ["acme", "Acme", "acme ", " acme", "ácme", "a\u0301cme"];
      const inserted = await submit(...tenants.map((tenant) => ({ tenant })));
      expect(inserted.map(({ position }) => position)).toEqual(tenants.map(() => 1));
    });
  });
}
