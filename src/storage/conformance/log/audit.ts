import { beforeEach, describe, expect, test } from "vitest";
import type { NewAuditEntry } from "../../storage.ts";
import type { OpenWorld, World } from "../world.ts";

export function describeAudit(open: OpenWorld): void {
  /** The last number of each chain; empty at the start of each test. */
  const numbers = new Map<string, number>();

  function entry(at: number, more: Partial<NewAuditEntry> = {}): NewAuditEntry {
    const about = {
      subject: `tsk_${at}`,
      subjectDigest: null,
      subjectSalt: null,
      address: null,
      status: null,
      count: 1,
      provenance: null,
    };
    const { chain = "node-1" } = more;
    const number = (numbers.get(chain) ?? 0) + 1;
    numbers.set(chain, number);
    const link = { chain, number, previousHash: `hash-${number - 1}`, hash: `hash-${number}` };
    return { at, tenant: "acme", keyId: "key_1", route: "POST /tasks", ...about, ...link, ...more };
  }

  async function moments(
    { storage }: World,
    filter: { since?: number; keyId?: string; tenant?: string } = {},
  ) {
    const { entries } = await storage.audit.list({ tenant: "acme", limit: 100, ...filter });
    return entries.map(({ at }) => at);
  }

  describe("the audit log", () => {
    beforeEach(() => numbers.clear());

    test("keeps entries as they were written, the newest first", async () => {
      const { storage } = await open();
      await storage.audit.append({ entries: [] });
      const first = entry(10, { route: "first" });
      const second = entry(10, { route: "second", keyId: null, subject: null, address: "203.0.113.7" });
      const third = entry(5);
      await storage.audit.append({ entries: [first, second] });
      await storage.audit.append({ entries: [third] });
      const { entries, nextCursor } = await storage.audit.list({ tenant: "acme", limit: 10 });
      expect(entries.map(({ seq: _seq, ...entry }) => entry)).toEqual([second, first, third]);
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
      await storage.audit.append({ entries: [-40, -30, -20, -10].map((ms) => entry(now + ms)) });
      const prune = () => storage.audit.prune({ retentionMs: 20, limit: 1 });
      expect(await prune()).toEqual({ more: true });
      expect(await moments(world)).toEqual([now - 10, now - 20, now - 30]);
      expect(await prune()).toEqual({ more: true });
      expect(await prune()).toEqual({ more: false });
      expect(await moments(world)).toEqual([now - 10, now - 20]);
    });

    test("deletes no entry of a chain before an older one, and remembers the last that it deleted", async () => {
      const { storage, clock } = await open();
      const { audit } = storage;
      const now = clock.now();
      const ours = [-90, -10, -80].map((ms) => entry(now + ms, { chain: "node-a" }));
      const theirs = [-70, -60].map((ms) => entry(now + ms, { chain: "node-b" }));
      await audit.append({ entries: [...ours, ...theirs] });
      await storage.nodes.register({ node: "node-b" });
      expect(await audit.prunedOf({ chain: "node-a" })).toBeNull();
      expect(await audit.prune({ retentionMs: 20, limit: 100 })).toEqual({ more: false });
      const numbers = async (chain: string) =>
        (await audit.readChain({ chain, after: 0, limit: 10 })).map(({ number }) => number);
      expect([await numbers("node-a"), await numbers("node-b")]).toEqual([[2, 3], []]);
      const pointOf = (each: NewAuditEntry | undefined) => ({ number: each?.number, hash: each?.hash });
      expect(await audit.prunedOf({ chain: "node-a" })).toEqual(pointOf(ours[0]));
      // The node is registered, and will continue its chain after the last entry.
      expect(await audit.prunedOf({ chain: "node-b" })).toEqual(pointOf(theirs[1]));
      expect(await audit.endOf({ chain: "node-b" })).toEqual(pointOf(theirs[1]));
      clock.step(100);
      await audit.prune({ retentionMs: 20, limit: 100 });
      expect(await numbers("node-a")).toEqual([]);
      expect(await audit.prunedOf({ chain: "node-a" })).toBeNull();
    });

    test("deletes what was written by a clock that was far ahead", async () => {
      const { storage, clock } = await open();
      const now = clock.now();
      const chain = "node-c";
      await storage.audit.append({ entries: [now + 1_000, now + 10, now].map((at) => entry(at, { chain })) });
      await storage.audit.prune({ retentionMs: 20, limit: 100 });
      expect(await storage.audit.prunedOf({ chain })).toMatchObject({ number: 1 });
    });

    test("names its chains one after the other, with the end of each", async () => {
      const { audit } = (await open()).storage;
      expect(await audit.nextChain({ after: "" })).toBeNull();
      expect(await audit.endOf({ chain: "node-x" })).toBeNull();
      const entries = ["node-x", "node-y", "node-x"].map((chain) =>
        entry(1, { chain, status: 401, count: 7 }),
      );
      await audit.append({ entries });
      expect(await audit.nextChain({ after: "" })).toBe("node-x");
      expect(await audit.nextChain({ after: "node-x" })).toBe("node-y");
      expect(await audit.nextChain({ after: "node-y" })).toBeNull();
      const last = entries[2];
      expect(await audit.endOf({ chain: "node-x" })).toEqual({ number: last?.number, hash: last?.hash });
      const read = await audit.readChain({ chain: "node-x", after: 0, limit: 10 });
      expect(read.map(({ seq: _seq, ...entry }) => entry)).toEqual([entries[0], entries[2]]);
      expect(await audit.readChain({ chain: "node-x", after: 1, limit: 10 })).toHaveLength(1);
      expect(await audit.readChain({ chain: "node-x", after: 0, limit: 1 })).toHaveLength(1);
    });

    test("takes each number of a chain once, and nothing together with one that is taken", async () => {
      const world = await open();
      const { audit } = world.storage;
      const [first, second] = [entry(1, { chain: "node-z" }), entry(2, { chain: "node-z" })];
      await audit.append({ entries: [first] });
      await expect(audit.append({ entries: [second, first] })).rejects.toThrow();
      expect(await moments(world)).toEqual([1]);
    });
  });
}
