import { describe, expect, test } from "vitest";
import { idsOf, LANE, NODE, type OpenWorld, OTHER_NODE, only } from "../world.ts";

export function describeSettlements(open: OpenWorld): void {
  describe("the end of an attempt", () => {
    test("keeps the result of a task that is done", async () => {
      const { submit, claim, finish, task, clock, events } = await open();
      await submit({ id: "t" });
      const claimed = only(await claim());
      clock.step(30);
      await finish(claimed, { to: "done", result: { answer: [42] } });
      expect(await task("t")).toMatchObject({
        state: "done",
        result: { answer: [42] },
        error: null,
        startedAt: clock.now() - 30,
        completedAt: clock.now(),
        attempts: [{ number: 1, endedAt: clock.now(), outcome: "done", error: null, node: NODE }],
      });
      expect((await events()).at(-1)).toMatchObject({
        type: "task.completed",
        result: { answer: [42] },
        data: null,
      });
    });

    test("takes no result for a result of null", async () => {
      const { submit, claim, finish, task } = await open();
      await submit({ id: "null" }, { id: "none" });
      const [first, second] = await claim({ limit: 2 });
      if (!first || !second) throw new Error("Both start.");
      await finish(first, { to: "done", result: null });
      await finish(second, { to: "done", result: undefined });
      expect((await task("null")).result).toBeNull();
      expect((await task("none")).result).toBeNull();
    });

    test("keeps the error of a task that failed", async () => {
      const { submit, claim, finish, task, clock, events } = await open();
      await submit({ id: "t" });
      await finish(only(await claim()), { to: "failed", error: "no such page" });
      expect(await task("t")).toMatchObject({
        state: "failed",
        result: undefined,
        error: "no such page",
        completedAt: clock.now(),
        retryCount: 0,
        attempts: [{ outcome: "failed", error: "no such page" }],
      });
      expect((await events()).at(-1)).toMatchObject({ type: "task.failed", data: { error: "no such page" } });
    });

    test("parks a task for its retry, counted, until its moment", async () => {
      const { storage, submit, claim, finish, task, clock, events } = await open();
      await submit({ id: "t" });
      const runAt = clock.now() + 500;
      await finish(only(await claim()), { to: "delayed", error: "busy", runAt });
      expect(await task("t")).toMatchObject({
        state: "delayed",
        runAt,
        retryCount: 1,
        error: null,
        completedAt: null,
        attempts: [{ number: 1, outcome: "failed", error: "busy" }],
      });
      expect((await events()).at(-1)).toMatchObject({
        type: "task.retrying",
        state: "delayed",
        data: { attempt: 1, error: "busy", retryAt: runAt, state: "delayed" },
      });
      expect(await claim()).toEqual([]);
      clock.step(500);
      await storage.tasks.promoteDue({ limit: 1 });
      expect(only(await claim()).task.attempts).toMatchObject([{ number: 1 }, { number: 2, outcome: null }]);
    });

    test("puts an interrupted task back to its old position, without counting it", async () => {
      const { submit, claim, finish, task, clock, events } = await open();
      await submit({ id: "first" }, { id: "second" }, { id: "urgent", priority: 1 });
      const claimed = await claim({ limit: 2 });
      expect(idsOf(claimed)).toEqual(["urgent", "first"]);
      for (const one of claimed) await finish(one, { to: "queued", error: "going away" });
      expect(await task("first")).toMatchObject({
        state: "queued",
        retryCount: 0,
        error: null,
        attempts: [{ number: 1, outcome: "interrupted", error: "going away" }],
      });
      expect((await events()).at(-1)).toMatchObject({
        type: "task.retrying",
        taskId: "first",
        state: "queued",
        data: { attempt: 1, error: "going away", retryAt: clock.now(), state: "queued" },
      });
      expect(idsOf(await claim({ limit: 3 }))).toEqual(["urgent", "first", "second"]);
    });

    test("keeps every attempt in order, with the node that made it", async () => {
      const { submit, claim, finish, task, clock } = await open();
      const startedAt = clock.now();
      await submit({ id: "t" });
      await finish(only(await claim()), { to: "queued", error: "one" });
      clock.step(10);
      await finish(only(await claim({ node: OTHER_NODE })), { to: "queued", error: "two" }, OTHER_NODE);
      clock.step(10);
      await finish(only(await claim()), { to: "done", result: "three" });
      const { attempts, ...rest } = await task("t");
      expect(rest).toMatchObject({ startedAt, completedAt: startedAt + 20, state: "done" });
      expect(attempts).toEqual([
        { number: 1, startedAt, endedAt: startedAt, outcome: "interrupted", error: "one", node: NODE },
        {
          number: 2,
          startedAt: startedAt + 10,
          endedAt: startedAt + 10,
          outcome: "interrupted",
          error: "two",
          node: OTHER_NODE,
        },
        {
          number: 3,
          startedAt: startedAt + 20,
          endedAt: startedAt + 20,
          outcome: "done",
          error: null,
          node: NODE,
        },
      ]);
    });

    test("applies several different ends in one step", async () => {
      const { storage, submit, claim, clock } = await open();
      await submit({ agent: "a" }, { agent: "b" }, { agent: "c" }, { agent: "d" }, { agent: "e" });
      const settlements = [
        { to: "done", result: 1 },
        { to: "failed", error: "x" },
        { to: "delayed", error: "x", runAt: clock.now() + 9 },
        { to: "queued", error: "x" },
      ] as const;
      const claimed = await claim({ limit: 4 });
      const finishes = settlements.flatMap((settlement, index) => {
        const held = claimed[index];
        return held === undefined ? [] : [{ seq: held.task.seq, token: held.token, settlement }];
      });
      const claims = [{ lane: LANE, limit: 5 }];
      const answer = await storage.tasks.finishAndClaim({ node: NODE, finishes, progress: [], claims });
      expect(answer.finished.map(({ state }) => state)).toEqual(["done", "failed", "delayed", "queued"]);
      expect(answer.claimed.map(({ task }) => task.agent)).toEqual(["e", "d"]);
      expect(await storage.counters.recountAll()).toEqual([]);
    });

    test("survives a clock that is set back while a task runs", async () => {
      const { submit, claim, finish, task, clock } = await open();
      await submit({ id: "t" });
      const claimed = only(await claim());
      clock.step(-5000);
      await finish(claimed, { to: "done", result: 1 });
      expect(await task("t")).toMatchObject({ state: "done", completedAt: clock.now() });
    });
  });
}
