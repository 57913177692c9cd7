import { describe, expect, test } from "vitest";
import { makeEngine, manyTasks, newTask, ROOMY } from "../../../test/support/engine.ts";
import { settle } from "../../testing/manual-clock.ts";

describe("delayed tasks", () => {
  test("start at their moment, to the millisecond, without a poll", async () => {
    const { engine, clock, states } = await makeEngine();
    await engine.start();
    await engine.intake.add(newTask({ runAt: clock.now() + 1_234 }));
    await clock.advance(1_233);
    expect(await states()).toEqual({ delayed: 1 });
    await clock.advance(1);
    expect(await states()).toEqual({ done: 1 });
  });

  test("of which this node was not notified start at their due time, too", async () => {
    const { engine, clock, storage, states } = await makeEngine();
    await engine.start();
    await settle();
    await storage.tasks.insert({ tasks: [newTask({ runAt: clock.now() + 7_000 })], limits: ROOMY });
    await clock.advance(7_000);
    expect(await states()).toEqual({ done: 1 });
  });

  test("due in a storm move in slices, and all of them", async () => {
    const { engine, clock, states } = await makeEngine({ concurrency: { tasks: 200 } });
    const runAt = clock.now() + 60_000;
    await engine.intake.addMany(manyTasks(1_300).map((task) => ({ ...task, runAt })));
    await clock.advance(3_600_000);
    await engine.start();
    await clock.advance(100);
    expect(await states()).toEqual({ done: 1_300 });
  });

  test("start soon after a clock that was set forward past their moment", async () => {
    const { engine, clock, states } = await makeEngine();
    await engine.start();
    await engine.intake.add(newTask({ runAt: clock.now() + 3_600_000 }));
    await settle();
    clock.set(clock.now() + 7_200_000);
    await clock.advance(5_000);
    expect(await states()).toEqual({ done: 1 });
  });

  test("wait on when the clock is set back, and start when it gets there", async () => {
    const { engine, clock, states } = await makeEngine();
    await engine.start();
    const runAt = clock.now() + 10_000;
    await engine.intake.add(newTask({ runAt }));
    await settle();
    clock.set(clock.now() - 60_000);
    await clock.advance(69_999);
    expect(await states()).toEqual({ delayed: 1 });
    await clock.advance(1);
    expect(await states()).toEqual({ done: 1 });
  });
});

describe("a task that waits beyond its deadline", () => {
  test("fails at that moment, without a slot for it", async () => {
    const { engine, clock, task, states } = await makeEngine({ executor: () => new Promise(() => {}) });
    await engine.start();
    await engine.intake.addMany(manyTasks(4));
    await engine.intake.add(newTask({ id: "late", deadline: clock.now() + 2_000 }));
    await clock.advance(1_999);
    expect((await task("late")).state).toBe("queued");
    await clock.advance(1);
    expect(await task("late")).toMatchObject({ state: "failed", error: "deadline exceeded while queued" });
    expect(await states()).toEqual({ running: 4, failed: 1 });
    expect(engine.metrics.of("default").snapshot()).toMatchObject({ tasksFailed: 1, tasksExpired: 1 });
  });

  test("fails at that moment while its node drains, which starts nothing", async () => {
    const { engine, clock, task, states } = await makeEngine({ executor: () => new Promise(() => {}) });
    await engine.start();
    await engine.intake.addMany(manyTasks(4));
    await engine.intake.add(newTask({ id: "late", deadline: clock.now() + 2_000 }));
    await engine.intake.add(newTask({ id: "due", runAt: clock.now() + 1_000 }));
    await settle();
    const drained = engine.drain(10_000);
    await clock.advance(1_999);
    expect((await task("late")).state).toBe("queued");
    await clock.advance(1);
    expect(await task("late")).toMatchObject({ state: "failed", error: "deadline exceeded while queued" });
    expect(await states()).toEqual({ running: 4, failed: 1, queued: 1 });
    await clock.advance(8_000);
    await drained;
    expect((await task("due")).startedAt).toBeNull();
  });

  test("is counted for its tenant", async () => {
    const { engine, clock } = await makeEngine({ executor: () => new Promise(() => {}) });
    await engine.start();
    await engine.intake.addMany(manyTasks(4));
    const deadline = clock.now() + 2_000;
    await engine.intake.addMany(["acme", "acme", "default"].map((tenant) => newTask({ tenant, deadline })));
    await clock.advance(2_000);
    const { metrics } = engine;
    expect(metrics.of("acme").snapshot()).toMatchObject({ tasksFailed: 2, tasksExpired: 2 });
    expect(metrics.of("default").snapshot()).toMatchObject({ tasksFailed: 1, tasksExpired: 1 });
  });

  test("counts its waiting neither as running nor against its timeout", async () => {
    const { engine, clock, task } = await makeEngine({
      concurrency: { tasks: 1 },
      executor: ({ payload }) => payload,
    });
    await engine.intake.add(newTask({ id: "patient", timeoutMs: 1_000, payload: 1 }));
    await clock.advance(60_000);
    await engine.start();
    await settle();
    expect(await task("patient")).toMatchObject({ state: "done", result: 1 });
  });
});

describe("a retry", () => {
  test("waits in the storage, not in a timer of this process, and starts at its moment", async () => {
    let runs = 0;
    const { engine, clock, task } = await makeEngine({
      executor: () => {
        if (++runs < 3) throw new Error("not yet");
      },
    });
    await engine.start();
    await engine.intake.add(newTask({ id: "again" }));
    await settle();
    expect(await task("again")).toMatchObject({
      state: "delayed",
      retryCount: 1,
      runAt: clock.now() + 1_000,
    });
    await clock.advance(999);
    expect(runs).toBe(1);
    await clock.advance(1);
    expect(runs).toBe(2);
    await clock.advance(2_000);
    expect(await task("again")).toMatchObject({ state: "done", retryCount: 2 });
  });

  test("that would start after the deadline is not made", async () => {
    const { engine, clock, task } = await makeEngine({ executor: () => Promise.reject(new Error("no")) });
    await engine.start();
    await engine.intake.add(newTask({ id: "hopeless", deadline: clock.now() + 500 }));
    await settle();
    expect(await task("hopeless")).toMatchObject({ state: "failed", error: "no", retryCount: 0 });
  });
});
