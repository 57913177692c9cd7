import { describe, expect, test } from "vitest";
import { customSpec, NODE, newTask, type OpenWorld, only, ROOMY, TENANT } from "../world.ts";

const TRICKY = {
  emoji: "👩‍🚀 and 中文",
  nul: "before\u0000after",
  loneHigh: "\ud83d!",
  loneLow: "!\udc69",
  escapes: "\\u0000 \\ \" ' $1 ?1 \r\n\t\u2028\u007f\ufeff",
  "key with \u0000": 1,
  numbers: [0, -1, 1.5, 1e300, Number.MAX_SAFE_INTEGER],
  nested: { empty: {}, list: [[], null, false] },
};

const KIB = 1024;

export function describeText(open: OpenWorld): void {
  describe("text", () => {
    test("comes back as it was given: payload, metadata, result and progress", async () => {
      const { storage, submit, claim, finish, task, events } = await open();
      const spec = { ...customSpec(TRICKY), metadata: TRICKY };
      await submit({ id: "t", spec });
      const claimed = only(await claim());
      expect(claimed.task.spec).toEqual(spec);
      const progress = [{ seq: claimed.task.seq, token: claimed.token, progress: TRICKY }];
      await storage.tasks.finishAndClaim({ node: NODE, finishes: [], progress, claims: [] });
      await finish(claimed, { to: "done", result: TRICKY });
      expect(await task("t")).toMatchObject({ spec, result: TRICKY });
      const [progressed, completed] = (await events()).slice(-2);
      expect(progressed?.data?.progress).toEqual(TRICKY);
      expect(completed?.result).toEqual(TRICKY);
    });

    test("comes back from a batch as it was given, and its task is found by its key", async () => {
      const { storage } = await open();
      const key = "\\u0000 \\ud800 \\\\u0000";
      const spec = { ...customSpec(TRICKY), metadata: TRICKY, key };
      await storage.tasks.insert({
        tasks: [newTask({ id: "t", batch: "b", spec })],
        batches: [{ id: "b", tenant: TENANT, parallelism: null, callbackUrl: null }],
        limits: ROOMY,
      });
      expect(only(await storage.tasks.batchTasks({ tenant: TENANT, batch: "b", limit: 5 }))).toMatchObject({
        key,
      });
      const { tasks } = await storage.tasks.list({ tenant: TENANT, search: key, limit: 5 });
      expect(tasks.map(({ id }) => id)).toEqual(["t"]);
    });

    test("may be a result of any JSON type", async () => {
      const { submit, claim, finish, task } = await open();
      for (const result of ["", "text", 0, false, [], {}, "\u0000", "\ud83d", "null"]) {
        const { id } = only(await submit({}));
        await finish(only(await claim()), { to: "done", result });
        expect((await task(id)).result).toEqual(result);
      }
    });

    test("may be long", async () => {
      const { submit, claim, finish, task } = await open();
      const long = "ä€🦉".repeat((200 * KIB) / 9);
      await submit({ id: "t", spec: customSpec({ long }) });
      await finish(only(await claim()), { to: "done", result: long });
      const { spec, result } = await task("t");
      expect(spec).toEqual(customSpec({ long }));
      expect(result).toBe(long);
    });

    test("may be a name in any script", async () => {
      const { storage, submit, claim, task, configureLane } = await open();
      const names = { tenant: "Ünïcode 🏢", agent: "агент'; --", lane: "レーン %s" };
      await configureLane(names.lane, { perAgent: 1 });
      await storage.agents.configure({ tenant: names.tenant, agent: names.agent, maxInflight: 5 });
      await submit({ id: "t", ...names });
      expect(only(await claim({ lane: names.lane })).task).toMatchObject(names);
      expect(await task("t", names.tenant)).toMatchObject(names);
      const { tasks } = await storage.tasks.list({ ...names, limit: 5 });
      expect(tasks).toHaveLength(1);
    });

    test("of an error comes back as it was given", async () => {
      const { storage, submit, claim, finish, task, events } = await open();
      const error = "línea 1\n\"quoted\" 'twice' \\ 🔥 %s $1";
      await submit({ id: "failed" }, { id: "cancelled" });
      await finish(only(await claim()), { to: "failed", error });
      await storage.tasks.cancel({ tenant: TENANT, ids: ["cancelled"], error });
      for (const id of ["failed", "cancelled"]) expect((await task(id)).error).toBe(error);
      expect((await events()).slice(-2).map(({ data }) => data)).toEqual([{ error }, { error }]);
    });

    // Agents write the texts of their errors. If one such text broke a step, all other ends in the same step would be lost.
    test("of an error may hold what a database cannot, and spoils nothing for the ends beside it", async () => {
      const { storage, submit, claim, clock, task } = await open();
      const error = "before \u0000 \ud83d \udc69 after";
      await submit({ id: "a" }, { id: "b" }, { id: "c" }, { id: "d" });
      const settlements = [
        { to: "failed", error },
        { to: "delayed", error, runAt: clock.now() },
        { to: "queued", error },
        { to: "done", result: "fine" },
      ] as const;
      const claimed = await claim({ limit: 4 });
      const finishes = claimed.flatMap(({ token, task: { seq } }, index) => {
        const settlement = settlements[index];
        return settlement === undefined ? [] : [{ seq, token, settlement }];
      });
      await storage.tasks.finishAndClaim({ node: NODE, finishes, progress: [], claims: [] });
      expect((await task("a")).error).toMatch(/^before .* after$/s);
      for (const id of ["b", "c"]) expect((await task(id)).attempts[0]?.error).toMatch(/^before .* after$/s);
      expect((await task("d")).result).toBe("fine");
      await storage.tasks.cancel({ tenant: TENANT, ids: ["b"], error });
      expect((await task("b")).error).toMatch(/^before .* after$/s);
    });
  });
}
