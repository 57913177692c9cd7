import { describe, expect, test } from "vitest";
import type { BulkStep, NewBulk } from "../../storage.ts";
import { allRollups, countAll } from "../log/rollups.ts";
import { UNBOUNDED } from "../tenants/share-out.ts";
import { newTask, type OpenWorld, ROOMY, TENANT, type World } from "../world.ts";

export function describeBulks(open: OpenWorld): void {
  const BOUNDS = { runningMax: 10, keptMax: 100 };

  function newBulk({ clock }: World, more: Partial<NewBulk> = {}): NewBulk {
    return {
      id: "bulk",
      tenant: TENANT,
      action: "cancel",
      filter: { agentId: "scout" },
      selection: { agent: "scout", states: ["queued"], order: "newest" },
      ids: null,
      limit: 1_000,
      matched: 2,
      lastSeq: 9,
      cursor: 10,
      by: "key_1",
      requestedAt: clock.now(),
      ...more,
    };
  }

  async function add(world: World, more: Partial<NewBulk> = {}): Promise<NewBulk> {
    const bulk = newBulk(world, more);
    expect(await world.storage.bulks.add({ ...bulk, ...BOUNDS })).toBe(true);
    return bulk;
  }

  function step({ storage }: World, more: Partial<BulkStep>) {
    return storage.bulks.step({ tenant: TENANT, id: "bulk", cursor: 10, next: null, ids: [], ...more });
  }

  async function fail({ claim, finish }: World): Promise<void> {
    for (const claimed of await claim({ limit: 100 }))
      await finish(claimed, { to: "failed", error: "broken" });
  }

  const states = async ({ task }: World, ...ids: string[]) =>
    Promise.all(ids.map(async (id) => (await task(id)).state));

  describe("bulk actions", () => {
    test("are kept as they were asked for, each for its tenant", async () => {
      const world = await open();
      const { bulks } = world.storage;
      const named = { id: "named", filter: null, selection: null, ids: ["a", "b\u0000\ud800"], by: null };
      const counts = { state: "running", done: 0, failed: 0, skipped: 0 };
      const bulk = await add(world);
      const other = await add(world, named);
      expect(await bulks.get({ tenant: TENANT, id: "bulk" })).toEqual({ ...bulk, ...counts });
      expect(await bulks.get({ tenant: TENANT, id: "named" })).toEqual({ ...other, ...counts });
      expect(await bulks.get({ tenant: "zeta", id: "bulk" })).toBeNull();
      expect(await bulks.abort({ tenant: "zeta", id: "bulk" })).toBeNull();
      expect(await bulks.get({ tenant: TENANT, id: "bulk" })).toMatchObject({ state: "running" });
    });

    test("cancel what has not ended, as if one by one, and count the rest", async () => {
      const world = await open();
      const { submit, claim, finish, events, storage } = world;
      await submit({ id: "a" }, { id: "b" }, { id: "c" }, { id: "d" });
      const [first, second] = await claim({ limit: 2 });
      if (first === undefined || second === undefined) throw new Error("Two can start.");
      await finish(first, { to: "done", result: null });
      await add(world);
      const fenced: number[] = [];
      storage.subscribe((signal) => signal.kind === "fenced" && fenced.push(...signal.tokens));
      const before = (await events()).at(-1)?.seq ?? 0;
      const stepped = await step(world, { next: 4, ids: ["d", "c", "b", "a", "gone"] });
      expect(stepped?.bulk).toMatchObject({ state: "running", cursor: 4, done: 3, failed: 1, skipped: 1 });
      expect(stepped?.cancelled.map(({ id, token }) => [id, token])).toEqual(
        expect.arrayContaining([
          ["d", null],
          ["c", null],
          ["b", second.token],
        ]),
      );
      expect(stepped?.cancelled.length).toBe(3);
      expect(fenced).toEqual([second.token]);
      expect(await states(world, "a", "b", "c", "d")).toEqual([
        "done",
        "cancelled",
        "cancelled",
        "cancelled",
      ]);
      expect((await events(before)).map(({ type }) => type)).toEqual(Array(3).fill("task.cancelled"));
      expect(await storage.counters.recountAll()).toEqual([]);
    });

    test("act on each task at most once: a slice that was done is not done again", async () => {
      const world = await open();
      await world.submit({ id: "a" }, { id: "b" });
      await add(world);
      expect(await step(world, { next: 5, ids: ["b"] })).not.toBeNull();
      await world.storage.tasks.retry({ tenant: TENANT, id: "b" });
      expect(await step(world, { next: 5, ids: ["b"] })).toBeNull();
      expect(await states(world, "a", "b")).toEqual(["queued", "queued"]);
      expect(await step(world, { cursor: 5, next: null, ids: ["a"] })).toMatchObject({
        bulk: { state: "done", done: 2, skipped: 0, failed: 0 },
      });
      expect(await step(world, { cursor: 5, next: null, ids: ["b"] })).toBeNull();
      expect(await states(world, "a", "b")).toEqual(["cancelled", "queued"]);
    });

    test("retry what had ended before the request, by the rules of a retry", async () => {
      const world = await open();
      const { submit, clock, storage } = world;
      await submit({ id: "parent" }, { id: "late" }, { id: "overdue", deadline: clock.now() + 50 });
      await submit({ id: "child", dependsOn: ["parent"] }, { id: "open", lane: "main" });
      await storage.tasks.cancel({ tenant: TENANT, ids: ["parent", "child", "overdue"], error: null });
      await add(world, { action: "retry" });
      clock.step(100);
      await fail(world);
      expect(await states(world, "late")).toEqual(["failed"]);
      const blocked = await step(world, { next: 11, ids: ["child"] });
      expect(blocked?.bulk).toMatchObject({ done: 0, skipped: 1 });
      const ids = ["parent", "late", "overdue", "child", "open", "gone"];
      const stepped = await step(world, { cursor: 11, ids });
      expect(stepped?.bulk).toMatchObject({ state: "done", done: 2, skipped: 4, failed: 1 });
      expect(await states(world, "parent", "late", "overdue", "child", "open")).toEqual([
        "queued",
        "failed",
        "cancelled",
        "waiting_dependency",
        "queued",
      ]);
      expect(await storage.counters.recountAll()).toEqual([]);
    });

    test("delete what had ended before the request and is no longer needed, and nothing else", async () => {
      const world = await open();
      const { submit, claim, finish, clock, storage } = world;
      const batch = { id: "open-batch", tenant: TENANT, parallelism: null, callbackUrl: null };
      await submit({ id: "grandparent" }, { id: "plain" });
      await finishAll();
      await submit({ id: "parent", dependsOn: ["grandparent"] });
      await finishAll();
      await submit(
        { id: "waits", dependsOn: ["parent"], lane: "main" },
        { id: "called", callbackUrl: "http://a.example/" },
      );
      await finishAll();
      await storage.tasks.insert({
        batches: [batch],
        limits: ROOMY,
        tasks: ["member", "open"].map((id) => newTask({ id, batch: batch.id })),
      });
      const [member] = await claim();
      if (member === undefined) throw new Error("One can start.");
      await finish(member, { to: "done", result: null });
      await add(world, { action: "delete" });
      clock.step(1);
      await submit({ id: "late" });
      for (const claimed of (await claim({ limit: 10 })).filter(({ task: { id } }) => id === "late"))
        await finish(claimed, { to: "done", result: null });
      const ids = ["plain", "parent", "called", "member", "open", "late", "waits", "gone"];
      const stepped = await step(world, { ids });
      expect(stepped?.bulk).toMatchObject({ state: "done", done: 1, skipped: 6, failed: 1 });
      expect(await storage.tasks.get({ tenant: TENANT, id: "plain" })).toBeNull();
      expect(await states(world, "parent", "called", "member", "late")).toEqual(Array(4).fill("done"));

      // Once its dependant has ended, the parent may be deleted. The grandparent was not named, and stays.
      await storage.tasks.cancel({ tenant: TENANT, ids: ["waits"], error: null });
      await add(world, { id: "second", action: "delete" });
      expect(await step(world, { id: "second", ids: ["parent"] })).toMatchObject({ bulk: { done: 1 } });
      expect(await states(world, "grandparent")).toEqual(["done"]);
      expect(await storage.counters.recountAll()).toEqual([]);

      async function finishAll(): Promise<void> {
        for (const claimed of await claim({ limit: 10 })) await finish(claimed, { to: "done", result: null });
      }
    });

    test("delete tasks only after their events are counted", async () => {
      const world = await open();
      await world.submit({ id: "a" }, { id: "b" });
      await fail(world);
      await add(world, { action: "delete" });
      await step(world, { ids: ["a", "b"] });
      expect(await world.storage.tasks.get({ tenant: TENANT, id: "a" })).toBeNull();
      await countAll(world.storage);
      expect(await allRollups(world.storage)).toMatchObject([{ submitted: 2, started: 2, failed: 2 }]);
    });

    test("are not stored beyond the bound of their tenant, and the oldest that ended are forgotten", async () => {
      const world = await open();
      const { bulks } = world.storage;
      const bounds = { runningMax: 2, keptMax: 1 };
      const tryAdd = (id: string, tenant = TENANT) =>
        bulks.add({ ...newBulk(world, { id, tenant }), ...bounds });
      expect(await tryAdd("a")).toBe(true);
      expect(await tryAdd("b")).toBe(true);
      expect(await tryAdd("c")).toBe(false);
      expect(await tryAdd("d", "zeta")).toBe(true);
      await step(world, { id: "a" });
      await bulks.abort({ tenant: TENANT, id: "b" });
      expect(await tryAdd("c")).toBe(true);
      const kept = await Promise.all(["a", "b", "c"].map((id) => bulks.get({ tenant: TENANT, id })));
      expect(kept.map((bulk) => bulk?.state)).toEqual([undefined, "aborted", "running"]);
    });

    test("do nothing more once they are aborted, and an end stays what it was", async () => {
      const world = await open();
      const { bulks } = world.storage;
      await world.submit({ id: "a" }, { id: "b" });
      await add(world, { ids: ["b", "a"], cursor: 0 });
      await step(world, { cursor: 0, next: 1, ids: ["b"] });
      const name = { tenant: TENANT, id: "bulk" };
      expect(await bulks.abort(name)).toMatchObject({ state: "aborted", done: 1, ids: null });
      expect(await step(world, { cursor: 1, ids: ["a"] })).toBeNull();
      expect(await states(world, "a", "b")).toEqual(["queued", "cancelled"]);
      expect(await bulks.claim({ leaseMs: 10 })).toEqual({ bulk: null, retryMs: null });
      await add(world, { id: "other" });
      await step(world, { id: "other" });
      expect(await bulks.abort({ ...name, id: "other" })).toMatchObject({ state: "done" });
    });

    test("take turns by tenant, and within a tenant", async () => {
      const world = await open();
      const { bulks } = world.storage;
      await add(world, { id: "a1" });
      await add(world, { id: "a2" });
      await add(world, { id: "a3" });
      await add(world, { id: "z1", tenant: "zeta" });
      const turns: string[] = [];
      for (let turn = 0; turn < 8; turn += 1) {
        const { bulk } = await bulks.claim({ leaseMs: 0 });
        turns.push(bulk?.id ?? "none");
      }
      expect(turns).toEqual(["a1", "z1", "a2", "z1", "a3", "z1", "a1", "z1"]);
    });

    test("are worked on by one node at a time, and taken over from one that is gone", async () => {
      const world = await open();
      const { clock, storage } = world;
      const { bulks } = storage;
      expect(await bulks.claim({ leaseMs: 100 })).toEqual({ bulk: null, retryMs: null });
      await add(world);
      expect((await bulks.claim({ leaseMs: 100 })).bulk).toMatchObject({ id: "bulk", cursor: 10 });
      clock.step(40);
      expect(await bulks.claim({ leaseMs: 100 })).toEqual({ bulk: null, retryMs: 60 });
      clock.step(60);
      expect((await bulks.claim({ leaseMs: 100 })).bulk?.id).toBe("bulk");
      await step(world, { next: 7 });
      expect((await bulks.claim({ leaseMs: 100 })).bulk).toMatchObject({ id: "bulk", cursor: 7 });
      // A lease from before the clock was set back does not hold until its end.
      clock.step(-1_000);
      expect((await bulks.claim({ leaseMs: 100 })).bulk?.id).toBe("bulk");
    });

    test("wake those that carry them out", async () => {
      const world = await open();
      const kinds: string[] = [];
      world.storage.subscribe(({ kind }) => kinds.push(kind));
      await add(world);
      expect(kinds).toContain("bulks");
    });

    test("go with their tenant", async () => {
      const world = await open();
      const { tenants, bulks } = world.storage;
      await tenants.create({ id: "zeta", name: "zeta", limits: UNBOUNDED });
      await add(world, { tenant: "zeta" });
      expect(await tenants.delete({ id: "zeta", limit: 10 })).toMatchObject({ more: false });
      expect(await bulks.get({ tenant: "zeta", id: "bulk" })).toBeNull();
    });
  });
}
