import { describe, expect, test } from "vitest";
import type { TaskSpec } from "../../../model/task.ts";
import { TASK_OVERHEAD_BYTES } from "../../storage.ts";
import { UNBOUNDED } from "../tenants/share-out.ts";
import { customSpec, newTask, type OpenWorld, only, ROOMY, TENANT, type World } from "../world.ts";

const BOUNDED = { ...UNBOUNDED, maxStoredBytes: 1_000_000 };

export function describeStoredBytes(open: OpenWorld): void {
  describe("what a tenant stores", () => {
    async function bounded(): Promise<World> {
      const world = await open();
      await world.storage.tenants.create({ id: TENANT, name: "Acme", limits: BOUNDED });
      await countAll(world);
      return world;
    }

    async function countAll({ storage }: World, limit = 100): Promise<void> {
      for (let more = true; more; ) ({ more } = await storage.tenants.countStored({ limit }));
    }

    async function stored({ storage }: World, id = TENANT): Promise<number | null | undefined> {
      return (await storage.tenants.get({ id }))?.storedBytes;
    }

    const bytes = (...texts: string[]) =>
      texts.reduce((sum, text) => sum + Buffer.byteLength(text), TASK_OVERHEAD_BYTES);
    const given = (spec: TaskSpec) => JSON.stringify(spec);

    test("is what its tasks were given, what they resulted in, and something for each", async () => {
      const world = await bounded();
      expect(await stored(world)).toBe(0);
      const spec = customSpec("é\u2028\n".repeat(100));
      await world.submit({ spec });
      expect(await stored(world)).toBe(bytes(given(spec)));
      await world.finish(only(await world.claim()), { to: "done", result: { text: "ü" } });
      expect(await stored(world)).toBe(bytes(given(spec), JSON.stringify({ text: "ü" })));
      expect(await world.storage.counters.recountAll()).toEqual([]);
    });

    test("has the errors of those that failed, and loses them with a retry", async () => {
      const world = await bounded();
      const { spec } = newTask();
      await world.submit({ id: "fails" });
      await world.finish(only(await world.claim()), { to: "failed", error: "no such thing" });
      expect(await stored(world)).toBe(bytes(given(spec), "no such thing"));
      await world.storage.tasks.retry({ tenant: TENANT, id: "fails", dependants: false });
      expect(await stored(world)).toBe(bytes(given(spec)));
    });

    test("has those that were rejected or cancelled, and is less once they are pruned", async () => {
      const world = await bounded();
      const { spec } = newTask();
      await world.storage.tasks.insert({
        tasks: [newTask(), newTask()],
        limits: { ...ROOMY, maxQueueSize: 1 },
      });
      expect(await stored(world)).toBe(2 * bytes(given(spec)) + "rejected: global queue full".length);
      await world.finish(only(await world.claim()), { to: "done", result: null });
      world.clock.step(2_000);
      await world.storage.tasks.prune({ retentionMs: 1_000, rejectedMax: 0, limit: 100 });
      expect(await stored(world)).toBe(0);
      expect(await world.storage.counters.recountAll()).toEqual([]);
    });

    test("belongs to one tenant, and is not counted where it is not limited", async () => {
      const world = await bounded();
      await world.storage.tenants.create({ id: "other", name: "Other", limits: UNBOUNDED });
      await world.submit({ tenant: "other" });
      expect(await stored(world)).toBe(0);
      expect(await stored(world, "other")).toBeNull();
      expect((await world.storage.tenants.list()).map(({ storedBytes }) => storedBytes)).toEqual([
        0,
        null,
        null,
      ]);
    });

    test("counts what was there before the bound, in slices between which tasks come and go", async () => {
      const world = await open();
      const { storage } = world;
      const { spec } = newTask();
      await storage.tenants.create({ id: TENANT, name: "Acme", limits: UNBOUNDED });
      await world.submit(...Array.from({ length: 6 }, (_, n) => ({ id: `before ${n}` })), {
        tenant: "other",
      });
      await storage.tenants.update({ id: TENANT, limits: { maxStoredBytes: 5 } });
      await storage.tenants.countStored({ limit: 2 });
      await world.submit({ id: "meanwhile" });
      await world.finish(only(await world.claim()), { to: "done", result: "first" });
      await storage.tasks.cancel({ tenant: TENANT, ids: ["before 5"], error: "no more" });
      await countAll(world, 2);
      await world.submit({ id: "after" });
      const expected = 8 * bytes(given(spec)) + '"first"'.length + "no more".length;
      expect(await stored(world)).toBe(expected);
      expect(await storage.counters.recountAll({ limit: 3 })).toEqual([]);
      expect(await stored(world)).toBe(expected);
    });

    test("is forgotten with the bound, and counted anew with the next", async () => {
      const world = await bounded();
      const { tenants } = world.storage;
      const { spec } = newTask();
      await world.submit({});
      await tenants.update({ id: TENANT, limits: { maxStoredBytes: null } });
      expect(await stored(world)).toBeNull();
      await world.submit({});
      await tenants.update({ id: TENANT, limits: { maxStoredBytes: 5 } });
      await countAll(world);
      expect(await stored(world)).toBe(2 * bytes(given(spec)));
      await tenants.update({ id: TENANT, limits: { maxStoredBytes: 6 } });
      expect(await stored(world)).toBe(2 * bytes(given(spec)));
      await tenants.delete({ id: TENANT, limit: 100 });
      await tenants.create({ id: TENANT, name: "Acme", limits: BOUNDED });
      expect(await stored(world)).toBe(0);
    });
  });
}
