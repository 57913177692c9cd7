import { describe, expect, test } from "vitest";
import { AGENT, idsOf, LANE, NODE, type OpenWorld, OTHER_NODE, TENANT } from "../world.ts";

export function describeExpireTasks(open: OpenWorld): void {
  describe("expire", () => {
    const error = "deadline exceeded while queued";
    const HERE = { tenant: TENANT, agent: AGENT, lane: LANE };

    test("fails waiting tasks at their deadline, not before", async () => {
      const { storage, submit, task, clock, events } = await open();
      const deadline = clock.now() + 100;
      await submit(
        { id: "queued", deadline },
        { id: "delayed", deadline, runAt: deadline + 50 },
        { id: "free" },
      );
      clock.step(99);
      expect(await storage.tasks.expire({ limit: 9 })).toEqual({ expired: [] });
      clock.step(1);
      expect(await storage.tasks.expire({ limit: 9 })).toEqual({ expired: [HERE, HERE] });
      for (const id of ["queued", "delayed"]) {
        expect(await task(id)).toMatchObject({ state: "failed", error, completedAt: deadline, attempts: [] });
      }
      expect((await task("free")).state).toBe("queued");
      expect((await events()).at(-1)).toMatchObject({
        type: "task.failed",
        state: "failed",
        data: { error },
      });
    });

    test("takes the most overdue first, then the oldest, up to its limit", async () => {
      const { storage, submit, clock, events } = await open();
      const now = clock.now();
      await submit(
        { id: "c", deadline: now + 9 },
        { id: "a", deadline: now + 3 },
        { id: "b", deadline: now + 3 },
      );
      clock.step(20);
      const before = (await events()).at(-1)?.seq ?? 0;
      expect(await storage.tasks.expire({ limit: 2 })).toEqual({ expired: [HERE, HERE] });
      expect(await storage.tasks.expire({ limit: 2 })).toEqual({ expired: [HERE] });
      expect((await events(before)).map(({ taskId }) => taskId)).toEqual(["a", "b", "c"]);
    });

    test("returns tenant, agent and lane of each", async () => {
      const { storage, submit, clock } = await open();
      const deadline = clock.now();
      await submit({ tenant: "zeta", deadline }, { deadline }, { tenant: "zeta", agent: "b", deadline });
      expect(await storage.tasks.expire({ limit: 9 })).toEqual({
        expired: [{ ...HERE, tenant: "zeta" }, HERE, { ...HERE, tenant: "zeta", agent: "b" }],
      });
    });

    test("leaves a running task to its runner", async () => {
      const { storage, submit, claim, task, clock } = await open();
      await submit({ id: "t", deadline: clock.now() + 10 });
      await claim();
      clock.step(100);
      expect(await storage.tasks.expire({ limit: 9 })).toEqual({ expired: [] });
      expect((await task("t")).state).toBe("running");
    });

    test("happens before anything is claimed, of all tenants, agents and lanes", async () => {
      const { storage, submit, clock } = await open();
      const deadline = clock.now();
      await submit(
        { id: "late", deadline, priority: 0 },
        { agent: "b", tenant: "zeta", deadline },
        { id: "fine" },
      );
      const claims = [{ lane: LANE, limit: 1 }];
      const answer = await storage.tasks.finishAndClaim({ node: NODE, finishes: [], progress: [], claims });
      expect(answer.expired).toEqual([HERE, { tenant: "zeta", agent: "b", lane: LANE }]);
      expect(idsOf(answer.claimed)).toEqual(["fine"]);
    });

    test("does not happen when a node only ends what it ran", async () => {
      const { storage, submit, task, clock } = await open();
      await submit({ id: "late", deadline: clock.now() });
      const params = { node: NODE, finishes: [], progress: [], claims: [] };
      expect((await storage.tasks.finishAndClaim(params)).expired).toEqual([]);
      expect((await task("late")).state).toBe("queued");
    });

    test.for(["queued", "delayed"] as const)(
      "meets a task that has just come back %s with its deadline behind it",
      async (to) => {
        const { storage, submit, claim, task, clock } = await open();
        await submit({ id: "t", deadline: clock.now() + 10 });
        const [held] = await claim();
        if (held === undefined) throw new Error("It starts.");
        clock.step(10);
        const settlement = { to, error: "not now", runAt: clock.now() + 5 };
        const answer = await storage.tasks.finishAndClaim({
          node: NODE,
          finishes: [{ seq: held.task.seq, token: held.token, settlement }],
          progress: [],
          claims: [{ lane: LANE, limit: 1 }],
        });
        expect(answer).toMatchObject({ finished: [{ state: to }], expired: [HERE], claimed: [] });
        const outcome = to === "queued" ? "interrupted" : "failed";
        expect(await task("t")).toMatchObject({
          state: "failed",
          error,
          attempts: [{ outcome, error: "not now" }],
        });
        expect(await storage.counters.recountAll()).toEqual([]);
      },
    );

    test("fails at most a thousand on the way to a claim", async () => {
      const { submit, clock, claim, storage } = await open();
      const late = { deadline: clock.now() };
      await submit(...Array.from({ length: 1001 }, () => late), {});
      await claim({ limit: 0 });
      expect(await storage.tasks.counts({ tenant: "acme" })).toEqual({ failed: 1000, queued: 2 });
      expect(await storage.tasks.expire({ limit: 10 })).toEqual({ expired: [HERE] });
      expect(await claim({ node: OTHER_NODE, limit: 2 })).toHaveLength(1);
    });
  });
}
