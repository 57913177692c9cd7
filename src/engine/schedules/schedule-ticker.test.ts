import { describe, expect, test } from "vitest";
import { createSchedule, HOUR, MINUTE, makeScheduler, SECOND } from "../../../test/support/schedules.ts";
import { asSharedStorage, away, type Call, openMemory } from "../../../test/support/storages.ts";
import { UNBOUNDED } from "../../storage/conformance/tenants/share-out.ts";
import type { Fire } from "../../storage/storage.ts";
import { ManualClock, settle } from "../../testing/manual-clock.ts";
import { Latch, until } from "../../testing/signals.ts";

const forEver = () => new Promise(() => {});

describe("a schedule", () => {
  test("fires at its moment, to the millisecond, and its run and its task are there at once", async () => {
    const { engine, clock, create, runs, schedule, task } = await makeScheduler();
    const { id } = await create({ work: { kind: "message", message: "hello" } });
    await engine.start();
    await clock.advance(MINUTE - 1);
    expect(await runs()).toEqual([]);
    await clock.advance(1);
    const [run] = await runs();
    expect(run).toMatchObject({
      scheduleId: id,
      status: "succeeded",
      dueAt: clock.now(),
      startedAt: clock.now(),
      moments: 1,
      forced: false,
    });
    expect(run?.requestId).toMatch(/^req_/);
    expect(await task(run?.taskId ?? "")).toMatchObject({
      agent: "index",
      lane: "cron",
      schedule: id,
      session: `schedule:${id}`,
      spec: { work: { kind: "message", message: "hello" }, timeoutMs: 120_000 },
    });
    expect(await schedule(id)).toMatchObject({ nextFireAt: clock.now() + MINUTE, runCount: 1 });
  });

  test("by elapsed time does not drift with how long its runs take, nor with a restart", async () => {
    const latches: Latch[] = [];
    const executor = async () => {
      const latch = new Latch();
      latches.push(latch);
      await latch.opened;
    };
    const first = await makeScheduler({ executor });
    const { clock, anchor, create, runs, storage } = first;
    await create({ everyMs: 10 * SECOND });
    await first.engine.start();
    for (let round = 0; round < 3; round++) {
      await clock.advance(13_700);
      latches.shift()?.open();
    }
    await Promise.all([first.engine.drain(0), clock.advance(1_234)]);
    const second = await makeScheduler({
      executor,
      clock,
      storage: asSharedStorage(storage),
      node: "second",
    });
    await second.engine.start();
    await clock.advance(30 * SECOND);
    const moments = (await runs()).map(({ dueAt }) => dueAt - anchor);
    expect(moments).toEqual([10, 20, 30, 40, 50, 60, 70].map((sec) => sec * SECOND));
  });

  test("made for an earlier moment than the one that is waited for fires then", async () => {
    const { engine, clock, anchor, create, story } = await makeScheduler({ getsSignals: false });
    await create({ everyMs: HOUR });
    await engine.start();
    await settle();
    const { id } = await create({ nextFireAt: anchor + 500 });
    engine.scheduleTicker.expect(anchor + 500);
    await clock.advance(500);
    expect(await story(id)).toEqual(["succeeded 0.5"]);
  });

  test("made on another node is known here by its signal", async () => {
    const { engine, clock, anchor, create, story } = await makeScheduler();
    await create({ everyMs: HOUR });
    await engine.start();
    await settle();
    const { id } = await create({ nextFireAt: anchor + 100 });
    await clock.advance(100);
    expect(await story(id)).toEqual(["succeeded 0.1"]);
  });

  test("whose signal got lost fires soon after all, on a storage that others write to", async () => {
    const clock = new ManualClock();
    const storage = asSharedStorage(await openMemory(clock));
    const { engine, create, story } = await makeScheduler({ clock, storage, getsSignals: false });
    await engine.start();
    await settle();
    await create({ everyMs: SECOND, overlap: "queue" });
    await clock.advance(29 * SECOND);
    expect(await story()).toEqual([]);
    await clock.advance(2 * SECOND);
    expect(await story()).toHaveLength(31);
  });

  test("that was changed while its moment was worked out fires as it is now, not as it was", async () => {
    let edit: (() => Promise<unknown>) | null = null;
    const { engine, clock, anchor, create, schedule, story, storage } = await makeScheduler({
      meddler: {
        before: async ({ operation }) => {
          if (operation === "schedules.fire") await edit?.();
        },
      },
    });
    const { id, tenant, revision } = await create();
    edit = () => {
      edit = null;
      const rule = { kind: "every", everyMs: 10 * SECOND, tz: "UTC" } as const;
      const changes = { rule, anchorAt: clock.now(), nextFireAt: clock.now() + 10 * SECOND };
      return storage.schedules.update({ tenant, id, revision, changes });
    };
    await engine.start();
    await clock.advance(MINUTE);
    expect(await story(id)).toEqual([]);
    await clock.advance(10 * SECOND);
    expect(await story(id)).toEqual(["succeeded 70"]);
    expect(await schedule(id)).toMatchObject({ nextFireAt: anchor + 80 * SECOND });
  });

  test("that is due once ends with its run", async () => {
    const { engine, clock, anchor, create, schedule } = await makeScheduler();
    const atMs = anchor + MINUTE;
    const { id } = await create({ rule: { kind: "once", atMs, phrase: "in 1 minute", tz: "UTC" } });
    await engine.start();
    await clock.advance(MINUTE);
    expect(await schedule(id)).toMatchObject({ status: "completed", nextFireAt: null, runCount: 1 });
  });
});

describe("while nothing is due", () => {
  test("the storage is not asked, however many schedules there are", async () => {
    const calls: string[] = [];
    const { engine, clock, create } = await makeScheduler({
      meddler: { before: ({ operation }) => void calls.push(operation) },
    });
    for (let made = 0; made < 1_000; made++) await create({ everyMs: HOUR });
    await engine.start();
    await clock.advance(MINUTE);
    calls.length = 0;
    await clock.advance(50 * MINUTE);
    expect(
      calls.filter((operation) => operation.startsWith("schedules.") && !operation.endsWith("prune")),
    ).toEqual([]);
  });

  test("a shared storage is asked at times for the next due time, and for nothing else", async () => {
    const calls: string[] = [];
    const clock = new ManualClock();
    const { engine, create } = await makeScheduler({
      clock,
      storage: asSharedStorage(await openMemory(clock)),
      meddler: { before: ({ operation }) => void calls.push(operation) },
    });
    await create({ everyMs: HOUR });
    await engine.start();
    await clock.advance(MINUTE);
    calls.length = 0;
    await clock.advance(5 * MINUTE);
    const asked = calls.filter(
      (operation) => operation.startsWith("schedules.") && !operation.endsWith("prune"),
    );
    expect(new Set(asked)).toEqual(new Set(["schedules.nextDueAt"]));
    expect(asked.length).toBeLessThanOrEqual(10);
  });
});

describe("many schedules", () => {
  test("that are due at once are all there at that moment, whatever their runs do", async () => {
    const fired: Call[] = [];
    const { engine, clock, create, runs } = await makeScheduler({
      concurrency: { cron: 5 },
      executor: forEver,
      meddler: { before: (call) => void (call.operation === "schedules.fire" && fired.push(call)) },
    });
    for (let made = 0; made < 1_000; made++) await create();
    await engine.start();
    await clock.advance(MINUTE);
    const due = clock.now();
    await until(async () => (await runs()).length === 1_000, "a thousand runs");
    expect(clock.now()).toBe(due);
    const all = await runs();
    expect(new Set(all.map(({ scheduleId }) => scheduleId)).size).toBe(1_000);
    expect(all.every(({ status, startedAt }) => status === "running" && startedAt === due)).toBe(true);
    expect(Math.max(...fired.map(({ params }) => params.fires.length))).toBeLessThanOrEqual(50);
  });

  test("with much to catch up with are written a few rows at a time", async () => {
    const rows: number[] = [];
    const { engine, clock, create, runs } = await makeScheduler({
      executor: forEver,
      meddler: {
        before: ({ operation, params }) => {
          if (operation !== "schedules.fire") return;
          rows.push(params.fires.reduce((sum: number, { runs: own }: Fire) => sum + own.length, 0));
        },
      },
    });
    for (let made = 0; made < 30; made++) await create({ catchUp: "all" });
    await clock.advance(3 * HOUR);
    await engine.start();
    await until(async () => (await runs()).length === 30 * (1 + 100), "all rows");
    expect(Math.max(...rows)).toBeLessThanOrEqual(101);
  });

  test("fire although one of them cannot be worked out, which is paused and logged once", async () => {
    const { engine, clock, log, create, runs, schedule, story, storage } = await makeScheduler();
    const broken = await create({ rule: { kind: "cron", expr: "every now and then", tz: "UTC" } });
    const { id } = await create();
    await engine.start();
    await clock.advance(3 * MINUTE);
    expect(await story(id)).toEqual(["succeeded 60", "succeeded 120", "succeeded 180"]);
    expect(await runs(broken.id)).toMatchObject([{ status: "failed", taskId: null }]);
    expect(await schedule(broken.id)).toMatchObject({ status: "paused", nextFireAt: null });
    expect(log.messages("error")).toEqual(["a schedule cannot be fired and is paused"]);
    const { notifications } = await storage.notifications.read({ after: 0, limit: 1_000 });
    expect(notifications.find(({ kind }) => kind === "schedule.paused")?.reason).toMatch(
      /^it could not be worked out when it is due: /,
    );
  });

  test("fire although the runs of one of them cannot be stored: that one is paused", async () => {
    let poison = 0;
    const { engine, clock, log, create, schedule, story } = await makeScheduler({
      meddler: {
        before: ({ operation, params }) => {
          if (operation !== "schedules.fire") return;
          if (params.fires.some(({ id }: Fire) => id === poison)) throw new Error("a value that cannot be");
        },
      },
    });
    poison = (await create()).id;
    const { id } = await create();
    await engine.start();
    await clock.advance(2 * MINUTE);
    expect(await story(id)).toEqual(["succeeded 60", "succeeded 120"]);
    expect(await schedule(poison)).toMatchObject({ status: "paused" });
    expect(log.messages("error")).toEqual(["the runs of a schedule cannot be stored, and it is paused"]);
  });

  test("fire although the agent of one is gone, whose run fails and which is paused", async () => {
    const asked: string[] = [];
    const { engine, clock, create, runs, schedule, story, storage } = await makeScheduler({
      hasAgent: async ({ agent }) => {
        asked.push(agent);
        return agent !== "gone";
      },
    });
    const orphan = await create({ agent: "gone", everyMs: 20 * SECOND, catchUp: "all" });
    const { id } = await create({ everyMs: 30 * SECOND });
    await clock.advance(50 * SECOND);
    await engine.start();
    await clock.advance(40 * SECOND);
    expect(await story(id)).toEqual(["succeeded 30", "succeeded 60", "succeeded 90"]);
    // The failed one stands for what had come until then.
    expect(await story(orphan.id)).toEqual(["failed 20–40 ×2"]);
    expect(await runs(orphan.id)).toMatchObject([{ error: 'agent "gone" not found', taskId: null }]);
    expect(await schedule(orphan.id)).toMatchObject({
      status: "paused",
      nextFireAt: null,
      lastStatus: "failed",
      runCount: 1,
    });
    const { notifications } = await storage.notifications.read({ after: 0, limit: 1_000 });
    expect(notifications.filter(({ scheduleId }) => scheduleId === orphan.id)).toMatchObject([
      { kind: "run.failed" },
      { kind: "schedule.paused", reason: 'agent "gone" not found' },
    ]);
    expect(asked.filter((agent) => agent === "gone")).toHaveLength(1);
  });
});

describe("a machine that slept for eight hours", () => {
  test.each([
    ["one", ["succeeded 60", "succeeded 120–28860 ×480", "succeeded 28920"]],
    ["none", ["succeeded 60", "missed 120–28800 ×479", "succeeded 28860", "succeeded 28920"]],
  ] as const)("with catch_up %s", async (catchUp, expected) => {
    const { engine, clock, create, story } = await makeScheduler();
    await create({ catchUp });
    await engine.start();
    await clock.advance(MINUTE);
    clock.set(clock.now() + 8 * HOUR);
    await clock.advance(2 * SECOND);
    await clock.advance(MINUTE);
    expect(await story()).toEqual(expected);
  });

  test("with catch_up all, runs the newest hundred one after the other", async () => {
    let atOnce = 0;
    let most = 0;
    const order: number[] = [];
    const { engine, clock, create, runs } = await makeScheduler({
      executor: async ({ taskId }) => {
        most = Math.max(most, ++atOnce);
        order.push((await runs()).find((run) => run.taskId === taskId)?.dueAt ?? 0);
        await settle();
        atOnce -= 1;
      },
    });
    await create({ catchUp: "all", overlap: "allow" });
    await engine.start();
    await clock.advance(MINUTE);
    clock.set(clock.now() + 8 * HOUR + 29 * SECOND);
    await clock.advance(SECOND);
    await until(async () => (await runs()).every(({ status }) => status !== "running"), "all to have run");
    const caughtUp = (await runs()).slice(1);
    expect(caughtUp[0]).toMatchObject({ status: "missed", moments: 380 });
    expect(caughtUp.slice(1).map(({ status }) => status)).toEqual(Array(100).fill("succeeded"));
    expect(order).toHaveLength(1 + 100);
    expect(order).toEqual([...order].sort((a, b) => a - b));
    // One after the other, the one on time included, although `allow` says otherwise.
    expect(most).toBe(1);
  });
});

describe("a clock", () => {
  test("that is set back an hour fires nothing twice, and leaves out nothing", async () => {
    const { engine, clock, anchor, create, story } = await makeScheduler();
    await create({ everyMs: 20 * MINUTE });
    await engine.start();
    await clock.advance(30 * MINUTE);
    clock.set(clock.now() - HOUR);
    await clock.advance(69 * MINUTE);
    expect(await story()).toEqual(["succeeded 1200"]);
    await clock.advance(21 * MINUTE);
    expect(clock.now()).toBe(anchor + HOUR);
    expect(await story()).toEqual(["succeeded 1200", "succeeded 2400", "succeeded 3600"]);
  });

  test("that is set forward and back again starts no run twice, and what only shared a row is due again", async () => {
    const { engine, clock, create, story } = await makeScheduler();
    await create({ everyMs: 20 * MINUTE });
    await engine.start();
    await clock.advance(30 * MINUTE);
    clock.set(clock.now() + HOUR);
    await clock.advance(SECOND);
    expect(await story()).toEqual(["succeeded 1200", "succeeded 2400–4800 ×3"]);
    clock.set(clock.now() - HOUR);
    await clock.advance(SECOND);
    expect(await story()).toEqual(["succeeded 1200", "succeeded 4800"]);
    await clock.advance(69 * MINUTE);
    const expected = ["succeeded 1200", "succeeded 4800", "succeeded 2400", "succeeded 3600"];
    expect(await story()).toEqual(expected);
    await clock.advance(MINUTE);
    expect(await story()).toEqual([...expected, "succeeded 6000"]);
  });
});

describe("a moment that comes while a run still goes", () => {
  test("is skipped, and says why", async () => {
    const { engine, clock, create, runs, schedule } = await makeScheduler({ executor: forEver });
    const { id } = await create();
    await engine.start();
    await clock.advance(2 * MINUTE);
    const [first, second] = await runs();
    expect(first).toMatchObject({ status: "running" });
    expect(second).toMatchObject({ status: "skipped", reason: "the previous run has not ended" });
    expect(await schedule(id)).toMatchObject({ runCount: 1, lastRunId: first?.id, openRuns: 1 });
  });

  test("with overlap queue waits for it, in order", async () => {
    const latches: Latch[] = [];
    const { engine, clock, create, story } = await makeScheduler({
      executor: async () => {
        const latch = new Latch();
        latches.push(latch);
        await latch.opened;
      },
    });
    await create({ overlap: "queue", timeoutMs: HOUR });
    await engine.start();
    await clock.advance(3 * MINUTE);
    expect(latches).toHaveLength(1);
    latches[0]?.open();
    await settle();
    expect(await story()).toEqual(["succeeded 60", "running 120", "running 180"]);
    expect(latches).toHaveLength(2);
    latches[1]?.open();
    await settle();
    expect(await story()).toEqual(["succeeded 60", "succeeded 120", "running 180"]);
  });

  test("with overlap replace takes its place, and the one that runs is stopped", async () => {
    const stopped: string[] = [];
    const { engine, clock, create, runs } = await makeScheduler({
      executor: ({ taskId }, { signal }) =>
        new Promise((_, reject) => {
          signal.addEventListener("abort", () => {
            stopped.push(taskId);
            reject(signal.reason);
          });
        }),
    });
    await create({ overlap: "replace" });
    await engine.start();
    await clock.advance(MINUTE);
    const [first] = await runs();
    await clock.advance(MINUTE);
    expect(stopped).toEqual([first?.taskId]);
    expect(await runs()).toMatchObject([
      { status: "failed", error: "replaced", reason: "replaced" },
      { status: "running" },
    ]);
    expect(engine.running).toBe(1);
    expect(engine.metrics.of("default").snapshot()).toMatchObject({ tasksCancelled: 1 });
  });

  test("with overlap allow runs beside it", async () => {
    const { engine, clock, create } = await makeScheduler({ executor: forEver });
    await create({ overlap: "allow", timeoutMs: HOUR });
    await engine.start();
    await clock.advance(3 * MINUTE);
    expect(engine.running).toBe(3);
  });

  test.each(["queue", "allow"] as const)(
    "with overlap %s is skipped while a hundred wait, and one row says how often",
    async (overlap) => {
      const { engine, clock, create, runs, story, schedule } = await makeScheduler({
        executor: forEver,
        concurrency: { cron: 1 },
      });
      const { id } = await create({ everyMs: SECOND, overlap, timeoutMs: HOUR });
      await engine.start();
      await clock.advance(110 * SECOND);
      const runTexts = await story(id);
      expect(runTexts.slice(0, 101)).toEqual(
        Array.from({ length: 101 }, (_, place) => `running ${place + 1}`),
      );
      expect(runTexts.slice(101)).toEqual(["skipped 102–110 ×9"]);
      expect((await runs(id)).at(-1)?.reason).toBe("too_many_waiting");
      expect(await schedule(id)).toMatchObject({ openRuns: 101, runCount: 101, status: "active" });
      const [outcomes] = engine.runMetrics.metrics();
      const skipped = outcomes?.series.find(({ labels }) => labels["outcome"] === "skipped");
      expect(skipped?.value).toBe(9);
    },
  );

  test("counts what is caught up with among those that wait", async () => {
    const { engine, clock, create, story } = await makeScheduler({
      executor: forEver,
      concurrency: { cron: 1 },
    });
    const { id } = await create({ catchUp: "all", overlap: "skip" });
    await engine.start();
    await clock.advance(MINUTE);
    // It sleeps through an hour and a half twice.
    clock.set(clock.now() + 90 * MINUTE);
    await clock.advance(2 * SECOND);
    expect((await story(id)).filter((run) => run.startsWith("running"))).toHaveLength(91);
    clock.set(clock.now() + 90 * MINUTE);
    await clock.advance(2 * SECOND);
    const all = await story(id);
    expect(all.filter((run) => run.startsWith("running"))).toHaveLength(101);
    expect(all.at(-1)).toMatch(/^skipped .* ×80$/);
  });

  test("is part of the session that its schedule names", async () => {
    const { engine, clock, create, runs, task } = await makeScheduler();
    await create({ overlap: "allow", sessionKey: "user:42", conversationId: "c-7", timeoutMs: 5_000 });
    await engine.start();
    await clock.advance(MINUTE);
    const [run] = await runs();
    expect(await task(run?.taskId ?? "")).toMatchObject({
      session: "user:42",
      spec: { conversationId: "c-7", timeoutMs: 5_000 },
    });
  });
});

describe("a storage", () => {
  test("whose response to a fire was lost has fired once, and the run starts", async () => {
    let lost = 0;
    const { engine, clock, create, story } = await makeScheduler({
      meddler: {
        after: ({ operation }) => {
          if (operation !== "schedules.fire" || lost++ > 0) return;
          throw away();
        },
      },
    });
    await create();
    await engine.start();
    await clock.advance(MINUTE);
    await clock.advance(10 * SECOND);
    expect(lost).toBe(1);
    expect(await story()).toEqual(["succeeded 60"]);
  });

  test.each(["due", "fire", "nextDueAt"])(
    "that is away when a moment comes (%s) and back later loses none",
    async (operation) => {
      let isAway = false;
      const { engine, clock, log, create, story } = await makeScheduler({
        meddler: {
          before: (call) => {
            if (isAway && call.operation === `schedules.${operation}`) throw away();
          },
        },
      });
      await create();
      await engine.start();
      await clock.advance(30 * SECOND);
      isAway = true;
      await clock.advance(3 * MINUTE);
      isAway = false;
      await clock.advance(6 * SECOND);
      // Where only the question after the fire fails, the first moment has fired in time.
      expect(await story()).toEqual(
        operation === "nextDueAt" ? ["succeeded 60", "succeeded 120–180 ×2"] : ["succeeded 60–180 ×3"],
      );
      expect(log.messages("warn")).toHaveLength(1);
    },
  );
});

describe("the id of a run", () => {
  test("is in the log of its fire and of all that its executor logs, and in its task", async () => {
    const { engine, clock, create, runs, log } = await makeScheduler({
      executor: ({ requestId }, context) => {
        context.log.info({}, "working");
        return requestId;
      },
    });
    const { id } = await create();
    await engine.start();
    await clock.advance(MINUTE);
    const [run] = await runs();
    expect(run).toMatchObject({ resultSummary: run?.requestId, requestId: expect.stringMatching(/^req_/) });
    const { requestId, taskId } = run ?? {};
    const lines = log.lines.filter(({ level }) => level === "info");
    expect(lines).toContainEqual({
      level: "info",
      message: "a schedule has fired",
      fields: { tenant: "default", schedule: id, taskId, requestId },
    });
    expect(lines).toContainEqual({
      level: "info",
      message: "working",
      fields: expect.objectContaining({ taskId, requestId }),
    });
  });
});

describe("several nodes", () => {
  test("make no more runs than a schedule may have, and complete it", async () => {
    const clock = new ManualClock();
    const storage = await openMemory(clock);
    const nodes = [];
    for (const node of ["a", "b", "c"]) {
      nodes.push(await makeScheduler({ clock, storage: asSharedStorage(storage), node }));
    }
    const [first] = nodes;
    if (first === undefined) throw new Error("there are three");
    for (let made = 0; made < 10; made++)
      await createSchedule(storage, first.anchor, { everyMs: 10 * SECOND, maxRuns: 4, overlap: "allow" });
    for (const { engine } of nodes) await engine.start();
    await clock.advance(25 * SECOND);
    const asked = nodes.map(({ engine }) =>
      engine.scheduleTicker.runNow({ tenant: "default", id: 1, mode: "force" }),
    );
    expect((await Promise.allSettled(asked)).map(({ status }) => status).sort()).toEqual([
      "fulfilled",
      "fulfilled",
      "rejected",
    ]);
    await clock.advance(MINUTE);
    expect(await first.runs()).toHaveLength(10 * 4);
    for (let id = 1; id <= 10; id++)
      expect(await first.schedule(id)).toMatchObject({ status: "completed", runCount: 4, nextFireAt: null });
  });

  test("fire each moment once, and losing to another is nothing to speak of", async () => {
    const clock = new ManualClock();
    const storage = await openMemory(clock);
    const nodes = [];
    for (const node of ["a", "b", "c"]) {
      nodes.push(await makeScheduler({ clock, storage: asSharedStorage(storage), node }));
    }
    const [first] = nodes;
    if (first === undefined) throw new Error("there are three");
    for (let made = 0; made < 20; made++)
      await createSchedule(storage, first.anchor, { everyMs: 10 * SECOND });
    for (const { engine } of nodes) await engine.start();
    await clock.advance(MINUTE);
    const runs = await first.runs();
    expect(runs).toHaveLength(20 * 6);
    expect(new Set(runs.map(({ scheduleId, dueAt }) => `${scheduleId} ${dueAt}`)).size).toBe(20 * 6);
    for (const { log } of nodes) expect([...log.messages("warn"), ...log.messages("error")]).toEqual([]);
  });

  test("that lose every race do not spin", async () => {
    const clock = new ManualClock();
    const storage = await openMemory(clock);
    let tries = 0;
    const fire = async ({ fires }: { fires: readonly Fire[] }) => {
      tries += 1;
      return fires.map(({ tenant, id }) => ({ tenant, id, fired: false, runs: [], cancelled: [] }));
    };
    const losing = asSharedStorage({ ...storage, schedules: { ...storage.schedules, fire } });
    const { engine } = await makeScheduler({ clock, storage: losing });
    await createSchedule(storage, clock.now());
    await engine.start();
    await clock.advance(MINUTE);
    expect(tries).toBe(1);
    await clock.advance(SECOND);
    expect(tries).toBeGreaterThan(1);
    expect(tries).toBeLessThanOrEqual(201);
  });

  test("that share a storage go by its clock", async () => {
    const clock = new ManualClock();
    const theirs = new ManualClock(clock.now() + 90 * SECOND);
    const storage = await openMemory(theirs);
    const { engine, runs } = await makeScheduler({ clock, storage: asSharedStorage(storage) });
    await createSchedule(storage, theirs.now());
    await engine.start();
    await Promise.all([clock.advance(MINUTE - 1), theirs.advance(MINUTE - 1)]);
    expect(await runs()).toEqual([]);
    await theirs.advance(1);
    await clock.advance(6 * SECOND);
    expect(await runs()).toHaveLength(1);
  });
});

describe("a node that drains", () => {
  test("fires nothing from that moment on", async () => {
    const { engine, clock, create, runs } = await makeScheduler();
    await create();
    await engine.start();
    await clock.advance(MINUTE - 1);
    const drained = engine.drain(0);
    await clock.advance(1);
    await drained;
    expect(await runs()).toEqual([]);
  });

  test("does not fire the schedules that it was just reading", async () => {
    const looking = new Latch();
    const { engine, clock, create, runs } = await makeScheduler({
      meddler: { after: ({ operation }) => (operation === "schedules.due" ? looking.opened : undefined) },
    });
    await create();
    await engine.start();
    await clock.advance(MINUTE);
    const drained = engine.drain(0);
    looking.open();
    await drained;
    expect(await runs()).toEqual([]);
  });

  test("fires nothing before it was started", async () => {
    const { engine, clock, create, runs } = await makeScheduler();
    const { nextFireAt } = await create();
    engine.scheduleTicker.expect(nextFireAt ?? 0);
    await clock.advance(2 * MINUTE);
    expect(await runs()).toEqual([]);
  });
});

test("counts the outcomes of due times, and how late the runs were", async () => {
  const { engine, clock, create } = await makeScheduler({ executor: forEver });
  await create();
  await create({ catchUp: "none", nextFireAt: clock.now() });
  await clock.advance(90 * SECOND);
  await engine.start();
  await clock.advance(30 * SECOND);
  const [runs, lags] = engine.runMetrics.metrics();
  expect(
    Object.fromEntries(runs?.series.map(({ labels, value }) => [labels["outcome"], value]) ?? []),
  ).toEqual({
    fired: 2,
    failed: 0,
    skipped: 2,
    missed: 1,
  });
  const lag = lags?.series[0]?.value;
  expect(typeof lag === "object" ? lag.sumSec : undefined).toBe(30 + 30);
});

describe("schedules of one tenant that are due more often than `maxFiresPerSec`", () => {
  const PER_SEC = 2;
  const MANY = 60;
  const GREEDY = { id: "ten_greedy", name: "greedy", limits: UNBOUNDED };

  async function makeGreedy(params: { hasSecondTenant: boolean }) {
    const made = await makeScheduler({ ...params, maxFiresPerSec: PER_SEC });
    const { engine, storage, clock, create } = made;
    await storage.tenants.create(GREEDY);
    for (let n = 0; n < MANY; n++) await create({ tenant: GREEDY.id, everyMs: SECOND });
    const { id } = await create({ everyMs: 3 * SECOND });
    await engine.start();
    const fired = async () => {
      const { runs } = await storage.schedules.listRuns({ tenant: GREEDY.id, limit: 1_000 });
      return runs.filter(({ taskId }) => taskId !== null).length;
    };
    return { ...made, id, clock, fired };
  }

  test("fire late, and those of others on time", async () => {
    const { clock, anchor, runs, id, fired, log } = await makeGreedy({ hasSecondTenant: true });
    for (let sec = 0; sec < 12; sec++) await clock.advance(SECOND);
    expect(await fired()).toBeLessThanOrEqual(10 * PER_SEC + 12 * PER_SEC);
    expect(await fired()).toBeGreaterThanOrEqual(10 * PER_SEC + 10 * PER_SEC);
    const late = (await runs(id)).map(({ startedAt, dueAt }) => [
      (dueAt - anchor) / SECOND,
      (startedAt ?? 0) - dueAt,
    ]);
    expect(late.map(([at]) => at)).toEqual([3, 6, 9, 12]);
    for (const [, ms] of late) expect(ms).toBeLessThanOrEqual(25);
    expect(log.messages("warn")).toEqual([expect.stringContaining("`tenants.maxFiresPerSec`")]);
  });

  test("fire on time while there is no second tenant", async () => {
    const { clock, fired } = await makeGreedy({ hasSecondTenant: false });
    for (let sec = 0; sec < 3; sec++) await clock.advance(SECOND);
    expect(await fired()).toBe(3 * MANY);
  });
});
