import { describe, expect, test } from "vitest";
import { DEFAULT_TENANT } from "../../../model/tenant.ts";
import type { NewKey, StorageSignal } from "../../storage.ts";
import type { OpenWorld } from "../world.ts";
import { UNBOUNDED } from "./share-out.ts";

export function describeKeys(open: OpenWorld): void {
  const key: NewKey = {
    id: "key_1",
    tenant: DEFAULT_TENANT,
    name: "laptop",
    role: "agent",
    agent: "scout",
    agents: ["py", "a,b"],
    bounds: { maxOpenTasks: 3, maxDepth: null },
    hash: "sha256-of-it",
    expiresAt: 5_000,
  };

  describe("keys", () => {
    test("are found by their hash, whole, and by nothing like it", async () => {
      const { storage, clock } = await open();
      const created = { ...key, createdAt: clock.now(), lastUsedAt: null };
      expect(await storage.keys.any()).toBe(false);
      expect(await storage.keys.create(key)).toEqual(created);
      expect(await storage.keys.any()).toBe(true);
      expect(await storage.keys.findByHashes({ hashes: [key.hash] })).toEqual([created]);
      expect(await storage.keys.get({ tenant: DEFAULT_TENANT, id: key.id })).toEqual(created);
      expect(await storage.keys.get({ tenant: "zeta", id: key.id })).toBeNull();
      const others = ["", "SHA256-OF-IT", `${key.hash} `, key.id];
      expect(await storage.keys.findByHashes({ hashes: others })).toEqual([]);
      expect(await storage.keys.findByHashes({ hashes: [...others, key.hash, key.hash] })).toEqual([created]);
      expect(await storage.keys.findByHashes({ hashes: [] })).toEqual([]);
    });

    test("are a tenant's that there is", async () => {
      const { storage } = await open();
      expect(await storage.keys.create({ ...key, tenant: "unknown" })).toBeNull();
      expect(await storage.keys.any()).toBe(false);
    });

    test("have ids and hashes of their own", async () => {
      const { storage } = await open();
      await storage.keys.create(key);
      await expect(storage.keys.create({ ...key, hash: "other" })).rejects.toThrow();
      await expect(storage.keys.create({ ...key, id: "key_2" })).rejects.toThrow();
      expect(await storage.keys.list({ tenant: DEFAULT_TENANT })).toHaveLength(1);
    });

    test("are listed and deleted by their tenant alone, the oldest first", async () => {
      const { storage, clock } = await open();
      await storage.tenants.create({ id: "zeta", name: "zeta", limits: UNBOUNDED });
      await storage.keys.create({ ...key, id: "key_9", hash: "9", agent: null, expiresAt: null });
      clock.step(1);
      await storage.keys.create({ ...key, id: "key_1", hash: "1" });
      await storage.keys.create({ ...key, id: "key_2", hash: "2", tenant: "zeta" });
      const ids = async (tenant: string) => (await storage.keys.list({ tenant })).map(({ id }) => id);
      expect([await ids(DEFAULT_TENANT), await ids("zeta")]).toEqual([["key_9", "key_1"], ["key_2"]]);
      expect(await storage.keys.delete({ tenant: DEFAULT_TENANT, id: "key_2" })).toBe(false);
      expect(await storage.keys.delete({ tenant: "zeta", id: "key_2" })).toBe(true);
      expect(await storage.keys.delete({ tenant: "zeta", id: "key_2" })).toBe(false);
      expect(await storage.keys.findByHashes({ hashes: ["2"] })).toEqual([]);
      expect(await ids(DEFAULT_TENANT)).toEqual(["key_9", "key_1"]);
    });

    test("remember when they were used last, whatever comes late", async () => {
      const { storage } = await open();
      await storage.keys.create(key);
      await storage.keys.create({ ...key, id: "key_2", hash: "2" });
      const used = async () =>
        (await storage.keys.list({ tenant: DEFAULT_TENANT })).map((each) => each.lastUsedAt);
      await storage.keys.touch({ uses: [] });
      await storage.keys.touch({
        uses: [
          { id: "key_1", at: 10 },
          { id: "key_2", at: 30 },
          { id: "gone", at: 99 },
          { id: "key_1", at: 20 },
        ],
      });
      expect(await used()).toEqual([20, 30]);
      await storage.keys.touch({
        uses: [
          { id: "key_1", at: 15 },
          { id: "key_2", at: 31 },
        ],
      });
      expect(await used()).toEqual([20, 31]);
    });

    test("are signalled when they are made or deleted, not when they are used", async () => {
      const { storage } = await open();
      const signals: StorageSignal["kind"][] = [];
      storage.subscribe(({ kind }) => signals.push(kind));
      await storage.keys.create(key);
      expect(signals).toEqual(["keys"]);
      await storage.keys.touch({ uses: [{ id: key.id, at: 1 }] });
      await storage.keys.delete({ tenant: DEFAULT_TENANT, id: "unknown" });
      expect(signals).toEqual(["keys"]);
      await storage.keys.delete({ tenant: DEFAULT_TENANT, id: key.id });
      expect(signals).toEqual(["keys", "keys"]);
    });
  });
}
