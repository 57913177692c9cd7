import { describe, expect, test } from "vitest";
import { type OpenWorld, only, TENANT } from "../world.ts";

const DAY_MS = 24 * 60 * 60 * 1_000;

export function describeIdempotencyKeys(open: OpenWorld): void {
  describe("idempotency keys", () => {
    const keyed = (id: string, key: string, hash = "h") => ({ id, idempotency: { key, hash } });

    test("give the first task again, as it is now, and make no other", async () => {
      const { storage, submit, claim, clock, events } = await open();
      const first = only(await submit(keyed("a", "k")));
      expect(first).toMatchObject({ id: "a", state: "queued", repeats: null });
      await claim();
      clock.step(5);
      const before = await events();
      expect(only(await submit(keyed("b", "k")))).toEqual({ ...first, state: "running", repeats: "same" });
      expect(await storage.tasks.get({ tenant: TENANT, id: "b" })).toBeNull();
      expect(await events()).toEqual(before);
    });

    test("say when they came with something else", async () => {
      const { submit } = await open();
      await submit(keyed("a", "k"));
      expect(only(await submit(keyed("b", "k", "other")))).toMatchObject({ id: "a", repeats: "other" });
    });

    test("hold within one call, for a tenant, and for a day", async () => {
      const { submit, clock } = await open();
      const answers = await submit(
        keyed("a", "k"),
        keyed("b", "k"),
        { ...keyed("c", "k"), tenant: "other" },
        keyed("d", "K"),
        {},
      );
      expect(answers.map(({ id, repeats }) => [id, repeats]).slice(0, 4)).toEqual([
        ["a", null],
        ["a", "same"],
        ["c", null],
        ["d", null],
      ]);
      clock.step(DAY_MS - 1);
      expect(only(await submit(keyed("e", "k"))).id).toBe("a");
      clock.step(1);
      expect(only(await submit(keyed("f", "k"))).id).toBe("f");
      expect(only(await submit(keyed("g", "k"))).id).toBe("f");
    });

    test("are known while they stand for a task, for its tenant", async () => {
      const { storage, submit, clock } = await open();
      await submit(keyed("a", "k"), { ...keyed("b", "other"), tenant: "other" });
      await submit({ ...keyed("full", "refused"), maxQueued: 0 });
      const kept = () => storage.tasks.keptKeys({ tenant: TENANT, keys: ["other", "k", "refused", "none"] });
      expect(await kept()).toEqual(["k"]);
      expect(await storage.tasks.keptKeys({ tenant: TENANT, keys: [] })).toEqual([]);
      clock.step(DAY_MS - 1);
      expect(await kept()).toEqual(["k"]);
      clock.step(1);
      expect(await kept()).toEqual([]);
      await submit(keyed("c", "k"));
      expect(await kept()).toEqual(["k"]);
      await storage.tasks.cancel({ tenant: TENANT, ids: ["c"], error: null });
      clock.step(1_000);
      await storage.tasks.prune({ retentionMs: 10, rejectedMax: 0, limit: 100 });
      expect(await kept()).toEqual([]);
    });

    test("are not kept for what was refused, nor longer than their task", async () => {
      const { storage, submit, clock } = await open();
      expect(only(await submit({ ...keyed("full", "k"), maxQueued: 0 })).state).toBe("rejected");
      expect(only(await submit(keyed("a", "k"))).id).toBe("a");
      await storage.tasks.cancel({ tenant: TENANT, ids: ["a"], error: null });
      clock.step(1_000);
      await storage.tasks.prune({ retentionMs: 10, rejectedMax: 0, limit: 100 });
      expect(only(await submit(keyed("b", "k")))).toMatchObject({ id: "b", repeats: null });
    });
  });
}
