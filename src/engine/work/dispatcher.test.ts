import { describe, expect, test } from "vitest";
import { makeEngine, manyTasks, newTask, ROOMY } from "../../../test/support/engine.ts";
import { asSharedStorage, away, openMemory } from "../../../test/support/storages.ts";
import { NoExecutorError } from "../../executors/errors.ts";
import type { Executor } from "../../executors/executor.ts";
import type { FinishAndClaimParams, FinishedAndClaimed } from "../../storage/storage.ts";
import { ManualClock, settle } from "../../testing/manual-clock.ts";
import { Latch } from "../../testing/signals.ts";

describe("the dispatcher", () => {
  test("writes down what ended and claims what starts in one exchange", async () => {
    const { engine, exchanges, states } = await makeEngine();
    await engine.intake.addMany(manyTasks(12));
    await engine.start();
    await settle();
    expect(await states()).toEqual({ done: 12 });
    const tenant = newTask().tenant;
    const claim = (left: [string, number][]) => ({
      lane: "tasks",
      limit: 4,
      perTenant: { max: 3, left: new Map(left) },
      wakes: expect.any(Number),
      reservations: expect.any(Number),
    });
    // What ends in the same exchange leaves its tenant all of its share.
    expect(exchanges.map(({ finishes, claims }) => [finishes.length, claims])).toEqual([
      [0, [claim([])]],
      [4, [claim([[tenant, 3]])]],
      [4, [claim([[tenant, 3]])]],
      [4, [claim([[tenant, 3]])]],
    ]);
  });

  test("passes on a bound by memory only if it claims more: such an exchange is a step of its own", async () => {
    const bounds = async (maxRunningBytes: number) => {
      const { engine, exchanges } = await makeEngine({ maxRunningBytes });
      await engine.intake.addMany(manyTasks(12));
      await engine.start();
      await settle();
      return [...new Set(exchanges.map(({ claimsMax }) => claimsMax))];
    };
    expect(await bounds(256 * 1024 * 1024)).toEqual([undefined]);
    expect(await bounds(2 * 1024 * 1024)).toContain(2);
  });

  test("never runs more than its slots", async () => {
    let running = 0;
    let most = 0;
    const latches: Latch[] = [];
    const { engine, states } = await makeEngine({
      concurrency: { tasks: 3 },
      executor: async () => {
        most = Math.max(most, ++running);
        const latch = new Latch();
        latches.push(latch);
        await latch.opened;
        running -= 1;
      },
    });
    await engine.start();
    await engine.intake.addMany(manyTasks(10));
    for (let ended = 0; ended < 10; ended++) {
      await settle();
      latches[ended]?.open();
    }
    await settle();
    expect(most).toBe(3);
    expect(await states()).toEqual({ done: 10 });
  });

  test("sends ends again that a crash of the database may have lost, and counts their slots once", async () => {
    const clock = new ManualClock();
    const memory = await openMemory(clock);
    let lost = 0;
    const finishAndClaim = async (params: FinishAndClaimParams): Promise<FinishedAndClaimed> => {
      const { finishes } = params;
      if (finishes.length === 0 || lost >= 2) return memory.tasks.finishAndClaim(params);
      lost += 1;
      const answer = await memory.tasks.finishAndClaim({ ...params, finishes: [] });
      const finished = finishes.map(({ token, settlement }) => ({ token, state: settlement.to }));
      return { ...answer, finished, durable: Promise.reject(away()) };
    };
    const storage = { ...memory, tasks: { ...memory.tasks, finishAndClaim } };
    let running = 0;
    let most = 0;
    const ran = new Map<string, number>();
    const executor: Executor = async (task) => {
      ran.set(task.taskId, (ran.get(task.taskId) ?? 0) + 1);
      most = Math.max(most, ++running);
      await new Promise<void>((resolve) => setImmediate(resolve));
      running -= 1;
    };
    const { engine, states } = await makeEngine({ clock, storage, executor, concurrency: { tasks: 3 } });
    await engine.intake.addMany(manyTasks(10));
    await engine.start();
    await settle();
    await clock.advance(1_000);
    expect(await states()).toEqual({ done: 10 });
    expect({ lost, most }).toEqual({ lost: 2, most: 3 });
    expect([...ran.values()]).toEqual(Array(10).fill(1));
  });

  test("does not take an attempt for lost while its end may still be written again", async () => {
    const clock = new ManualClock();
    const memory = asSharedStorage(await openMemory(clock));
    let fail = (_error: unknown) => {};
    let lost = 0;
    const finishAndClaim = async (params: FinishAndClaimParams): Promise<FinishedAndClaimed> => {
      const { finishes } = params;
      if (finishes.length === 0 || lost > 0) return memory.tasks.finishAndClaim(params);
      lost += 1;
      const answer = await memory.tasks.finishAndClaim({ ...params, finishes: [] });
      const finished = finishes.map(({ token, settlement }) => ({ token, state: settlement.to }));
      const durable = new Promise<void>((_resolve, reject) => {
        fail = reject;
      });
      return { ...answer, finished, durable };
    };
    const storage = { ...memory, tasks: { ...memory.tasks, finishAndClaim } };
    let ran = 0;
    const executor: Executor = () => {
      ran += 1;
    };
    const { engine, states } = await makeEngine({ clock, storage, executor });
    await engine.intake.addMany(manyTasks(1));
    await engine.start();
    // The flush hangs on a dead connection, while the lease is renewed on another one.
    await clock.advance(18_000);
    fail(away());
    await clock.advance(5_000);
    expect({ ran, states: await states() }).toEqual({ ran: 1, states: { done: 1 } });
  });

  test("stops although the database never confirms that it keeps the ends", async () => {
    const clock = new ManualClock();
    const memory = await openMemory(clock);
    let exchanged = 0;
    const finishAndClaim = async (params: FinishAndClaimParams): Promise<FinishedAndClaimed> => {
      exchanged += 1;
      if (exchanged > 100) throw away();
      const answer = await memory.tasks.finishAndClaim(params);
      return params.finishes.length === 0 ? answer : { ...answer, durable: Promise.reject(away()) };
    };
    const storage = { ...memory, tasks: { ...memory.tasks, finishAndClaim } };
    const latch = new Latch();
    const { engine } = await makeEngine({ clock, storage, executor: () => latch.opened });
    await engine.intake.addMany(manyTasks(1));
    await engine.start();
    await settle();
    const drained = engine.drain(0);
    await clock.advance(10_000);
    await drained;
    expect(exchanged).toBeLessThan(20);
  });

  test("leaves connections to others while the disk is slow", async () => {
    const clock = new ManualClock();
    const memory = await openMemory(clock);
    const flushes: (() => void)[] = [];
    const finishAndClaim = async (params: FinishAndClaimParams): Promise<FinishedAndClaimed> => {
      const answer = await memory.tasks.finishAndClaim(params);
      if (params.finishes.length === 0) return answer;
      return { ...answer, durable: new Promise<void>((resolve) => flushes.push(resolve)) };
    };
    const storage = { ...memory, tasks: { ...memory.tasks, finishAndClaim } };
    const { engine, states } = await makeEngine({ clock, storage, concurrency: { tasks: 1 } });
    await engine.intake.addMany(manyTasks(10));
    await engine.start();
    await settle();
    expect(flushes).toHaveLength(3);
    flushes.shift()?.();
    await settle();
    expect(flushes).toHaveLength(3);
    for (let left = 9; left > 0; left -= 1) {
      flushes.shift()?.();
      await settle();
    }
    expect(await states()).toEqual({ done: 10 });
  });

  test("asks nothing of the storage while nothing happens, but for a slow poll", async () => {
    const { engine, clock, exchanges } = await makeEngine();
    await engine.start();
    await settle();
    const before = exchanges.length;
    await clock.advance(60_000);
    expect(exchanges.length - before).toBeLessThanOrEqual(13);
  });

  test("does not claim a task again and again that it cannot execute, and registers its abilities again", async () => {
    const operations: string[] = [];
    let isKnown = false;
    const { engine, clock, exchanges, states } = await makeEngine({
      concurrency: { tasks: 4, main: 4 },
      executor: (task) => {
        if (task.lane === "tasks" && !isKnown) throw new NoExecutorError(task.agentId);
      },
      meddler: { before: ({ operation }) => void operations.push(operation) },
    });
    await engine.start();
    await engine.intake.addMany([newTask({ lane: "tasks" }), newTask({ lane: "tasks" })]);
    await clock.advance(10_000);
    expect(await states()).toEqual({ queued: 2 });
    expect(exchanges.length).toBeLessThan(60);
    expect(operations).toContain("nodes.setAbilities");
    await engine.intake.addMany([newTask({ lane: "main" })]);
    await settle();
    expect(await states()).toEqual({ queued: 2, done: 1 });
    isKnown = true;
    await clock.advance(1_000);
    expect(await states()).toEqual({ done: 3 });
  });

  test("finds work without a notification within the poll", async () => {
    const { engine, clock, storage, states } = await makeEngine();
    await engine.start();
    await settle();
    // The engine gets no signals of the storage in this test.
    await storage.tasks.insert({ tasks: manyTasks(1), limits: ROOMY });
    await clock.advance(5_000);
    expect(await states()).toEqual({ done: 1 });
  });

  test("serves a lane whose own slots are full no more than it may, and others meanwhile", async () => {
    const { engine, states } = await makeEngine({
      concurrency: { tasks: 1, main: 1 },
      executor: (task) => (task.lane === "tasks" ? new Promise(() => {}) : null),
    });
    await engine.start();
    await engine.intake.addMany([...manyTasks(3), newTask({ lane: "main" }), newTask({ lane: "main" })]);
    await settle();
    expect(await states()).toEqual({ done: 2, running: 1, queued: 2 });
  });

  test("an end of an agent with a limit over all lanes wakes all lanes", async () => {
    const latch = new Latch();
    const { engine, storage, states } = await makeEngine({
      concurrency: { tasks: 1, main: 1 },
      executor: (task) => (task.lane === "tasks" ? latch.opened : null),
    });
    await storage.agents.configure({ tenant: "default", agent: "spanning", maxInflight: 1 });
    await engine.start();
    await engine.intake.add(newTask({ agent: "spanning" }));
    await settle();
    await engine.intake.add(newTask({ agent: "spanning", lane: "main" }));
    await settle();
    expect(await states()).toEqual({ running: 1, queued: 1 });
    latch.open();
    await settle();
    expect(await states()).toEqual({ done: 2 });
  });

  test("an end in a batch that runs one at a time starts the next, in whatever lane it is", async () => {
    const started: string[] = [];
    const { engine, states } = await makeEngine({
      concurrency: { tasks: 2, main: 2 },
      getsSignals: true,
      executor: ({ taskId }) => void started.push(taskId),
    });
    await engine.start();
    await settle();
    const batch = { id: "b", tenant: "default", parallelism: 1, callbackUrl: null };
    const tasks = ["tasks", "main", "main", "tasks", "main"].map((lane, place) =>
      newTask({ id: `t${place}`, lane, agent: lane, batch: batch.id }),
    );
    // The clock stands still: no service polls.
    await engine.intake.addMany(tasks, batch);
    await settle();
    expect(started).toEqual(["t0", "t1", "t2", "t3", "t4"]);
    expect(await states()).toEqual({ done: 5 });
  });

  test("no exchange carries more than two hundred ends", async () => {
    const { engine, exchanges, states } = await makeEngine({ concurrency: { tasks: 450 } });
    await engine.intake.addMany(manyTasks(450));
    await engine.start();
    await settle();
    expect(await states()).toEqual({ done: 450 });
    expect(exchanges.map(({ finishes }) => finishes.length).filter((count) => count > 0)).toEqual([
      200, 200, 50,
    ]);
  });
});

describe("when the storage is away", () => {
  test("nothing that ended is lost, and the log says so once", async () => {
    let broken = false;
    let runs = 0;
    const { engine, clock, log, states } = await makeEngine({
      executor: () => {
        runs += 1;
        broken = true;
      },
      meddler: {
        before: ({ operation }) => {
          if (broken && operation === "tasks.finishAndClaim") throw away();
        },
      },
    });
    await engine.start();
    await engine.intake.addMany(manyTasks(6));
    await clock.advance(60_000);
    expect(runs).toBe(4);
    expect(await states()).toEqual({ running: 4, queued: 2 });
    expect(log.messages().filter((message) => message.includes("does not respond"))).toHaveLength(1);

    broken = false;
    await clock.advance(5_000);
    broken = false;
    await clock.advance(5_000);
    expect(await states()).toEqual({ done: 6 });
    expect(runs).toBe(6);
  });

  test("an end whose response was lost is written once, and its task does not run again", async () => {
    let lose = true;
    let runs = 0;
    const { engine, clock, storage, states } = await makeEngine({
      executor: () => {
        runs += 1;
      },
      meddler: {
        after: ({ operation, params }) => {
          if (operation !== "tasks.finishAndClaim" || params.finishes.length === 0 || !lose) return;
          lose = false;
          throw away();
        },
      },
    });
    await engine.start();
    await engine.intake.add(newTask({ id: "once" }));
    await clock.advance(1_000);
    expect(runs).toBe(1);
    expect(await states()).toEqual({ done: 1 });
    const task = await storage.tasks.get({ tenant: "default", id: "once" });
    expect(task?.attempts).toHaveLength(1);
  });

  test("now and then, everything still ends exactly once", async () => {
    let calls = 0;
    let runs = 0;
    const { engine, clock, states } = await makeEngine({
      executor: () => {
        runs += 1;
      },
      meddler: {
        before: () => {
          calls += 1;
          if (calls % 3 === 0) throw away();
        },
      },
    });
    const starting = engine.start().catch(() => engine.start());
    await clock.advance(100);
    await starting;
    const added = engine.intake.addMany(manyTasks(100));
    await clock.advance(60_000);
    await added;
    expect(runs).toBe(100);
    expect(await states()).toEqual({ done: 100 });
  });
});

test("an end that cannot be stored holds up no other, and fails in the end", async () => {
  const { engine, clock, task, states } = await makeEngine({
    executor: ({ payload }) => payload,
    meddler: {
      before: ({ operation, params }) => {
        if (operation !== "tasks.finishAndClaim") return;
        const { finishes } = params as FinishAndClaimParams;
        if (finishes.some(({ settlement }) => settlement.to === "done" && settlement.result === "poison")) {
          throw new Error("no room for this");
        }
      },
    },
  });
  await engine.start();
  await engine.intake.addMany([newTask(), newTask({ id: "poisoned", payload: "poison" }), ...manyTasks(10)]);
  await clock.advance(30_000);
  expect(await states()).toEqual({ done: 11, failed: 1 });
  expect((await task("poisoned")).error).toBe("its end could not be stored: no room for this");
});
