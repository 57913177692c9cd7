import { describe, expect, test } from "vitest";
import { idsOf, type OpenWorld, only, TENANT } from "../world.ts";

export function describePromoteDue(open: OpenWorld): void {
  describe("promoteDue", () => {
    test("moves a task into the queue at its moment, not before", async () => {
      const { storage, submit, claim, task, clock, events } = await open();
      const runAt = clock.now() + 100;
      await submit({ id: "t", runAt });
      clock.step(99);
      expect(await storage.tasks.promoteDue({ limit: 9 })).toEqual({ promoted: 0 });
      clock.step(1);
      expect(await storage.tasks.promoteDue({ limit: 9 })).toEqual({ promoted: 1 });
      expect(await task("t")).toMatchObject({ state: "queued", runAt, position: 0 });
      expect((await events()).map(({ type }) => type)).toEqual(["task.created"]);
      expect(only(await claim()).task.id).toBe("t");
    });

    test("takes the earliest first, up to its limit", async () => {
      const { storage, submit, clock, task } = await open();
      const now = clock.now();
      await submit({ id: "c", runAt: now + 3 }, { id: "a", runAt: now + 1 }, { id: "b", runAt: now + 1 });
      clock.step(10);
      expect(await storage.tasks.promoteDue({ limit: 2 })).toEqual({ promoted: 2 });
      expect((await task("c")).state).toBe("delayed");
      expect((await task("b")).state).toBe("queued");
      expect(await storage.tasks.promoteDue({ limit: 2 })).toEqual({ promoted: 1 });
    });

    test("lines a task up by when it was accepted, not by when it became due", async () => {
      const { storage, submit, claim, clock } = await open();
      await submit({ id: "first", runAt: clock.now() + 5 }, { id: "second" });
      clock.step(5);
      await storage.tasks.promoteDue({ limit: 1 });
      expect(idsOf(await claim({ limit: 2 }))).toEqual(["first", "second"]);
    });

    test("never touches a task that has left the wait", async () => {
      const { storage, submit, clock, task } = await open();
      await submit({ id: "t", runAt: clock.now() + 5 });
      await storage.tasks.cancel({ tenant: TENANT, ids: ["t"], error: null });
      clock.step(5);
      expect(await storage.tasks.promoteDue({ limit: 1 })).toEqual({ promoted: 0 });
      expect((await task("t")).state).toBe("cancelled");
    });
  });

  describe("nextDueAt", () => {
    test("names the earliest start or deadline of anything that waits", async () => {
      const { storage, submit, claim, clock } = await open();
      const now = clock.now();
      expect(await storage.tasks.nextDueAt()).toBeNull();
      await submit({ id: "queued" });
      expect(await storage.tasks.nextDueAt()).toBeNull();
      await submit({ runAt: now + 300 });
      expect(await storage.tasks.nextDueAt()).toBe(now + 300);
      await submit({ id: "soon", priority: 0, deadline: now + 100 }, { deadline: now + 200 });
      expect(await storage.tasks.nextDueAt()).toBe(now + 100);
      // A deadline ends waiting. How long an attempt may take is up to the runner.
      expect(idsOf(await claim())).toEqual(["soon"]);
      expect(await storage.tasks.nextDueAt()).toBe(now + 200);
    });

    test("names a time that has passed until it is dealt with", async () => {
      const { storage, submit, clock } = await open();
      const runAt = clock.now() + 10;
      await submit({ runAt });
      clock.step(50);
      expect(await storage.tasks.nextDueAt()).toBe(runAt);
      await storage.tasks.promoteDue({ limit: 1 });
      expect(await storage.tasks.nextDueAt()).toBeNull();
    });

    test("counts the deadline of a task again that went back to waiting", async () => {
      const { storage, submit, claim, finish, clock } = await open();
      const deadline = clock.now() + 100;
      await submit({ deadline });
      const claimed = only(await claim());
      expect(await storage.tasks.nextDueAt()).toBeNull();
      await finish(claimed, { to: "queued", error: "going away" });
      expect(await storage.tasks.nextDueAt()).toBe(deadline);
    });
  });
}
