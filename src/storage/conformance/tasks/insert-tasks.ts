import { describe, expect, test } from "vitest";
import {
  AGENT,
  customSpec,
  LANE,
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
  });
}
