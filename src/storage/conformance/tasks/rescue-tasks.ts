import { describe, expect, test } from "vitest";
import { AGENT, idsOf, LANE, NODE, type OpenWorld, OTHER_NODE, only, TENANT } from "../world.ts";

export function describeRescueTasks(open: OpenWorld): void {
  describe("rescue", () => {
    const HERE = { tenant: TENANT, agent: AGENT, lane: LANE };

    test("puts what a dead node ran back to its position, counted as a retry", async () => {
      const { storage, submit, claim, crash, task, clock, events } = await open();
      await submit({ id: "a" }, { id: "b" }, { id: "c" });
      await claim({ limit: 2 });
      await crash(NODE);
      clock.step(20);
      const before = (await events()).at(-1)?.seq ?? 0;
      expect(await storage.tasks.rescue({ node: NODE, limit: 10 })).toEqual({
        requeued: [HERE, HERE],
        failed: [],
      });
      expect(await task("a")).toMatchObject({
        state: "queued",
        retryCount: 1,
        error: null,
        attempts: [{ number: 1, endedAt: clock.now(), outcome: "lost", error: "worker lost", node: NODE }],
      });
      const data = { attempt: 1, error: "worker lost", retryAt: clock.now(), state: "queued" };
      expect(await events(before)).toMatchObject([
        { type: "task.retrying", taskId: "a", state: "queued", data },
        { type: "task.retrying", taskId: "b", state: "queued", data },
      ]);
      expect(idsOf(await claim({ node: OTHER_NODE, limit: 3 }))).toEqual(["a", "b", "c"]);
    });

    test("fails what has no retry left", async () => {
      const { storage, submit, claim, crash, task, clock, events } = await open();
      await submit({ id: "t", maxRetriesIfLost: 1 });
      await claim();
      await crash(NODE);
      await storage.tasks.rescue({ node: NODE, limit: 1 });
      await claim({ node: OTHER_NODE });
      await crash(OTHER_NODE);
      expect(await storage.tasks.rescue({ node: OTHER_NODE, limit: 1 })).toEqual({
        requeued: [],
        failed: [HERE],
      });
      expect(await task("t")).toMatchObject({
        state: "failed",
        error: "worker lost",
        completedAt: clock.now(),
        retryCount: 1,
        attempts: [
          { outcome: "lost", node: NODE },
          { outcome: "lost", error: "worker lost", node: OTHER_NODE },
        ],
      });
      expect((await events()).at(-1)).toMatchObject({ type: "task.failed", data: { error: "worker lost" } });
    });

    test("works in slices, the oldest tasks first", async () => {
      const { storage, submit, claim, crash, task } = await open();
      await submit({ id: "a", priority: 9 }, { id: "b" }, { id: "c", maxRetriesIfLost: 0 });
      await claim({ limit: 3 });
      await crash(NODE);
      expect(await storage.tasks.rescue({ node: NODE, limit: 2 })).toEqual({
        requeued: [HERE, HERE],
        failed: [],
      });
      expect((await task("c")).state).toBe("running");
      expect(await storage.tasks.rescue({ node: NODE, limit: 2 })).toEqual({ requeued: [], failed: [HERE] });
      expect(await storage.tasks.rescue({ node: NODE, limit: 2 })).toEqual({ requeued: [], failed: [] });
    });

    test("returns tenant, agent and lane of each", async () => {
      const { storage, submit, claim, crash } = await open();
      await submit({ tenant: "zeta" }, {}, { tenant: "zeta", maxRetriesIfLost: 0 }, { maxRetriesIfLost: 0 });
      await claim({ limit: 4 });
      await crash(NODE);
      const theirs = { ...HERE, tenant: "zeta" };
      expect(await storage.tasks.rescue({ node: NODE, limit: 9 })).toEqual({
        requeued: [theirs, HERE],
        failed: [theirs, HERE],
      });
    });

    test("takes nothing from a node that is alive, nor from one that is unknown", async () => {
      const { storage, submit, claim, task } = await open();
      await submit({ id: "t" });
      await claim();
      for (const node of [NODE, "stranger"]) {
        expect(await storage.tasks.rescue({ node, limit: 10 })).toEqual({ requeued: [], failed: [] });
      }
      expect((await task("t")).state).toBe("running");
    });

    test("leaves alone what the node had finished, and what others run", async () => {
      const { storage, submit, claim, finish, crash, task } = await open();
      await submit({ id: "a" }, { id: "b" });
      await finish(only(await claim()), { to: "done", result: "in time" });
      await claim({ node: OTHER_NODE });
      await crash(NODE);
      expect(await storage.tasks.rescue({ node: NODE, limit: 10 })).toEqual({ requeued: [], failed: [] });
      expect(await task("a")).toMatchObject({ state: "done", result: "in time" });
      expect((await task("b")).state).toBe("running");
    });

    test("fences off the dead node's late answer", async () => {
      const { storage, submit, claim, finish, crash, task } = await open();
      await submit({ id: "t" });
      const late = only(await claim());
      await crash(NODE);
      await storage.tasks.rescue({ node: NODE, limit: 10 });
      const again = only(await claim({ node: OTHER_NODE }));
      expect((await finish(late, { to: "done", result: "late" })).finished).toEqual([]);
      await finish(again, { to: "done", result: "second" }, OTHER_NODE);
      expect(await task("t")).toMatchObject({ state: "done", result: "second" });
    });
  });
}
