import { describe, expect, test } from "vitest";
import { TURNS_LOOKED_AT } from "../../../model/turn.ts";
import type { ClaimedTask } from "../../storage.ts";
import { customSpec, type OpenWorld, only, TENANT, type World } from "../world.ts";

const SESSION = { key: "user:42", maxConcurrent: 1 };

/** Submits a message to the session and claims it. */
async function receive(world: World, message: string, task: Parameters<World["submit"]>[0] = {}) {
  const spec = { ...customSpec(null), work: { kind: "message", message } } as const;
  await world.submit({ id: message, session: SESSION, spec, ...task });
  return only(await world.claim());
}

function answer(world: World, claimed: ClaimedTask, result: unknown) {
  return world.finish(claimed, { to: "done", result });
}

async function turn(world: World, message: string, result: unknown, task = {}): Promise<void> {
  await answer(world, await receive(world, message, task), result);
}

function readTurns(world: World, { token, task: { seq } }: ClaimedTask, limit = 20) {
  return world.storage.sessions.readTurns({ seq, token, limit });
}

async function idsOf(world: World, claimed: ClaimedTask, limit?: number): Promise<string[] | undefined> {
  return (await readTurns(world, claimed, limit))?.turns.map(({ taskId }) => taskId);
}

function reset(world: World) {
  return world.storage.sessions.stop({ tenant: TENANT, key: SESSION.key, scope: "reset", limit: 10 });
}

export function describeReadTurns(open: OpenWorld): void {
  describe("the turns of a session", () => {
    test("are its done tasks with what was asked and answered, oldest first, the last ones", async () => {
      const world = await open();
      await turn(world, "one", { text: "1" });
      await turn(world, "two", null);
      await turn(world, "three", "3");
      const now = await receive(world, "now");
      const lengths = ["one", "two", "three"].map(async (id) => {
        const { spec, result } = await world.task(id);
        return JSON.stringify(spec).length + JSON.stringify(result).length;
      });
      expect(await readTurns(world, now)).toEqual({
        turnsLength: (await Promise.all(lengths)).reduce((sum, length) => sum + length),
        generation: 0,
        contextWindow: null,
        turns: [
          { taskId: "one", work: { kind: "message", message: "one" }, result: { text: "1" } },
          { taskId: "two", work: { kind: "message", message: "two" }, result: null },
          { taskId: "three", work: { kind: "message", message: "three" }, result: "3" },
        ],
      });
      expect(await idsOf(world, now, 2)).toEqual(["two", "three"]);
      expect(await idsOf(world, now, 0)).toEqual([]);
    });

    test("are those of the same tenant, session and agent alone", async () => {
      const world = await open();
      await turn(world, "mine", 1);
      await turn(world, "theirs", 1, { tenant: "zeta" });
      await turn(world, "elsewhere", 1, { session: { key: "user:43", maxConcurrent: 1 } });
      await turn(world, "no session", 1, { session: null });
      await turn(world, "other agent", 1, { agent: "other" });
      expect(await idsOf(world, await receive(world, "now"))).toEqual(["mine"]);
    });

    test("are none that failed, were cancelled or have not ended", async () => {
      const world = await open();
      const wide = { session: { ...SESSION, maxConcurrent: 9 } };
      await turn(world, "done", 1, wide);
      const failed = await receive(world, "failed", wide);
      await world.finish(failed, { to: "failed", error: "no" });
      await receive(world, "running", wide);
      await world.submit({ id: "gone", ...wide, runAt: world.clock.now() + 1_000 });
      await world.storage.tasks.cancel({ tenant: TENANT, ids: ["gone"], error: null });
      expect(await idsOf(world, await receive(world, "now", wide))).toEqual(["done"]);
    });

    test("went before the task, in the order of the session", async () => {
      const world = await open();
      const wide = { session: { ...SESSION, maxConcurrent: 9 } };
      await world.submit({ id: "late", ...wide, runAt: world.clock.now() + 5 });
      await turn(world, "one", 1, wide);
      world.clock.step(10);
      await world.storage.tasks.promoteDue({ limit: 9 });
      await answer(world, only(await world.claim()), 1);
      const now = await receive(world, "now", wide);
      await turn(world, "after", 1, wide);
      expect(await idsOf(world, now)).toEqual(["one", "late"]);
    });

    test("begin anew with each reset, but not with a stop", async () => {
      const world = await open();
      await turn(world, "old", 1);
      await reset(world);
      await turn(world, "new", 1);
      await world.storage.sessions.stop({ tenant: TENANT, key: SESSION.key, scope: "all", limit: 10 });
      const now = await receive(world, "now");
      expect(await readTurns(world, now)).toMatchObject({ generation: 1, turns: [{ taskId: "new" }] });
    });

    test("are for the attempt that holds the task alone", async () => {
      const world = await open();
      await turn(world, "one", 1);
      const now = await receive(world, "now");
      await world.storage.sessions.update({
        tenant: TENANT,
        key: SESSION.key,
        defaultMax: 1,
        changes: { contextWindow: 1_000 },
      });
      expect(await readTurns(world, now)).toMatchObject({ contextWindow: 1_000, turns: [{ taskId: "one" }] });
      expect(await readTurns(world, { ...now, token: now.token + 1 })).toBeNull();
      await reset(world);
      expect(await readTurns(world, now)).toBeNull();
      expect(await readTurns(world, await receive(world, "free", { session: null }))).toBeNull();
    });

    test("are as many as fit into a mebibyte, and are looked for among so many tasks", async () => {
      const world = await open();
      await turn(world, "small", 1);
      await turn(world, "large", "x".repeat(600_000));
      await turn(world, "large, too", "é".repeat(300_000));
      await turn(world, "last", 1);
      const now = await receive(world, "now");
      expect(await idsOf(world, now)).toEqual(["large, too", "last"]);
      await answer(world, now, 1);
      const later = { session: SESSION, runAt: world.clock.now() + 60_000 };
      await world.submit(...Array.from({ length: TURNS_LOOKED_AT - 2 }, () => later));
      const near = await receive(world, "near");
      expect(await idsOf(world, near)).toEqual(["now"]);
      await world.finish(near, { to: "failed", error: "no" });
      expect(await idsOf(world, await receive(world, "far"))).toEqual([]);
    });
  });

  describe("a session that was reset", () => {
    test("stays when its last task is deleted, so that no generation comes twice", async () => {
      const world = await open();
      await turn(world, "one", 1);
      await reset(world);
      world.clock.step(10_000);
      await world.storage.tasks.prune({ retentionMs: 1, rejectedMax: 0, limit: 100 });
      expect(await world.storage.tasks.get({ tenant: TENANT, id: "one" })).toBeNull();
      const now = await receive(world, "now");
      expect(await readTurns(world, now)).toMatchObject({ generation: 1 });
    });
  });
}
