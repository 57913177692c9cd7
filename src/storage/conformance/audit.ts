import { describe, expect, test } from "vitest";
import type { NewAuditEntry } from "../storage.ts";
import type { OpenWorld, World } from "./world.ts";

export function describeAudit(open: OpenWorld): void {
  function entry(at: number, more: Partial<NewAuditEntry> = {}): NewAuditEntry {
    const about = { subject: `tsk_${at}`, subjectDigest: null };
    return { at, tenant: "acme", keyId: "key_1", route: "POST /tasks", ...about, ...more };
  }

  async function moments(
    { storage }: World,
    filter: { since?: number; keyId?: string; tenant?: string } = {},
  ) {
    const { entries } = await storage.audit.list({ tenant: "acme", limit: 100, ...filter });
    return entries.map(({ at }) => at);
  }

  describe("the audit log", () => {
    test("keeps what was done as it was told, the newest first", async () => {
      const { storage } = await open();
      await storage.audit.append({ entries: [] });
      await storage.audit.append({
        entries: [entry(10, { route: "first" }), entry(10, { route: "second", keyId: null, subject: null })],
      });
      await storage.audit.append({ entries: [entry(5)] });
      const { entries, nextCursor } = await storage.audit.list({ tenant: "acme", limit: 10 });
      expect(entries.map(({ seq: _seq, ...told }) => told)).toEqual([
        entry(10, { route: "second", keyId: null, subject: null }),
        entry(10, { route: "first" }),
        entry(5),
      ]);
      expect(nextCursor).toBeNull();
    });

    test("is listed for one tenant, since a moment, and for one key", async () => {
      const world = await open();
      await world.storage.audit.append({
        entries: [1, 2, 3, 4].map((at) => entry(at, { keyId: at % 2 === 0 ? "even" : "odd" })),
      });
      await world.storage.audit.append({ entries: [entry(9, { tenant: "zeta" })] });
      expect(await moments(world)).toEqual([4, 3, 2, 1]);
      expect(await moments(world, { since: 3 })).toEqual([4, 3]);
      expect(await moments(world, { keyId: "odd" })).toEqual([3, 1]);
      expect(await moments(world, { keyId: "even", since: 3 })).toEqual([4]);
      expect(await moments(world, { tenant: "zeta", keyId: "even" })).toEqual([]);
    });

    test("is read page by page, each entry once", async () => {
      const world = await open();
      const { audit } = world.storage;
      await audit.append({ entries: [3, 1, 2, 2, 2, 3].map((at) => entry(at)) });
      const seen: number[] = [];
      let cursor: number | undefined;
      do {
        const page = await audit.list({
          tenant: "acme",
          limit: 2,
          ...(cursor === undefined ? {} : { cursor }),
        });
        expect(page.entries.length).toBe(2);
        seen.push(...page.entries.map(({ at }) => at));
        cursor = page.nextCursor ?? undefined;
      } while (cursor !== undefined);
      expect(seen).toEqual([3, 3, 2, 2, 2, 1]);
    });

    test("forgets what is past its time, the oldest first, a slice at a time", async () => {
      const world = await open();
      const { storage, clock } = world;
      const now = clock.now();
      await storage.audit.append({ entries: [-10, -30, -20, -40].map((ms) => entry(now + ms)) });
      const prune = () => storage.audit.prune({ retentionMs: 20, limit: 1 });
      expect(await prune()).toEqual({ more: true });
      expect(await moments(world)).toEqual([now - 10, now - 20, now - 30]);
      expect(await prune()).toEqual({ more: true });
      expect(await prune()).toEqual({ more: false });
      expect(await moments(world)).toEqual([now - 10, now - 20]);
    });
  });
}
