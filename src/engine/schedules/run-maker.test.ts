import { describe, expect, test } from "vitest";
import { RecordingLog } from "../../../test/support/recording-log.ts";
import {
  createSchedule,
  HOUR,
  MINUTE,
  makeScheduler,
  type ScheduleOverrides,
  SECOND,
} from "../../../test/support/schedules.ts";
import { away, openMemory } from "../../../test/support/storages.ts";
import { RunMetrics } from "../../metrics/run-metrics.ts";
import { StorageClock } from "../../services/storage-clock.ts";
import { ManualClock, settle } from "../../testing/manual-clock.ts";
import { RunMaker } from "./run-maker.ts";

const forEver = () => new Promise(() => {});
const tenant = "default";

describe("a run that a caller requests", () => {
  test("is made at once, out of turn, and changes nothing about the next moment", async () => {
    const { engine, clock, anchor, create, runs, schedule } = await makeScheduler({ executor: () => "hi" });
    const { id } = await create();
    await engine.start();
    await clock.advance(20 * SECOND);
    const answer = await engine.scheduleTicker.runNow({ tenant, id, mode: "force" });
    await settle();
    expect(await runs()).toMatchObject([
      { status: "succeeded", forced: true, dueAt: anchor + 20 * SECOND, moments: 1, resultSummary: "hi" },
    ]);
    const [run] = await runs();
    expect(answer).toEqual({ ran: true, runId: run?.id });
    expect(await schedule(id)).toMatchObject({ nextFireAt: anchor + MINUTE, runCount: 1, status: "active" });
    await clock.advance(40 * SECOND);
    expect(await runs()).toHaveLength(2);
  });

  test("is made before this process runs anything, and waits for that", async () => {
    const { engine, create, runs } = await makeScheduler();
    const { id } = await create();
    expect(await engine.scheduleTicker.runNow({ tenant, id, mode: "force" })).toMatchObject({ ran: true });
    expect(await runs()).toMatchObject([{ status: "running", attempt: 0 }]);
    await engine.start();
    await settle();
    expect(await runs()).toMatchObject([{ status: "succeeded" }]);
  });

  test("is not made while one goes and overlap is skip, and leaves no row then", async () => {
    const { engine, create, runs } = await makeScheduler({ executor: forEver });
    const { id } = await create();
    await engine.scheduleTicker.runNow({ tenant, id, mode: "force" });
    const answer = await engine.scheduleTicker.runNow({ tenant, id, mode: "force" });
    expect(answer).toEqual({ ran: false, reason: "already-running" });
    expect(await runs()).toHaveLength(1);
  });

  test("is not made while a hundred wait, and leaves no row; one that is due then is skipped", async () => {
    const { engine, clock, create, runs } = await makeScheduler({ executor: forEver });
    const { id } = await create({ overlap: "allow" });
    for (let made = 0; made < 100; made++) await engine.scheduleTicker.runNow({ tenant, id, mode: "force" });
    const refused = { ran: false, reason: "too_many_waiting" };
    expect(await engine.scheduleTicker.runNow({ tenant, id, mode: "force" })).toEqual(refused);
    expect(await runs()).toHaveLength(100);
    await clock.advance(MINUTE);
    expect(await engine.scheduleTicker.runNow({ tenant, id, mode: "due" })).toEqual(refused);
    expect((await runs()).at(-1)).toMatchObject({ status: "skipped", reason: "too_many_waiting" });
  });

  test.each([
    ["queue", ["running", "running"]],
    ["allow", ["running", "running"]],
    ["replace", ["failed", "running"]],
  ] as const)("while one goes and overlap is %s: %s", async (overlap, expected) => {
    const { engine, create, runs } = await makeScheduler({ executor: forEver });
    const { id } = await create({ overlap });
    await engine.start();
    await engine.scheduleTicker.runNow({ tenant, id, mode: "force" });
    await settle();
    expect(await engine.scheduleTicker.runNow({ tenant, id, mode: "force" })).toMatchObject({ ran: true });
    await settle();
    expect((await runs()).map(({ status }) => status)).toEqual(expected);
    expect(engine.running).toBe(overlap === "allow" ? 2 : 1);
  });

  test("runs a schedule that is paused, which stays so", async () => {
    const { engine, create, runs, schedule, storage } = await makeScheduler();
    const { id, revision } = await create();
    await storage.schedules.update({ tenant, id, revision, changes: { status: "paused", nextFireAt: null } });
    await engine.start();
    expect(await engine.scheduleTicker.runNow({ tenant, id, mode: "force" })).toMatchObject({ ran: true });
    await settle();
    expect(await runs()).toMatchObject([{ status: "succeeded" }]);
    expect(await schedule(id)).toMatchObject({ status: "paused", nextFireAt: null });
  });

  test("runs one that was due once and is over", async () => {
    const { engine, clock, anchor, create, runs, schedule } = await makeScheduler();
    const rule = { kind: "once", atMs: anchor + MINUTE, phrase: "in 1 minute", tz: "UTC" } as const;
    const { id } = await create({ rule });
    await engine.start();
    await clock.advance(2 * MINUTE);
    expect(await schedule(id)).toMatchObject({ status: "completed" });
    expect(await engine.scheduleTicker.runNow({ tenant, id, mode: "force" })).toMatchObject({ ran: true });
    await settle();
    expect(await runs()).toHaveLength(2);
    expect(await schedule(id)).toMatchObject({ status: "completed", runCount: 2 });
  });

  test("of an agent that is gone fails, and pauses a schedule that would fire by itself", async () => {
    const { engine, create, runs, schedule } = await makeScheduler({ hasAgent: () => false });
    const { id } = await create({ agent: "gone" });
    const answer = await engine.scheduleTicker.runNow({ tenant, id, mode: "force" });
    expect(await runs()).toMatchObject([
      { status: "failed", forced: true, error: 'agent "gone" not found', taskId: null },
    ]);
    expect(answer).toEqual({ ran: true, runId: (await runs())[0]?.id });
    expect(await schedule(id)).toMatchObject({ status: "paused" });
  });

  test("of a schedule that is not there, or is another tenant's, is nothing", async () => {
    const { engine, create } = await makeScheduler();
    const { id } = await create({ tenant: "other" });
    expect(await engine.scheduleTicker.runNow({ tenant, id, mode: "force" })).toBeNull();
    expect(await engine.scheduleTicker.runNow({ tenant, id: 4_711, mode: "due" })).toBeNull();
  });

  test("is made although the schedule changes meanwhile, from what it is then", async () => {
    let changes = 3;
    const { engine, create, runs, schedule, storage } = await makeScheduler({
      meddler: {
        before: async ({ operation }) => {
          if (operation !== "schedules.fire" || changes === 0) return;
          changes -= 1;
          const { id, revision } = await schedule(1);
          const work = { kind: "message", message: `as said ${3 - changes} times` } as const;
          await storage.schedules.update({ tenant, id, revision, changes: { work } });
        },
      },
    });
    const { id } = await create();
    expect(await engine.scheduleTicker.runNow({ tenant, id, mode: "force" })).toMatchObject({ ran: true });
    const [run] = await runs();
    const task = await storage.tasks.get({ tenant, id: run?.taskId ?? "" });
    expect(task?.spec.work).toMatchObject({ message: "as said 3 times" });
    expect(await runs()).toHaveLength(1);
  });

  test("of a schedule that never stops changing is refused in the end", async () => {
    const { engine, create, runs, schedule, storage } = await makeScheduler({
      meddler: {
        before: async ({ operation }) => {
          if (operation !== "schedules.fire") return;
          const { id, revision } = await schedule(1);
          await storage.schedules.update({ tenant, id, revision, changes: { name: "again" } });
        },
      },
    });
    const { id } = await create();
    await expect(engine.scheduleTicker.runNow({ tenant, id, mode: "force" })).rejects.toMatchObject({
      code: "conflict",
    });
    expect(await runs()).toEqual([]);
  });

  test("returns an error to the caller while the storage is unavailable", async () => {
    const { engine, create, schedule } = await makeScheduler({
      meddler: {
        before: ({ operation }) => {
          if (operation === "schedules.fire") throw away();
        },
      },
    });
    const { id } = await create();
    await expect(engine.scheduleTicker.runNow({ tenant, id, mode: "force" })).rejects.toMatchObject({
      code: "storage_unavailable",
    });
    expect(await schedule(id)).toMatchObject({ status: "active" });
  });
});

describe("what is due, when a caller requests it,", () => {
  test("is not there before its moment", async () => {
    const { engine, clock, create, runs } = await makeScheduler();
    const { id } = await create();
    await clock.advance(MINUTE - 1);
    expect(await engine.scheduleTicker.runNow({ tenant, id, mode: "due" })).toEqual({
      ran: false,
      reason: "not-due",
    });
    expect(await runs()).toEqual([]);
  });

  test("fires as it would by itself, once", async () => {
    const { engine, clock, anchor, create, story, schedule, runs } = await makeScheduler();
    const { id } = await create();
    await clock.advance(HOUR);
    const answer = await engine.scheduleTicker.runNow({ tenant, id, mode: "due" });
    expect(await story()).toEqual(["running 60–3600 ×60"]);
    expect(answer).toEqual({ ran: true, runId: (await runs())[0]?.id });
    expect(await schedule(id)).toMatchObject({ nextFireAt: anchor + HOUR + MINUTE });
    expect(await engine.scheduleTicker.runNow({ tenant, id, mode: "due" })).toEqual({
      ran: false,
      reason: "not-due",
    });
  });

  test("is skipped while a run goes, and leaves its row", async () => {
    const { engine, clock, create, runs } = await makeScheduler();
    const { id } = await create();
    await engine.scheduleTicker.runNow({ tenant, id, mode: "force" });
    await clock.advance(MINUTE);
    const answer = await engine.scheduleTicker.runNow({ tenant, id, mode: "due" });
    expect(answer).toEqual({ ran: false, reason: "already-running" });
    expect((await runs()).map(({ status }) => status)).toEqual(["running", "skipped"]);
  });

  test("and has been missed does not run", async () => {
    const { engine, clock, create, story } = await makeScheduler();
    const { id } = await create({ catchUp: "none", everyMs: HOUR });
    await clock.advance(HOUR + 2 * MINUTE);
    expect(await engine.scheduleTicker.runNow({ tenant, id, mode: "due" })).toEqual({
      ran: false,
      reason: "not-due",
    });
    expect(await story()).toEqual(["missed 3600"]);
  });
});

describe("a turn", () => {
  /** A clock that moves on by this much each time it is read. */
  async function makeMaker(lookMs: number) {
    const clock = new ManualClock();
    const storage = await openMemory(clock);
    let monotonic = 0;
    const maker = new RunMaker({
      storage,
      storageClock: new StorageClock({ clock, storage }),
      metrics: new RunMetrics(),
      monotonic: () => (monotonic += lookMs),
      log: new RecordingLog(),
      newTaskId: () => `tsk_${monotonic}`,
      newRequestId: () => "req_1",
      defaults: () => ({ timeoutMs: 1_000, sessionMaxConcurrent: 1, hasLane: () => true }),
      hasAgent: () => true,
      isDisabled: async () => false,
      isFull: async () => false,
      onInserted: () => {},
      onCancelled: () => {},
    });
    const create = (overrides: ScheduleOverrides) => createSchedule(storage, clock.now(), overrides);
    return { clock, maker, storage, create };
  }

  test("ends when there was enough to work out, but not before there was something", async () => {
    const { clock, maker, storage, create } = await makeMaker(15);
    for (let made = 0; made < 5; made++) await create({});
    await clock.advance(MINUTE);
    expect(await maker.plan(await storage.schedules.due({ limit: 100 }))).toHaveLength(2);
    const slow = await makeMaker(1_000);
    await slow.create({});
    await slow.create({});
    await slow.clock.advance(MINUTE);
    expect(await slow.maker.plan(await slow.storage.schedules.due({ limit: 100 }))).toHaveLength(1);
  });

  test("ends before there are more rows than one transaction should write", async () => {
    const { clock, maker, storage, create } = await makeMaker(0);
    for (let made = 0; made < 10; made++) await create({ catchUp: "all" });
    await clock.advance(3 * HOUR);
    const fires = await maker.plan(await storage.schedules.due({ limit: 100 }));
    expect(fires.map(({ runs }) => runs.length)).toEqual([101]);
  });
});

describe("the session of a run", () => {
  const keyOf = async (overrides: ScheduleOverrides) => {
    const { engine, create, storage } = await makeScheduler();
    const { id } = await create(overrides);
    await engine.scheduleTicker.runNow({ tenant, id, mode: "force" });
    const { tasks } = await storage.tasks.list({ tenant, limit: 1 });
    return { id, task: tasks[0]?.id, key: tasks[0]?.session };
  };

  test("is its schedule's own, for one at a time", async () => {
    const { id, key } = await keyOf({ overlap: "queue" });
    expect(key).toBe(`schedule:${id}`);
  });

  test("is its own where runs may go side by side", async () => {
    const { id, task, key } = await keyOf({ overlap: "allow" });
    expect(key).toBe(`schedule:${id}:${task}`);
  });

  test("is the one that its schedule names", async () => {
    const { key } = await keyOf({ overlap: "allow", sessionKey: "user:42" });
    expect(key).toBe("user:42");
  });
});
