import { describe, expect, test } from "vitest";
import type { EventFilter, PageEventsParams, StoredEvent } from "../../storage.ts";
import { AGENT, LANE, newTask, type OpenWorld, only, ROOMY, TENANT, type World } from "../world.ts";

export function describeEvents(open: OpenWorld): void {
  describe("events", () => {
    test("describe a task's life in order, each with the state it led to", async () => {
      const { storage, submit, claim, finish, clock, events } = await open();
      await submit({ id: "t", batch: "together", runAt: clock.now() + 10 });
      clock.step(10);
      await storage.tasks.promoteDue({ limit: 1 });
      await finish(only(await claim()), { to: "queued", error: "again" });
      clock.step(5);
      const at = clock.now();
      await finish(only(await claim()), { to: "done", result: { ok: true } });
      const base = {
        taskId: "t",
        tenant: TENANT,
        agent: AGENT,
        lane: LANE,
        batch: "together",
        session: null,
        schedule: null,
        seq: expect.any(Number),
        bytes: expect.any(Number),
      };
      expect(await events()).toEqual([
        {
          ...base,
          type: "task.created",
          at: at - 15,
          state: "delayed",
          result: undefined,
          data: { state: "delayed" },
        },
        {
          ...base,
          type: "task.started",
          at: at - 5,
          state: "running",
          result: undefined,
          data: { attempt: 1 },
        },
        {
          ...base,
          type: "task.retrying",
          at: at - 5,
          state: "queued",
          result: undefined,
          data: { attempt: 1, error: "again", retryAt: at - 5, state: "queued" },
        },
        { ...base, type: "task.started", at, state: "running", result: undefined, data: { attempt: 2 } },
        { ...base, type: "task.completed", at, state: "done", result: { ok: true }, data: null },
      ]);
    });

    test("are numbered upwards and read on after the last one seen", async () => {
      const { storage, submit } = await open();
      await submit({}, {}, {}, {}, {});
      const { events: all } = await storage.events.read({ after: 0, limit: 100, bytesMax: 1e9 });
      const numbers = all.map(({ seq }) => seq);
      expect(numbers).toHaveLength(5);
      expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b));
      const seen: typeof all = [];
      for (let after = 0; seen.length < 5; after = seen.at(-1)?.seq ?? after) {
        const page = await storage.events.read({ after, limit: 2, bytesMax: 1e9 });
        expect(page.events.length).toBeGreaterThan(0);
        seen.push(...page.events);
        expect(page.more).toBe(seen.length < 5);
      }
      expect(seen).toEqual(all);
      const after = numbers.at(-1) ?? 0;
      expect(await storage.events.read({ after, limit: 2, bytesMax: 1e9 })).toEqual({
        events: [],
        more: false,
        upTo: after,
        mark: { type: "task.created", at: all.at(-1)?.at },
      });
    });

    test("are read until they take more than was asked for, one at least", async () => {
      const { storage, submit, claim, finish, events } = await open();
      await submit({ id: "a" }, { id: "b" }, { id: "c" });
      for (const claimed of await claim({ limit: 3 }))
        await finish(claimed, { to: "done", result: "x".repeat(1_000) });
      const all = await events();
      const [first] = all.filter(({ type }) => type === "task.completed");
      const after = (first?.seq ?? 0) - 1;
      const read = async (bytesMax: number) => {
        const page = await storage.events.read({ after, limit: 10, bytesMax });
        expect(page.events).toEqual(all.filter(({ seq }) => seq > after).slice(0, page.events.length));
        return [page.events.length, page.more];
      };
      expect(await read(1)).toEqual([1, true]);
      expect(await read(1_500)).toEqual([2, true]);
      expect(await read(10_000)).toEqual([3, false]);
    });

    test("are known by more than their numbers, each for itself and with what comes after it", async () => {
      const { storage, submit, claim, clock } = await open();
      await submit({}, {});
      clock.step(5);
      await claim({ limit: 2 });
      const { events: all } = await storage.events.read({ after: 0, limit: 100, bytesMax: 1e9 });
      expect(all.map(({ type }) => type)).toEqual([
        "task.created",
        "task.created",
        "task.started",
        "task.started",
      ]);
      for (const { seq, type, at } of all) {
        expect(await storage.events.mark({ seq })).toEqual({ type, at });
        const page = await storage.events.read({ after: seq, limit: 100, bytesMax: 1e9 });
        expect(page.mark).toEqual({ type, at });
      }
      const { newest } = await storage.events.range();
      for (const seq of [0, newest + 1]) {
        expect(await storage.events.mark({ seq })).toBeNull();
        expect((await storage.events.read({ after: seq, limit: 1, bytesMax: 1e9 })).mark).toBeNull();
      }
    });

    test("are known although their task is gone, until they go themselves", async () => {
      const { storage, submit, clock } = await open();
      await submit({ maxQueued: 0 });
      const { newest: seq } = await storage.events.range();
      const mark = { type: "task.rejected", at: clock.now() };
      await storage.tasks.prune({ retentionMs: 1e9, rejectedMax: 0, limit: 10 });
      expect(await storage.events.mark({ seq })).toEqual(mark);
      const page = await storage.events.read({ after: seq, limit: 1, bytesMax: 1e9 });
      expect([page.events, page.mark]).toEqual([[], mark]);
      clock.step(2_000);
      await storage.tasks.prune({ retentionMs: 1_000, rejectedMax: 0, limit: 10 });
      expect(await storage.events.mark({ seq })).toBeNull();
    });

    test("are found by when they were written", async () => {
      const { storage, submit, clock } = await open();
      expect(await storage.events.lastUntil({ at: clock.now() })).toBe(0);
      await submit({}, {});
      const { newest: first } = await storage.events.range();
      const at = clock.now();
      clock.step(10);
      await submit({});
      const { newest: second } = await storage.events.range();
      const found = [at - 1, at, at + 9, at + 10].map((until) => storage.events.lastUntil({ at: until }));
      expect(await Promise.all(found)).toEqual([0, first, first, second]);
    });

    test("come in the order of the tasks that one step moves", async () => {
      const { storage, submit, events } = await open();
      await submit({ id: "b" }, { id: "a" }, { id: "c" });
      await storage.tasks.cancel({ tenant: TENANT, ids: ["c", "a"], error: null });
      expect((await events()).map(({ taskId }) => taskId)).toEqual(["b", "a", "c", "c", "a"]);
    });

    test("of any number of tasks that are gone are passed over in slices, and nothing behind them is", async () => {
      const { storage, submit } = await open();
      const rejected = Array.from({ length: 1_100 }, () => ({ maxQueued: 0 }));
      for (let calls = 0; calls < 2; calls += 1) await submit(...rejected);
      await submit({ id: "stays" });
      await storage.tasks.prune({ retentionMs: 1e9, rejectedMax: 0, limit: 10_000 });
      let after = 0;
      for (let reads = 0; reads < 5; reads += 1) {
        const page = await storage.events.read({ after, limit: 10, bytesMax: 1e9 });
        if (page.events.length > 0) {
          expect(page.events.map(({ taskId }) => taskId)).toEqual(["stays"]);
          expect((await storage.events.range()).newest).toBe(page.upTo);
          return;
        }
        expect([page.more, page.upTo > after]).toEqual([true, true]);
        after = page.upTo;
      }
      throw new Error("It was passed over.");
    });

    describe("of a tenant, page by page,", () => {
      /** Some tasks of two tenants, of which some end and one is deleted. */
      async function makeLog(world: World) {
        const { submit, claim, finish, storage, clock } = world;
        await submit({ id: "gone" });
        await storage.tasks.cancel({ tenant: TENANT, ids: ["gone"], error: null });
        clock.step(120_000);
        await submit({ id: "a" }, { id: "b" }, { id: "x", tenant: "other" }, { id: "c" }, { id: "d" });
        const claimed = await claim({ limit: 5 });
        for (const each of claimed) await finish(each, { to: "done", result: each.task.id.repeat(100) });
        clock.step(120_000);
        await submit({ id: "late" });
        const prune = { retentionMs: 200_000, rejectedMax: 100, limit: 1 };
        for (let n = 0; n < 2; n += 1) await storage.tasks.prune(prune);
        return (await world.events()).filter(({ tenant }) => tenant === TENANT);
      }

      /** Reads all pages, one after the other. */
      async function readAll({ storage }: World, params: Omit<PageEventsParams, "tenant">) {
        const all: StoredEvent[] = [];
        for (let [pages, at] = [0, params]; pages < 1_000; pages += 1) {
          const { events, next } = await storage.events.page({ tenant: TENANT, ...at });
          expect(events.length).toBeLessThanOrEqual(params.limit);
          all.push(...events);
          if (next === null) return all;
          at = at.after === undefined ? { ...at, before: next } : { ...at, after: next };
        }
        throw new Error("There is no end to it.");
      }

      test.each([1, 2, 3, 100])("go both ways, %i at a time, and leave nothing out", async (limit) => {
        const world = await open();
        const all = await makeLog(world);
        expect(all.length).toBeGreaterThan(12);
        const page = { limit, bytesMax: 1e9 };
        expect(await readAll(world, { after: 0, ...page })).toEqual(all);
        expect(await readAll(world, page)).toEqual(all.toReversed());
        for (const { seq } of all) {
          const later = all.filter((event) => event.seq > seq);
          const earlier = all.filter((event) => event.seq < seq).reverse();
          expect(await readAll(world, { after: seq, ...page })).toEqual(later);
          expect(await readAll(world, { before: seq, ...page })).toEqual(earlier);
        }
        const [from, to] = [all[2]?.seq ?? 0, all[9]?.seq ?? 0];
        const between = all.filter(({ seq }) => seq > from && seq < to);
        expect(await readAll(world, { after: from, before: to, ...page })).toEqual(between);
      });

      test("are those of a type, of a task, or both", async () => {
        const world = await open();
        const all = await makeLog(world);
        const page = { limit: 2, bytesMax: 1e9 };
        for (const type of ["task.created", "task.completed", "task.failed"] as const) {
          const fitting = all.filter((event) => event.type === type);
          expect(await readAll(world, { after: 0, type, ...page })).toEqual(fitting);
          expect(await readAll(world, { type, ...page })).toEqual(fitting.toReversed());
        }
        for (const taskId of ["a", "d", "late", "x", "gone", "unknown"]) {
          const fitting = all.filter((event) => event.taskId === taskId);
          expect(await readAll(world, { after: 0, taskId, ...page })).toEqual(fitting);
          expect(await readAll(world, { taskId, ...page })).toEqual(fitting.toReversed());
          expect(await readAll(world, { taskId, type: "task.started", ...page })).toEqual(
            fitting.filter(({ type }) => type === "task.started"),
          );
        }
      });

      test("end when they take more than was asked for, after one at least", async () => {
        const world = await open();
        const all = await makeLog(world);
        const fitting = all.filter(({ type }) => type === "task.completed");
        const page = { tenant: TENANT, type: "task.completed", limit: 10 } as const;
        const { events, next } = await world.storage.events.page({ ...page, after: 0, bytesMax: 1 });
        expect([events, next]).toEqual([fitting.slice(0, 1), fitting[0]?.seq]);
        expect(await readAll(world, { ...page, bytesMax: 150 })).toEqual(fitting.toReversed());
      });

      test("report the end of a batch with the last of its tasks, whenever that is", async () => {
        const world = await open();
        const { storage, clock, claim, finish } = world;
        const batch = { id: "batch", tenant: TENANT, parallelism: null, callbackUrl: null };
        const tasks = ["slow", "last"].map((id) => newTask({ id, batch: batch.id }));
        await storage.tasks.insert({ tasks, batches: [batch], limits: ROOMY });
        const [slow, last] = await claim({ limit: 2 });
        if (slow === undefined || last === undefined) throw new Error("Both start.");
        await finish(last, { to: "done", result: null });
        clock.step(600_000);
        await finish(slow, { to: "done", result: null });
        const seen = await readAll(world, { taskId: "last", limit: 10, bytesMax: 1e9 });
        expect(seen.map(({ type }) => type)).toEqual([
          "batch.completed",
          "task.completed",
          "task.started",
          "task.created",
        ]);
      });

      test("look at so much of the log at a time, and go on where that ended", async () => {
        const world = await open();
        const { storage, submit } = world;
        await submit({ id: "first" });
        // The data of each event differs, so each gets a row of its own in the log.
        const runAt = world.clock.now() + 1_000_000;
        for (let slice = 0; slice < 11; slice += 1) {
          const tasks = Array.from({ length: 500 }, (_, index) =>
            newTask(index % 2 === 0 ? { runAt: runAt + index } : {}),
          );
          await storage.tasks.insert({ tasks, limits: ROOMY });
          await storage.tasks.cancel({ tenant: TENANT, ids: tasks.map(({ id }) => id), error: `${slice}` });
        }
        await submit({ id: "last" });
        const page = { limit: 1_000, bytesMax: 1e9 };
        const all = await readAll(world, { after: 0, ...page });
        expect(all).toHaveLength(11_002);
        expect((await readAll(world, page)).map(({ seq }) => seq)).toEqual(
          all.map(({ seq }) => seq).reverse(),
        );
        const of = async (filter: Partial<PageEventsParams>) =>
          (await readAll(world, { ...filter, ...page })).map(({ seq }) => seq);
        for (const taskId of ["first", "last"]) {
          const seqs = all.filter((event) => event.taskId === taskId).map(({ seq }) => seq);
          expect(await of({ taskId })).toEqual(seqs);
          expect(await of({ taskId, after: 0 })).toEqual(seqs);
        }
        expect(await of({ type: "task.failed" })).toEqual([]);
      }, 60_000);
    });

    test("say how far they reach", async () => {
      const { storage, submit, events } = await open();
      expect(await storage.events.range()).toEqual({ oldest: 1, newest: 0 });
      await submit({}, {});
      const all = await events();
      expect(await storage.events.range()).toEqual({ oldest: all[0]?.seq, newest: all[1]?.seq });
    });

    test("are read without changing anything", async () => {
      const { storage, submit, events } = await open();
      await submit({});
      const first = await events();
      await storage.tasks.list({ tenant: TENANT, limit: 5 });
      await storage.tasks.nextDueAt();
      expect(await events()).toEqual(first);
    });

    test("are found after a limit that only holds events of tasks that are gone", async () => {
      const { storage, submit, events, clock } = await open();
      for (let count = 0; count < 20; count += 1) await submit({ id: `gone${count}` });
      const ids = Array.from({ length: 20 }, (_, index) => `gone${index}`);
      await storage.tasks.cancel({ tenant: TENANT, ids, error: null });
      await submit({ id: "stays" });
      clock.step(5000);
      // The first slice deletes the events of their creation, and with these the tasks. The other events stay.
      await storage.tasks.prune({ retentionMs: 1000, rejectedMax: 10, limit: 20 });
      const page = await storage.events.read({ after: 0, limit: 3, bytesMax: 1e9 });
      expect(page).toMatchObject({ events: await events(), more: false });
      expect(only(await events()).taskId).toBe("stays");
    });

    test("are read for one tenant, and for what a reader asks for, without those in between", async () => {
      const world = await open();
      const session = { key: "s", maxConcurrent: 9 };
      for (let n = 0; n < 6; n += 1) {
        await world.submit({ id: `x${n}`, tenant: "other" }, { id: `a${n}`, agent: n % 2 ? "odd" : "even" });
      }
      await world.submit({ id: "b", batch: "together" }, { id: "c", session }, { id: "y", tenant: "other" });
      const idsFor = async (filter: Omit<EventFilter, "tenant">) => {
        const ids: string[] = [];
        let after = 0;
        for (let more = true; more; ) {
          const page = await world.storage.events.read({
            after,
            limit: 2,
            bytesMax: 1e9,
            filter: { tenant: TENANT, ...filter },
          });
          ids.push(...page.events.map(({ taskId }) => taskId));
          more = page.upTo > after;
          after = page.upTo;
        }
        // No event is left that a reader would have to read again.
        expect(after).toBe((await world.storage.events.range()).newest);
        return ids.join(" ");
      };
      expect(await idsFor({})).toBe("a0 a1 a2 a3 a4 a5 b c");
      expect(await idsFor({ agent: "odd" })).toBe("a1 a3 a5");
      expect(await idsFor({ batch: "together" })).toBe("b");
      expect(await idsFor({ session: "s" })).toBe("c");
      expect(await idsFor({ session: "nowhere" })).toBe("");
      expect(await idsFor({ schedule: 7 })).toBe("");
    });
  });
}
