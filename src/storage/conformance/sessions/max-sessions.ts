import { describe, expect, test } from "vitest";
import type { SendParams, SessionChanges } from "../../storage.ts";
import { newTask, type OpenWorld, TENANT, type World } from "../world.ts";

const FULL = { code: "conflict", details: { maxSessions: 2 } };
const DEFAULTS = { mode: "queue", cap: 10, drop: "old", debounceMs: 0 } as const;

/** How many sessions with settings a tenant may have, and when they are deleted. */
export function describeMaxSessions(open: OpenWorld): void {
  describe("a tenant with as many sessions with settings as it may have", () => {
    test("gives settings to no other, by a change or a message; what has some is changed as ever", async () => {
      const world = await open();
      await update(world, "a", { cap: 3 });
      await send(world, "b", { maxConcurrent: 2 });
      await expect(update(world, "c", { cap: 3 })).rejects.toMatchObject(FULL);
      await expect(update(world, "c", { tokens: 5 })).rejects.toMatchObject(FULL);
      await expect(send(world, "c", { maxConcurrent: 2 })).rejects.toMatchObject(FULL);
      expect(await get(world, "c")).toBeNull();
      expect(await update(world, "a", { cap: 4 })).toMatchObject({ cap: 4 });
      await send(world, "b", { maxConcurrent: 3 });
      expect(await get(world, "b")).toMatchObject({ maxConcurrent: 3, queued: 2 });
      await update(world, "c", { cap: 3 }, { tenant: "zeta" });
      await update(world, "d", { cap: 3 }, { maxSessions: null });
      expect(await world.storage.counters.recountAll()).toEqual([]);
    });

    test("takes messages and context of any number of other sessions", async () => {
      const world = await open();
      await update(world, "a", { cap: 3 });
      await update(world, "b", { cap: 3 });
      await send(world, "c");
      expect(await update(world, "c", { tokens: 5, cap: null })).toMatchObject({ tokens: 5, queued: 1 });
      await expect(update(world, "c", { cap: 1 })).rejects.toMatchObject(FULL);
      expect(await get(world, "c")).toMatchObject({ cap: null, queued: 1 });
    });

    test("has exactly so many, however many are made at once", async () => {
      const world = await open();
      const keys = Array.from({ length: 9 }, (_, n) => `key ${n}`);
      const made = await Promise.allSettled(keys.map((key) => update(world, key, { cap: 3 })));
      expect(made.filter(({ status }) => status === "fulfilled")).toHaveLength(2);
      expect((await world.storage.sessions.list({ tenant: TENANT, limit: 99 })).sessions).toHaveLength(2);
    });

    test("has room again once one is deleted", async () => {
      const world = await open();
      await update(world, "a", { cap: 3 });
      await update(world, "b", { tokens: 3 });
      expect(await remove(world, "b")).toEqual({ found: true, open: 0 });
      expect(await get(world, "b")).toBeNull();
      expect(await remove(world, "b")).toEqual({ found: false });
      expect(await world.storage.sessions.delete({ tenant: "zeta", key: "a" })).toEqual({ found: false });
      expect(await update(world, "c", { cap: 3 })).toMatchObject({ cap: 3 });
    });
  });

  describe("a session that is deleted", () => {
    test("is not, while something of it runs or waits", async () => {
      const world = await open();
      await update(world, "a", { cap: 3 });
      await send(world, "a");
      await send(world, "a");
      await world.claim();
      expect(await remove(world, "a")).toEqual({ found: true, open: 2 });
      expect(await get(world, "a")).toMatchObject({ cap: 3, running: 1, queued: 1 });
    });

    test("begins anew while tasks of it are kept, and goes with the last of them", async () => {
      const world = await open();
      const changes = { agent: "bob", lane: "l", mode: "interrupt", cap: 3, drop: "new" } as const;
      await update(world, "a", { ...changes, debounceMs: 0, maxConcurrent: 2, tokens: 9, contextWindow: 99 });
      await world.storage.sessions.stop({ tenant: TENANT, key: "a", scope: "reset", limit: 9 });
      await send(world, "a");
      for (const claimed of await world.claim({ limit: 9 }))
        await world.finish(claimed, { to: "done", result: 1 });
      expect(await remove(world, "a")).toEqual({ found: true, open: 0 });
      expect(await get(world, "a")).toMatchObject({
        agent: null,
        lane: null,
        mode: null,
        cap: null,
        drop: null,
        debounceMs: null,
        maxConcurrent: null,
        tokens: null,
        contextWindow: null,
        generation: 0,
        running: 0,
        queued: 0,
      });
      const { tasks } = await world.storage.tasks.list({ tenant: TENANT, session: "a", limit: 9 });
      expect(tasks).toMatchObject([{ state: "done", session: "a" }]);
      await send(world, "a");
      const [claimed] = await world.claim();
      if (claimed === undefined) throw new Error("Nothing was claimed.");
      // The messages before are forgotten.
      const { seq } = claimed.task;
      expect(await world.storage.sessions.readTurns({ seq, token: claimed.token, limit: 9 })).toMatchObject({
        generation: 0,
        turns: [],
      });
      await world.finish(claimed, { to: "done", result: 1 });
      world.clock.step(1_000);
      await world.storage.tasks.prune({ retentionMs: 10, rejectedMax: 0, limit: 100 });
      expect(await get(world, "a")).toBeNull();
      expect(await world.storage.counters.recountAll()).toEqual([]);
    });
  });
}

function update(
  world: World,
  key: string,
  changes: SessionChanges,
  { tenant = TENANT, maxSessions = 2 }: { tenant?: string; maxSessions?: number | null } = {},
) {
  return world.storage.sessions.update({ tenant, key, defaultMax: 1, changes, maxSessions });
}

function send(world: World, key: string, { maxConcurrent = null }: Partial<SendParams> = {}) {
  const task = newTask({ origin: "message", session: { key, maxConcurrent: 1 } });
  return world.storage.sessions.send({ task, mode: null, maxConcurrent, maxSessions: 2, defaults: DEFAULTS });
}

function get(world: World, key: string) {
  return world.storage.sessions.get({ tenant: TENANT, key });
}

function remove(world: World, key: string) {
  return world.storage.sessions.delete({ tenant: TENANT, key });
}
