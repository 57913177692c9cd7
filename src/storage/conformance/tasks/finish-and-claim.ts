import { describe, expect, test } from "vitest";
import { AGENT, idsOf, LANE, NODE, type OpenWorld, OTHER_LANE, OTHER_NODE, only } from "../world.ts";

export function describeFinishAndClaim(open: OpenWorld): void {
  describe("finishAndClaim", () => {
    const done = { to: "done", result: 1 } as const;

    test("claims no more in all than it may, the first lanes first", async () => {
      const { storage, submit } = await open();
      await submit({ id: "a" }, { id: "b" }, { id: "c", lane: OTHER_LANE }, { id: "d", lane: OTHER_LANE });
      const claims = [LANE, OTHER_LANE].map((lane) => ({ lane, limit: 10 }));
      const step = async (claimsMax: number) => {
        const params = { node: NODE, finishes: [], progress: [], claims, claimsMax };
        return idsOf([...(await storage.tasks.finishAndClaim(params)).claimed]);
      };
      expect([await step(0), await step(1), await step(2), await step(5)]).toEqual([
        [],
        ["a"],
        ["b", "c"],
        ["d"],
      ]);
    });

    test("claims no more of a lane than asked for, even if it may claim more in all", async () => {
      const { storage, submit } = await open();
      await submit({ id: "a" }, { id: "b" }, { id: "c" });
      const claims = [{ lane: LANE, limit: 1 }];
      const params = { node: NODE, finishes: [], progress: [], claims, claimsMax: 3 };
      expect(idsOf([...(await storage.tasks.finishAndClaim(params)).claimed])).toEqual(["a"]);
    });

    test("hands a task out as running, with its first attempt", async () => {
      const { submit, claim, clock, task } = await open();
      const { seq } = only(await submit({ id: "t" }));
      clock.step(40);
      const claimed = only(await claim());
      expect(claimed.task).toMatchObject({ seq, id: "t", agent: AGENT, lane: LANE, state: "running" });
      expect(claimed.task.startedAt).toBe(clock.now());
      expect(claimed.task.attempts).toEqual([
        { number: 1, startedAt: clock.now(), endedAt: null, outcome: null, error: null, node: NODE },
      ]);
      expect(await task("t")).toEqual(claimed.task);
    });

    test("makes the token the number of the event of the start", async () => {
      const { submit, claim, events } = await open();
      await submit({}, {}, {});
      const claimed = [...(await claim({ limit: 2 })), ...(await claim({ limit: 2 }))];
      const started = (await events()).filter(({ type }) => type === "task.started");
      expect(claimed.map(({ token, task }) => [token, task.id])).toEqual(
        started.map((e) => [e.seq, e.taskId]),
      );
      expect(started.map(({ data }) => data)).toEqual([{ attempt: 1 }, { attempt: 1 }, { attempt: 1 }]);
    });

    test("never hands one task to two nodes", async () => {
      const { submit, claim } = await open();
      await submit({}, {}, {});
      const north = await claim({ limit: 2 });
      const south = await claim({ node: OTHER_NODE, limit: 2 });
      expect(new Set([...idsOf(north), ...idsOf(south)]).size).toBe(3);
      expect(await claim({ limit: 2 })).toEqual([]);
    });

    test("claims no more than asked for, and nothing when asked for nothing", async () => {
      const { storage, submit, claim } = await open();
      await submit({}, {}, {});
      expect(await claim({ limit: 0 })).toEqual([]);
      expect(await claim({ limit: 2 })).toHaveLength(2);
      const nothing = await storage.tasks.finishAndClaim({
        node: NODE,
        finishes: [],
        progress: [],
        claims: [],
      });
      expect(nothing).toEqual({ finished: [], claimed: [], expired: [] });
    });

    test("serves several lanes in the order they are named", async () => {
      const { storage, submit } = await open();
      await submit({ id: "a" }, { id: "b", lane: OTHER_LANE }, { id: "c" }, { id: "d", lane: OTHER_LANE });
      const claims = [
        { lane: OTHER_LANE, limit: 1 },
        { lane: LANE, limit: 5 },
      ];
      const { claimed } = await storage.tasks.finishAndClaim({
        node: NODE,
        finishes: [],
        progress: [],
        claims,
      });
      expect(idsOf(claimed)).toEqual(["b", "a", "c"]);
    });

    test("passes over delayed tasks", async () => {
      const { submit, claim, clock } = await open();
      await submit({ runAt: clock.now() + 1, priority: 0 }, { id: "now" });
      expect(idsOf(await claim({ limit: 5 }))).toEqual(["now"]);
    });

    test("fills the slot a finish has just freed", async () => {
      const { storage, submit, claim, configureLane } = await open();
      await configureLane(LANE, { total: 1 });
      await submit({ id: "a" }, { id: "b" });
      const { token, task } = only(await claim());
      expect(await claim()).toEqual([]);
      const finishes = [{ seq: task.seq, token, settlement: done }];
      const claims = [{ lane: LANE, limit: 3 }];
      const answer = await storage.tasks.finishAndClaim({ node: NODE, finishes, progress: [], claims });
      expect(answer.finished).toEqual([{ token, state: "done" }]);
      expect(idsOf(answer.claimed)).toEqual(["b"]);
    });

    test("ends an attempt once, however often its end is reported", async () => {
      const { storage, submit, claim, finish, task, events } = await open();
      await submit({ id: "t" }, { id: "u" });
      const [first, second] = await claim({ limit: 2 });
      if (!first || !second) throw new Error("Both start.");
      const finishes = [
        { seq: first.task.seq, token: first.token, settlement: done },
        { seq: first.task.seq, token: first.token, settlement: { to: "failed", error: "late" } as const },
        { seq: second.task.seq, token: second.token, settlement: done },
      ];
      const { finished } = await storage.tasks.finishAndClaim({
        node: NODE,
        finishes,
        progress: [],
        claims: [],
      });
      expect(finished).toEqual([
        { token: first.token, state: "done" },
        { token: second.token, state: "done" },
      ]);
      expect((await finish(first, { to: "failed", error: "later" })).finished).toEqual([]);
      expect(await task("t")).toMatchObject({ state: "done", result: 1, error: null });
      expect((await events()).filter(({ type }) => type === "task.completed")).toHaveLength(2);
      expect(await storage.counters.recountAll()).toEqual([]);
    });

    test("ends no attempt with another's token, number or node", async () => {
      const { storage, submit, claim, finish, task } = await open();
      await submit({ id: "a" }, { id: "b" });
      const [a, b] = await claim({ limit: 2 });
      if (!a || !b) throw new Error("Both start.");
      expect((await finish(a, done, OTHER_NODE)).finished).toEqual([]);
      expect((await finish({ ...a, token: b.token }, done)).finished).toEqual([]);
      expect((await finish({ ...a, token: a.token + 1000 }, done)).finished).toEqual([]);
      expect((await task("a")).state).toBe("running");
      expect((await task("b")).state).toBe("running");
      expect(await storage.counters.recountAll()).toEqual([]);
    });

    test("fences off the answer of an attempt that was followed by another", async () => {
      const { submit, claim, finish, task } = await open();
      await submit({ id: "t" });
      const first = only(await claim());
      await finish(first, { to: "queued", error: "going away" });
      const second = only(await claim({ node: OTHER_NODE }));
      expect(second.token).toBeGreaterThan(first.token);
      expect((await finish(first, { to: "failed", error: "late" })).finished).toEqual([]);
      expect((await task("t")).state).toBe("running");
      expect((await finish(second, done, OTHER_NODE)).finished).toEqual([
        { token: second.token, state: "done" },
      ]);
    });

    test("ends nothing for a dead node or one that was never registered, and hands it nothing", async () => {
      const { storage, submit, claim, finish, crash, task } = await open();
      await submit({ id: "t" }, {});
      const claimed = only(await claim());
      await crash(NODE);
      expect((await finish(claimed, done)).finished).toEqual([]);
      const { seq } = claimed.task;
      const params = {
        finishes: [],
        progress: [{ seq, token: claimed.token, progress: 1 }],
        claims: [{ lane: LANE, limit: 1 }],
      };
      for (const node of [NODE, "stranger"]) {
        const answer = await storage.tasks.finishAndClaim({ node, ...params });
        expect(answer).toEqual({ finished: [], claimed: [], expired: [] });
      }
      expect((await task("t")).state).toBe("running");
    });

    test("writes progress of held attempts only, before the ends that come with it", async () => {
      const { storage, submit, claim, finish, events } = await open();
      await submit({ id: "t" }, { id: "u" });
      const [t, u] = await claim({ limit: 2 });
      if (!t || !u) throw new Error("Both start.");
      await finish(u, { to: "done", result: null });
      const before = (await events()).at(-1)?.seq ?? 0;
      await storage.tasks.finishAndClaim({
        node: NODE,
        finishes: [{ seq: t.task.seq, token: t.token, settlement: done }],
        progress: [
          { seq: t.task.seq, token: t.token, progress: { percent: 50 } },
          { seq: u.task.seq, token: u.token, progress: "too late" },
          { seq: t.task.seq, token: t.token, progress: null },
        ],
        claims: [],
      });
      expect(
        (await events(before)).map(({ type, taskId, state, data }) => ({ type, taskId, state, data })),
      ).toEqual([
        {
          type: "task.progress",
          taskId: "t",
          state: "running",
          data: { progress: { percent: 50 }, attempt: 1 },
        },
        { type: "task.progress", taskId: "t", state: "running", data: { progress: null, attempt: 1 } },
        { type: "task.completed", taskId: "t", state: "done", data: null },
      ]);
    });
  });
}
