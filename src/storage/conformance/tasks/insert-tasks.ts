import { describe, expect, test } from "vitest";
import type { FinishedAndClaimed, InsertClaim, NewTask, Storage } from "../../storage.ts";
import { UNBOUNDED } from "../tenants/share-out.ts";
import {
  AGENT,
  customSpec,
  idsOf,
  LANE,
  NODE,
  newTask,
  type OpenWorld,
  OTHER_LANE,
  only,
  ROOMY,
  TENANT,
} from "../world.ts";

export function describeInsertTasks(open: OpenWorld): void {
  describe("insert", () => {
    test("stores what it is given and answers where it stands", async () => {
      const { submit, clock, task } = await open();
      const spec = { ...customSpec({ a: [1, null] }), metadata: { by: "me" }, timeoutMs: 250 };
      const callbackUrl = "https://example.com/hook";
      const given = {
        id: "t",
        priority: 7,
        spec,
        deadline: clock.now() + 99,
        batch: "together",
        concurrencyKey: "one at a time",
        callbackUrl,
      };
      const inserted = only(await submit(given));
      expect(inserted).toEqual({
        seq: expect.any(Number),
        id: "t",
        state: "queued",
        position: 1,
        createdAt: clock.now(),
        runAt: null,
        deadline: clock.now() + 99,
        rejection: null,
        repeats: null,
      });
      expect(await task("t")).toEqual({
        seq: inserted.seq,
        id: "t",
        tenant: TENANT,
        agent: AGENT,
        lane: LANE,
        priority: 7,
        state: "queued",
        position: 1,
        createdAt: clock.now(),
        runAt: null,
        deadline: clock.now() + 99,
        retryCount: 0,
        batch: "together",
        session: null,
        schedule: null,
        concurrencyKey: "one at a time",
        callbackUrl,
        startedAt: null,
        completedAt: null,
        spec,
        result: undefined,
        error: null,
        usage: null,
        attempts: [],
      });
    });

    test("numbers tasks in the order they are given", async () => {
      const { submit } = await open();
      const first = await submit({}, { agent: "b" }, { lane: OTHER_LANE });
      const second = await submit({}, {});
      const numbers = [...first, ...second].map(({ seq }) => seq);
      expect(numbers).toEqual([...numbers].sort((a, b) => a - b));
      expect(new Set(numbers).size).toBe(5);
    });

    test("parks a task until its moment and queues one whose moment is now or past", async () => {
      const { submit, clock } = await open();
      const now = clock.now();
      const inserted = await submit({ runAt: now + 1 }, { runAt: now }, { runAt: now - 1 });
      expect(inserted.map(({ state, position, runAt }) => ({ state, position, runAt }))).toEqual([
        { state: "delayed", position: 0, runAt: now + 1 },
        { state: "queued", position: 2, runAt: now },
        { state: "queued", position: 3, runAt: now - 1 },
      ]);
    });

    test("gives a position among all that the agent has waiting, in any lane", async () => {
      const { submit, claim } = await open();
      const first = await submit({}, { lane: OTHER_LANE }, { agent: "other" }, { lane: OTHER_LANE }, {});
      expect(first.map(({ position }) => position)).toEqual([1, 2, 1, 3, 4]);
      await claim({ lane: OTHER_LANE, limit: 1 });
      expect(only(await submit({})).position).toBe(4);
    });

    test("counts the default deadline from the moment the task can first start", async () => {
      const { submit, clock } = await open();
      const now = clock.now();
      const inserted = await submit(
        { deadlineAfterMs: 100 },
        { deadlineAfterMs: 100, runAt: now + 50 },
        { deadlineAfterMs: 100, runAt: now - 50 },
        { deadlineAfterMs: 100, deadline: now + 7 },
        {},
      );
      expect(inserted.map(({ deadline }) => deadline)).toEqual([
        now + 100,
        now + 150,
        now + 100,
        now + 7,
        null,
      ]);
    });

    test("answers a repeated task as the first time and stores it once", async () => {
      const { storage, submit, claim, clock, events } = await open();
      const tasks = [newTask({ id: "now" }), newTask({ id: "later", runAt: clock.now() + 100 })];
      const first = await storage.tasks.insert({ tasks, limits: ROOMY });
      await submit({ id: "next" });
      await claim();
      const eventsBefore = await events();
      clock.step(10);
      expect(
        await storage.tasks.insert({
          tasks,
          limits: { maxQueueSize: 0, maxQueueSizeTotal: 1_000, maxPerAgent: 0 },
        }),
      ).toEqual(first);
      expect(await events()).toEqual(eventsBefore);
      expect((await storage.tasks.list({ tenant: TENANT, limit: 10 })).tasks).toHaveLength(3);
      expect(await storage.counters.recountAll()).toEqual([]);
    });

    test("stores a task once that is given twice in one call", async () => {
      const { storage } = await open();
      const task = newTask({ id: "twin" });
      const [first, second, third] = await storage.tasks.insert({
        tasks: [task, task, newTask()],
        limits: ROOMY,
      });
      expect(second).toEqual(first);
      expect(third?.position).toBe(2);
      expect(await storage.tasks.counts({ tenant: TENANT })).toEqual({ queued: 2 });
    });

    test("answers a repeated rejected task as rejected", async () => {
      const { storage } = await open();
      const params = {
        tasks: [newTask({ id: "no" })],
        limits: { maxQueueSize: 0, maxQueueSizeTotal: 1_000, maxPerAgent: 1 },
      };
      const first = only(await storage.tasks.insert(params));
      const again = only(await storage.tasks.insert({ ...params, limits: ROOMY }));
      expect(again).toMatchObject({ seq: first.seq, state: "rejected", rejection: { full: "global" } });
      expect(await storage.tasks.counts({ tenant: TENANT })).toEqual({ rejected: 1 });
    });

    test.each([
      ["agent", { maxQueueSize: 9, maxQueueSizeTotal: 9, maxPerAgent: 0 }],
      ["global", { maxQueueSize: 0, maxQueueSizeTotal: 9, maxPerAgent: 9 }],
      ["server", { maxQueueSize: 9, maxQueueSizeTotal: 0, maxPerAgent: 9 }],
    ] as const)("answers a repeated rejected task with the queue that was full: %s", async (full, limits) => {
      const { storage, task } = await open();
      const tasks = [newTask({ id: "no" })];
      const first = only(await storage.tasks.insert({ tasks, limits }));
      expect(first.rejection).toEqual({ full, queued: 0 });
      expect(await storage.tasks.insert({ tasks, limits: ROOMY })).toEqual([first]);
      expect(await task("no")).toMatchObject({ state: "rejected", error: `rejected: ${full} queue full` });
    });

    test("takes thousands at once and keeps their order", async () => {
      const { submit, claim } = await open();
      const inserted = await submit(...Array.from({ length: 4000 }, (_, index) => ({ id: `n${index}` })));
      expect(inserted.map(({ position }) => position)).toEqual(inserted.map((_, index) => index + 1));
      const claimed = await claim({ limit: 3 });
      expect(claimed.map(({ task }) => task.id)).toEqual(["n0", "n1", "n2"]);
    });

    test("stores nothing at all when one of its tasks names a lane that is not configured", async () => {
      const { storage, submit, events } = await open();
      await expect(submit({}, { lane: "nowhere" }, {})).rejects.toThrow();
      expect(await storage.tasks.counts({ tenant: TENANT })).toEqual({});
      expect(await events()).toEqual([]);
      expect(await storage.counters.recountAll()).toEqual([]);
    });

    test("takes an empty list for what it is", async () => {
      const { submit, events } = await open();
      expect(await submit()).toEqual([]);
      expect(await events()).toEqual([]);
    });

    describe("with a claim", () => {
      const claims = [{ lane: LANE, limit: 2 }];

      /** Inserts tasks with a claim. Returns what was claimed; null: no claim was made. */
      async function insertAndClaim(
        storage: Storage,
        tasks: readonly NewTask[],
        claim: Partial<InsertClaim> = {},
      ): Promise<FinishedAndClaimed | null> {
        let claimed: FinishedAndClaimed | null = null;
        const onClaimed = (answer: FinishedAndClaimed) => {
          claimed = answer;
        };
        const inserted = await storage.tasks.insert({
          tasks,
          limits: ROOMY,
          claim: { node: NODE, claims, onClaimed, ...claim },
        });
        expect(inserted.map(({ state }) => state)).toEqual(tasks.map(() => "queued"));
        return claimed;
      }

      test("inserts tasks and starts them at once", async () => {
        const { storage, clock, task, events } = await open();
        const answer = await insertAndClaim(storage, [newTask({ id: "a" }), newTask({ id: "b" })]);
        expect(answer?.claimed.map((each) => each.task)).toEqual([await task("a"), await task("b")]);
        expect(await task("a")).toMatchObject({ state: "running", startedAt: clock.now(), position: 1 });
        const types = (await events()).map(({ type }) => type);
        expect(types).toEqual(["task.created", "task.created", "task.started", "task.started"]);
        const done = { to: "done", result: 1 } as const;
        const finishes = (answer?.claimed ?? []).map((each) => ({
          seq: each.task.seq,
          token: each.token,
          settlement: done,
        }));
        await storage.tasks.finishAndClaim({ node: NODE, finishes, progress: [], claims: [] });
        expect([await task("a"), await task("b")]).toMatchObject([{ state: "done" }, { state: "done" }]);
        expect(await storage.counters.recountAll()).toEqual([]);
      });

      test("takes what comes first, no more than its limits, and leaves the rest", async () => {
        const { storage, submit, task } = await open();
        await submit({ id: "earlier" });
        const answer = await insertAndClaim(storage, [
          newTask({ id: "a" }),
          newTask({ id: "b" }),
          newTask({ id: "elsewhere", lane: OTHER_LANE }),
        ]);
        expect(idsOf([...(answer?.claimed ?? [])])).toEqual(["earlier", "a"]);
        expect([await task("b"), await task("elsewhere")]).toMatchObject([
          { state: "queued" },
          { state: "queued" },
        ]);
      });

      test("keeps to the limits of lanes, agents and tenants, to sessions and to concurrency keys", async () => {
        const { storage, configureLane } = await open();
        const roomy = { claims: [{ lane: LANE, limit: 9 }] };
        const start = async (tasks: readonly NewTask[], claim: Partial<InsertClaim> = roomy) =>
          idsOf([...((await insertAndClaim(storage, tasks, claim))?.claimed ?? [])]);
        await configureLane(LANE, { total: 1 });
        expect(await start([newTask({ id: "a1" }), newTask({ id: "a2" })])).toEqual(["a1"]);
        await configureLane(LANE, { perAgent: 2 });
        expect(await start([newTask({ id: "a3" })])).toEqual(["a2"]);
        await configureLane(LANE, {});
        await storage.agents.configure({ tenant: TENANT, agent: "shy", maxInflight: 1 });
        expect(await start(["s1", "s2"].map((id) => newTask({ id, agent: "shy" })))).toEqual(["s1", "a3"]);
        const session = { key: "talk", maxConcurrent: 1 };
        expect(await start(["t1", "t2"].map((id) => newTask({ id, agent: "c", session })))).toEqual(["t1"]);
        const keyed = ["k1", "k2"].map((id) => newTask({ id, agent: "d", concurrencyKey: "tab" }));
        expect(await start(keyed)).toEqual(["k1"]);
        const perTenant = { max: 9, left: new Map([[TENANT, 0]]) };
        await storage.tenants.create({ id: "globex", name: "globex", limits: UNBOUNDED });
        const shared = { claims: [{ lane: LANE, limit: 9, perTenant }] };
        expect(await start([newTask({ id: "e1", agent: "e" })], shared)).toEqual([]);
        expect(await start([newTask({ id: "e2", agent: "e" })])).toEqual(["e1", "e2"]);
        expect(await storage.counters.recountAll()).toEqual([]);
      });

      test("starts a task that comes alone, unless a limit or another task is in its way", async () => {
        const { storage, configureLane, submit, finish, clock, task, events } = await open();
        const roomy = [LANE, OTHER_LANE].map((lane) => ({ lane, limit: 9 }));
        const start = async (given: Partial<NewTask>, from: InsertClaim["claims"] = roomy) =>
          idsOf([
            ...((await insertAndClaim(storage, [newTask(given)], { claims: from }))?.claimed ?? []),
          ]).sort();
        const recount = async () => expect(await storage.counters.recountAll()).toEqual([]);
        // Agents that are known.
        await storage.tenants.create({ id: "globex", name: "globex", limits: UNBOUNDED });
        for (const agent of ["a", "b", "limited"]) expect(await start({ id: agent, agent })).toEqual([agent]);
        expect(await start({ id: "globex", tenant: "globex" })).toEqual(["globex"]);
        // Nothing is in its way.
        expect(await start({ id: "a1", agent: "a", preemptible: true })).toEqual(["a1"]);
        await recount();
        expect(await start({ id: "a2", agent: "a", deadline: clock.now() + 1 })).toEqual(["a2"]);
        expect(await start({ id: "globex1", tenant: "globex" })).toEqual(["globex1"]);
        const last = (await events()).slice(-2);
        expect(last.map(({ type }) => type)).toEqual(["task.created", "task.started"]);
        expect(await task("a1")).toMatchObject({ state: "running", startedAt: clock.now(), position: 1 });
        await recount();
        // A limit of the lane, of the agent, of the tenant.
        await configureLane(LANE, { total: 1 });
        expect(await start({ id: "a3", agent: "a" })).toEqual([]);
        await configureLane(LANE, { perAgent: 1 });
        expect(await start({ id: "b1", agent: "b" })).toEqual([]);
        await recount();
        await configureLane(LANE, {});
        expect(await start({ id: "b2", agent: "b" })).toEqual(["a3", "b1", "b2"]);
        await storage.agents.configure({ tenant: TENANT, agent: "limited", maxInflight: 2 });
        expect(await start({ id: "limited1", agent: "limited" })).toEqual(["limited1"]);
        expect(await start({ id: "limited2", agent: "limited" })).toEqual([]);
        const perTenant = { max: 9, left: new Map([["globex", 0]]) };
        const shared = [{ lane: LANE, limit: 9, perTenant }];
        expect(await start({ id: "b3", agent: "b" }, shared)).toEqual(["b3"]);
        expect(await start({ id: "globex2", tenant: "globex" }, shared)).toEqual([]);
        await recount();
        expect(await start({ id: "globex3", tenant: "globex" })).toEqual(["globex2", "globex3"]);
        // Another task, in this lane or in another; or no slot.
        await submit({ id: "elsewhere", lane: OTHER_LANE });
        expect(await start({ id: "b4", agent: "b" })).toEqual(["b4", "elsewhere"]);
        expect(await start({ id: "b5", agent: "b" }, [{ lane: OTHER_LANE, limit: 9 }])).toEqual([]);
        expect(await start({ id: "a4", agent: "a" }, [{ lane: LANE, limit: 0 }])).toEqual([]);
        expect(await start({ id: "a5", agent: "a", deadline: clock.now() })).toEqual(["a4", "b5"]);
        await recount();
        const answer = await insertAndClaim(storage, [newTask({ id: "b6", agent: "b" })], { claims: roomy });
        expect(answer?.claimed.map((each) => each.task)).toEqual([await task("b6")]);
        await finish(only([...(answer?.claimed ?? [])]), { to: "done", result: 1 });
        await recount();
      });

      test("returns what ran before with its earlier attempts", async () => {
        const { storage, submit, claim, finish, task } = await open();
        await submit({ id: "again" });
        await finish(only(await claim()), { to: "queued", error: "interrupted" });
        const answer = await insertAndClaim(storage, [newTask({ id: "new" })]);
        const [again] = answer?.claimed ?? [];
        expect(again?.task).toEqual(await task("again"));
        expect(again?.task.attempts).toMatchObject([{ outcome: "interrupted" }, { outcome: null }]);
      });

      test("returns inputs of any size as they were submitted, of its own tasks and of earlier ones", async () => {
        const { storage, submit, task } = await open();
        const payloads = ["é\n", "x".repeat(20_000), { rows: Array(5_000).fill({ a: '"' }) }];
        const inputs = payloads.map((payload) => ({
          spec: { ...newTask({ id: "any" }).spec, work: { kind: "custom" as const, payload } },
        }));
        await submit(...inputs.map((input, n) => ({ id: `earlier-${n}`, ...input })));
        const tasks = inputs.map((input, n) => newTask({ id: `new-${n}`, ...input }));
        const answer = await insertAndClaim(storage, tasks, { claims: [{ lane: LANE, limit: 9 }] });
        const claimed = answer?.claimed ?? [];
        expect(claimed.map((each) => each.task.spec.work)).toEqual(
          [...payloads, ...payloads].map((payload) => ({ kind: "custom", payload })),
        );
        for (const each of claimed) expect(each.task).toEqual(await task(each.task.id));
      });

      test("loses them with their node as any that run, whether their handlers began or not", async () => {
        const { storage, task, crash } = await open();
        await insertAndClaim(storage, [
          newTask({ id: "again", maxRetriesIfLost: 1 }),
          newTask({ id: "last", maxRetriesIfLost: 0 }),
        ]);
        await crash(NODE);
        await storage.tasks.rescue({ node: NODE, limit: 10, maxLost: 3 });
        expect(await task("again")).toMatchObject({
          state: "queued",
          retryCount: 1,
          attempts: [{ outcome: "lost" }],
        });
        expect(await task("last")).toMatchObject({ state: "failed", error: "worker lost" });
        expect(await storage.counters.recountAll()).toEqual([]);
      });

      test("gives nothing to a node that is not alive, and inserts all the same", async () => {
        const { storage, task } = await open();
        const answer = await insertAndClaim(storage, [newTask({ id: "a" })], { node: "unknown" });
        expect(answer?.claimed).toEqual([]);
        expect(await task("a")).toMatchObject({ state: "queued" });
      });

      test("makes none with an idempotency key, nor with a task that exists already", async () => {
        const { storage, task } = await open();
        const keyed = newTask({ id: "a", idempotency: { key: "k", hash: "h" } });
        expect(await insertAndClaim(storage, [keyed])).toBeNull();
        expect(await insertAndClaim(storage, [newTask({ id: "b" })], { claims: [] })).not.toBeNull();
        expect(await insertAndClaim(storage, [newTask({ id: "b" }), newTask({ id: "c" })])).toBeNull();
        expect([await task("a"), await task("b"), await task("c")]).toMatchObject(
          Array(3).fill({ state: "queued" }),
        );
      });
    });
  });
}
