import { describe, expect, test } from "vitest";
import type { ClaimedDelivery, NewTask, SettledTry } from "../../storage.ts";
import { NODE, type OpenWorld, OTHER_NODE, only, ROOMY_SHARES, TENANT, type World } from "../world.ts";

const URL = "https://example.com/hook";
const HOLD = { shares: ROOMY_SHARES, held: [], holdMs: 30_000 };

export function describeDeliveries(open: OpenWorld): void {
  describe("deliveries", () => {
    /** Cancels a task with this id, which adds a delivery. */
    async function end(world: World, id: string, task: Partial<NewTask> = {}): Promise<void> {
      await world.submit({ id, callbackUrl: URL, ...task });
      await world.storage.tasks.cancel({ tenant: task.tenant ?? TENANT, ids: [id], error: "stop" });
    }

    async function claim(
      { storage }: World,
      { slots = 100, holdMs = 30_000 } = {},
    ): Promise<ClaimedDelivery[]> {
      const { claimed } = await storage.deliveries.claim({
        ...HOLD,
        shares: { ...ROOMY_SHARES, slots },
        holdMs,
      });
      return claimed;
    }

    async function list({ storage }: World, filter: { taskId?: string; status?: "pending" | "failed" } = {}) {
      return (await storage.deliveries.list({ tenant: TENANT, limit: 100, ...filter })).deliveries;
    }

    function settled(over: Partial<SettledTry> & { seq: number }): SettledTry {
      return { tries: 1, status: "delivered", dueAt: null, responseStatus: 204, error: null, ...over };
    }

    test("come into being with the end of a task that has a callback, however it ends, and only then", async () => {
      const world = await open();
      const { storage, submit, claim, finish, clock, crash } = world;
      const deadline = clock.now() + 5;
      await submit(
        ...["done", "failed", "lost", "retried", "running", "waiting"].map((id) => ({
          id,
          callbackUrl: URL,
        })),
        { id: "expired", callbackUrl: URL, deadline, runAt: clock.now() + 100 },
        { id: "quiet" },
      );
      const [done, failed] = await claim({ limit: 2 });
      const [lost] = await claim({ node: OTHER_NODE });
      const [retried, running] = await claim({ limit: 2 });
      if (!done || !failed || !lost || !retried || !running) throw new Error("Too few were claimed.");
      await finish(done, { to: "done", result: { ok: true } });
      await finish(failed, { to: "failed", error: "broke" });
      await finish(retried, { to: "delayed", error: "again", runAt: clock.now() + 1_000 });
      await storage.tasks.cancel({ tenant: TENANT, ids: ["running", "waiting", "quiet"], error: null });
      clock.step(5);
      await storage.tasks.expire({ limit: 10 });
      await crash(OTHER_NODE);
      for (let lives = 0; lives < 4; lives += 1) {
        await storage.tasks.rescue({ node: OTHER_NODE, limit: 10 });
        const taken = (await claim({ node: NODE, limit: 1 })).find(({ task }) => task.id === "lost");
        if (taken !== undefined) await finish(taken, { to: "failed", error: "gone" });
      }
      const ends = (await list(world)).map(({ taskId, end }) => [
        taskId,
        end?.state,
        end?.error,
        end?.attempts,
      ]);
      expect(ends.sort()).toEqual([
        ["done", "done", null, 1],
        ["expired", "failed", "deadline exceeded while queued", 0],
        ["failed", "failed", "broke", 1],
        ["lost", "failed", "gone", 2],
        ["running", "cancelled", null, 1],
        ["waiting", "cancelled", null, 0],
      ]);
    });

    test("do not come of what was rejected", async () => {
      const world = await open();
      const tasks = [{ id: "in" }, { id: "out" }].map((task) => ({
        ...task,
        callbackUrl: URL,
        maxQueued: 1,
      }));
      const inserted = await world.submit(...tasks);
      expect(inserted.map(({ state }) => state)).toEqual(["queued", "rejected"]);
      expect(await list(world)).toEqual([]);
    });

    test("are signalled when they come of a task that ends because of another", async () => {
      const world = await open();
      await world.submit({ id: "a" }, { id: "b", callbackUrl: URL, dependsOn: ["a"] });
      const claimed = only(await world.claim());
      const heard = new Set<string>();
      world.storage.subscribe(({ kind }) => heard.add(kind));
      await world.finish(claimed, { to: "failed", error: "broke" });
      expect([...heard]).toContain("deliveries");
      heard.clear();
      await world.submit({ id: "c", callbackUrl: URL, dependsOn: ["b"] });
      expect([...heard]).toContain("deliveries");
      expect((await list(world)).map(({ taskId }) => taskId)).toEqual(["c", "b"]);
    });

    test("are numbered as the event of the end, and are due at once", async () => {
      const world = await open();
      await end(world, "t");
      const delivery = only(await list(world));
      const ended = (await world.events()).find(({ type }) => type === "task.cancelled");
      const now = world.clock.now();
      expect(delivery).toEqual({
        seq: ended?.seq,
        tenant: TENANT,
        batch: null,
        taskSeq: (await world.task("t")).seq,
        taskId: "t",
        url: URL,
        host: "example.com",
        hostProven: false,
        end: { state: "cancelled", completedAt: now, error: "stop", retryCount: 0, attempts: 0 },
        status: "pending",
        tries: 0,
        createdAt: now,
        dueAt: now,
        lastTryAt: null,
        responseStatus: null,
        error: null,
      });
      expect(only(await claim(world)).delivery.seq).toBe(delivery.seq);
    });

    test("are claimed once, the longest due first, and again when their time to be held is over", async () => {
      const world = await open();
      const { deliveries } = world.storage;
      for (const id of ["a", "b", "c"]) {
        await end(world, id);
        world.clock.step(1);
      }
      const first = await claim(world, { slots: 2, holdMs: 1_000 });
      expect(first.map(({ delivery, task }) => [delivery.taskId, task.id, delivery.tries])).toEqual([
        ["a", "a", 1],
        ["b", "b", 1],
      ]);
      expect(first[0]?.delivery).toMatchObject({
        dueAt: world.clock.now() + 1_000,
        lastTryAt: world.clock.now(),
      });
      expect((await claim(world)).map(({ delivery }) => delivery.taskId)).toEqual(["c"]);
      expect(await deliveries.claim(HOLD)).toEqual({ claimed: [], nextAt: world.clock.now() + 1_000 });
      world.clock.step(1_000);
      const again = await claim(world);
      expect(again.map(({ delivery }) => [delivery.taskId, delivery.tries])).toEqual([
        ["a", 2],
        ["b", 2],
      ]);
    });

    test("are over once they are settled, or due again if the outcome says so", async () => {
      const world = await open();
      const { deliveries } = world.storage;
      for (const id of ["good", "bad", "later"]) await end(world, id);
      const [good, bad, later] = (await claim(world)).map(({ delivery }) => delivery.seq);
      const dueAt = world.clock.now() + 50;
      await deliveries.settle({
        tries: [
          settled({ seq: good ?? 0 }),
          settled({ seq: bad ?? 0, status: "failed", responseStatus: 410, error: "HTTP 410: gone" }),
          settled({ seq: later ?? 0, status: "pending", dueAt, responseStatus: null, error: "timed out" }),
        ],
      });
      expect(await list(world)).toMatchObject([
        { taskId: "later", status: "pending", dueAt, responseStatus: null, error: "timed out", tries: 1 },
        { taskId: "bad", status: "failed", dueAt: null, responseStatus: 410, error: "HTTP 410: gone" },
        { taskId: "good", status: "delivered", dueAt: null, responseStatus: 204, error: null },
      ]);
      expect(await deliveries.claim(HOLD)).toEqual({ claimed: [], nextAt: dueAt });
    });

    test("are not settled by a claim that was replaced by another", async () => {
      const world = await open();
      const { deliveries } = world.storage;
      await end(world, "t");
      const { seq } = only(await claim(world, { slots: 1, holdMs: 10 })).delivery;
      world.clock.step(10);
      await claim(world);
      await deliveries.settle({ tries: [settled({ seq, status: "failed" })] });
      expect(only(await list(world))).toMatchObject({ status: "pending", tries: 2 });
      await deliveries.settle({ tries: [settled({ seq, tries: 2 })] });
      await deliveries.settle({ tries: [settled({ seq, tries: 2, status: "failed" })] });
      expect(only(await list(world))).toMatchObject({ status: "delivered", tries: 2 });
    });

    test("are put back as if they had not been taken, but not by a node that no longer has them", async () => {
      const world = await open();
      const { deliveries } = world.storage;
      await end(world, "t");
      const { seq } = only(await claim(world, { slots: 1, holdMs: 10 })).delivery;
      const heldUntil = world.clock.now() + 10;
      const soon = world.clock.now() + 5;
      await deliveries.putBack({ claims: [{ seq, tries: 1, heldUntil, dueAt: soon }] });
      await deliveries.putBack({ claims: [{ seq, tries: 1, heldUntil, dueAt: soon + 1 }] });
      expect(only(await list(world))).toMatchObject({ tries: 0, dueAt: soon, lastTryAt: null });
      world.clock.step(5);
      const again = only(await claim(world, { slots: 1, holdMs: 10 })).delivery;
      expect(again.tries).toBe(1);
      const tried = { status: "pending", dueAt: soon, responseStatus: 500, error: "HTTP 500" } as const;
      await deliveries.settle({ tries: [settled({ seq, ...tried })] });
      const third = only(await claim(world)).delivery;
      await deliveries.putBack({ claims: [{ seq, tries: 2, heldUntil: third.dueAt ?? 0, dueAt: soon }] });
      expect(only(await list(world))).toMatchObject({ ...tried, tries: 1, lastTryAt: world.clock.now() });
      await deliveries.settle({ tries: [settled({ seq })] });
      await deliveries.putBack({ claims: [{ seq, tries: 1, heldUntil: again.dueAt ?? 0, dueAt: soon }] });
      expect(only(await list(world))).toMatchObject({ status: "delivered", tries: 1 });
    });

    test("stay with the next claim after they were put back, when that is asked for again", async () => {
      const world = await open();
      const { deliveries } = world.storage;
      await end(world, "t");
      const first = only(await claim(world, { slots: 1, holdMs: 10 })).delivery;
      const { seq, tries } = first;
      const claims = [{ seq, tries, heldUntil: first.dueAt ?? 0, dueAt: world.clock.now() }];
      await deliveries.putBack({ claims });
      world.clock.step(1);
      const second = only(await claim(world, { slots: 1, holdMs: 10 })).delivery;
      // The caller retries, because the first response was lost.
      await deliveries.putBack({ claims });
      expect(await list(world)).toEqual([second]);
    });

    test("are sent anew when asked for, as if never tried, unless they are still pending", async () => {
      const world = await open();
      const { deliveries } = world.storage;
      await end(world, "t");
      const { seq } = only(await claim(world)).delivery;
      expect(await deliveries.resend({ tenant: TENANT, seq })).toEqual({ found: true, was: "pending" });
      await deliveries.settle({ tries: [settled({ seq, status: "failed", error: "no" })] });
      world.clock.step(7);
      const resent = await deliveries.resend({ tenant: TENANT, seq });
      expect(resent).toMatchObject({
        was: null,
        delivery: {
          status: "pending",
          tries: 0,
          dueAt: world.clock.now(),
          error: null,
          responseStatus: null,
        },
      });
      expect(only(await claim(world)).delivery.tries).toBe(1);
      expect(await deliveries.resend({ tenant: TENANT, seq: seq + 1_000 })).toEqual({ found: false });
    });

    test("report each end of a task that is retried in between", async () => {
      const world = await open();
      await end(world, "t");
      await world.storage.tasks.retry({ tenant: TENANT, id: "t" });
      world.clock.step(3);
      await world.finish(only(await world.claim()), { to: "done", result: 1 });
      const claimed = await claim(world);
      expect(claimed.map(({ delivery: { end }, task }) => [end?.state, end?.attempts, task.state])).toEqual([
        ["cancelled", 0, "done"],
        ["done", 1, "done"],
      ]);
    });

    test("are listed newest first, page by page, by task and by status", async () => {
      const world = await open();
      const { deliveries } = world.storage;
      for (const id of ["a", "b", "c"]) await end(world, id);
      const { seq } = only(await claim(world, { slots: 1, holdMs: 10 })).delivery;
      await deliveries.settle({ tries: [settled({ seq, status: "failed" })] });
      expect((await list(world)).map(({ taskId }) => taskId)).toEqual(["c", "b", "a"]);
      expect((await list(world, { taskId: "b" })).map(({ taskId }) => taskId)).toEqual(["b"]);
      expect((await list(world, { status: "failed" })).map(({ taskId }) => taskId)).toEqual(["a"]);
      expect(await list(world, { taskId: "b", status: "failed" })).toEqual([]);
      const page = await deliveries.list({ tenant: TENANT, limit: 2 });
      expect(page.deliveries.map(({ taskId }) => taskId)).toEqual(["c", "b"]);
      const rest = await deliveries.list({ tenant: TENANT, limit: 2, cursor: page.nextCursor ?? 0 });
      expect([rest.deliveries.map(({ taskId }) => taskId), rest.nextCursor]).toEqual([["a"], null]);
      expect(await deliveries.get({ tenant: TENANT, seq })).toEqual(rest.deliveries[0]);
    });

    test("belong to one tenant", async () => {
      const world = await open();
      const { deliveries } = world.storage;
      await end(world, "t", { tenant: "one" });
      const { delivery } = only(await claim(world));
      await deliveries.settle({ tries: [settled({ seq: delivery.seq })] });
      expect((await deliveries.list({ tenant: "two", limit: 10 })).deliveries).toEqual([]);
      expect(await deliveries.get({ tenant: "two", seq: delivery.seq })).toBeNull();
      expect(await deliveries.resend({ tenant: "two", seq: delivery.seq })).toEqual({ found: false });
    });

    test("go with their task", async () => {
      const world = await open();
      await end(world, "old");
      world.clock.step(1_000);
      await end(world, "new");
      await world.storage.tasks.prune({ retentionMs: 500, rejectedMax: 10, limit: 100 });
      expect((await list(world)).map(({ taskId }) => taskId)).toEqual(["new"]);
    });
  });
}
