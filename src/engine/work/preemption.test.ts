import { describe, expect, test } from "vitest";
import { type EngineParams, makeEngine, newTask } from "../../../test/support/engine.ts";
import { asSharedStorage, openMemory } from "../../../test/support/storages.ts";
import type { Executor, ExecutorContext } from "../../executors/executor.ts";
import type { StorageSignal } from "../../storage/storage.ts";
import { ManualClock, settle } from "../../testing/manual-clock.ts";
import { Latch } from "../../testing/signals.ts";

/** An attempt of a task, which ends when its latch is opened. */
interface StartedAttempt {
  readonly id: string;
  readonly context: ExecutorContext;
  readonly signal: AbortSignal;
  readonly latch: Latch<unknown>;
}

function makeRuns(): { executor: Executor; runs: StartedAttempt[]; of: (id: string) => StartedAttempt[] } {
  const runs: StartedAttempt[] = [];
  const executor: Executor = ({ taskId: id }, context) => {
    const latch = new Latch<unknown>();
    runs.push({ id, context, signal: context.signal, latch });
    return latch.opened;
  };
  return { executor, runs, of: (id) => runs.filter((run) => run.id === id) };
}

async function makeBusy(params: EngineParams = {}) {
  const made = makeRuns();
  const { executor } = made;
  return {
    ...made,
    ...(await makeEngine({ executor, concurrency: { tasks: 1 }, getsSignals: true, ...params })),
  };
}

const yielding = (id: string) => newTask({ id, preemptible: true });
const critical = (id: string) => newTask({ id, agent: "urgent", priority: 0 });

describe("an attempt that has to give way to a critical task", () => {
  test("gets the reason, and its slot is free at once", async () => {
    const { engine, of, task } = await makeBusy();
    await engine.start();
    await engine.intake.add(yielding("victim"));
    await settle();
    await engine.intake.add(critical("critical"));
    await settle();
    expect(of("victim")[0]?.signal.reason).toMatchObject({
      name: "AbortError",
      message: "pre-empted by a critical task",
    });
    expect((await task("critical")).state).toBe("running");
    expect(await task("victim")).toMatchObject({
      state: "queued",
      retryCount: 0,
      attempts: [{ outcome: "preempted", error: "pre-empted by the critical task critical" }],
    });
    expect([engine.running, engine.laneLoad("tasks")]).toEqual([1, { running: 1, concurrency: 1 }]);
  });

  test("returns a result without effect; the result of the next attempt counts", async () => {
    const { engine, of, task, exchanges } = await makeBusy();
    await engine.start();
    await engine.intake.add(yielding("victim"));
    await settle();
    await engine.intake.add(critical("critical"));
    await settle();
    const exchanged = exchanges.length;
    of("victim")[0]?.context.progress("too late");
    of("victim")[0]?.context.usage({ inputTokens: 1_000 });
    of("victim")[0]?.latch.open("too late");
    await settle();
    expect(exchanges).toHaveLength(exchanged);
    of("critical")[0]?.latch.open("soon");
    await settle();
    of("victim")[1]?.latch.open("at last");
    await settle();
    expect(await task("critical")).toMatchObject({ state: "done", result: "soon" });
    expect(await task("victim")).toMatchObject({
      state: "done",
      result: "at last",
      retryCount: 0,
      usage: null,
      attempts: [{ outcome: "preempted" }, { outcome: "done" }],
    });
  });

  test("that has reported an end which is not stored yet is ignored", async () => {
    const { engine, of, exchanges, storage } = await makeBusy();
    await engine.start();
    await engine.intake.add(yielding("victim"));
    await settle();
    const exchanged = exchanges.length;
    // The report waits for the next exchange, and the pre-emption comes first.
    of("victim")[0]?.context.progress("half of it");
    await storage.tasks.insert({
      tasks: [critical("critical")],
      limits: { maxQueueSize: 10, maxQueueSizeTotal: 1_000, maxPerAgent: 10 },
    });
    await settle();
    expect(exchanges.slice(exchanged).flatMap(({ progress }) => progress)).toEqual([]);
  });

  test("but ignores its signal is named in the log, and takes no slot", async () => {
    const { engine, clock, log, runs } = await makeBusy();
    await engine.start();
    await engine.intake.add(yielding("victim"));
    await settle();
    await engine.intake.add(critical("critical"));
    await clock.advance(5_000);
    expect(runs.map(({ id }) => id)).toEqual(["victim", "critical"]);
    expect(log.lines.filter(({ level }) => level === "warn")).toMatchObject([
      {
        fields: { taskId: "victim", attempt: 1 },
        message: "still runs 5000 ms after it was aborted; its result is ignored",
      },
    ]);
  });

  test("is counted once, and so is the time it ran", async () => {
    const { engine, clock, of, storage } = await makeBusy();
    const signals: StorageSignal[] = [];
    storage.subscribe((signal) => signals.push(signal));
    await engine.start();
    await engine.intake.add(yielding("victim"));
    await clock.advance(3_000);
    await engine.intake.add(critical("critical"));
    await settle();
    // Signals may come twice, and one may name a token twice.
    for (const signal of signals) {
      if (signal.kind === "fenced")
        engine.onSignal({ ...signal, tokens: [...signal.tokens, ...signal.tokens] });
    }
    of("victim")[0]?.latch.open("too late");
    await clock.advance(2_000);
    const [victims] = engine.metrics
      .of("default")
      .series()
      .filter(({ labels }) => labels["agent"] === "a");
    expect(victims?.series).toMatchObject({ started: 1, preempted: 1, retried: 0, cancelled: 0 });
    expect([victims?.series.run.cumulated().at(-1), victims?.series.run.sumSec]).toEqual([1, 3]);
  });

  test("runs elsewhere: the node that runs it stops it and starts the critical task", async () => {
    const clock = new ManualClock();
    const storage = asSharedStorage(await openMemory(clock));
    const north = await makeBusy({ node: "north", clock, storage });
    const south = await makeBusy({ node: "south", clock, storage });
    await north.engine.start();
    await north.engine.intake.add(newTask({ id: "steady" }));
    await settle();
    await south.engine.start();
    await south.engine.intake.add(yielding("victim"));
    await settle();
    await north.engine.intake.add(critical("critical"));
    await settle();
    expect(north.runs.map(({ id, signal }) => [id, signal.aborted])).toEqual([["steady", false]]);
    expect(south.runs.map(({ id, signal }) => [id, signal.aborted])).toEqual([
      ["victim", true],
      ["critical", false],
    ]);
  });

  test("before its claim returned does not begin", async () => {
    let meanwhile: (() => Promise<unknown>) | null = null;
    const { engine, storage, runs, task } = await makeBusy({
      meddler: {
        after: async ({ operation, params }) => {
          if (operation !== "tasks.finishAndClaim" || params.claims.length === 0) return;
          const act = meanwhile;
          meanwhile = null;
          await act?.();
        },
      },
    });
    await engine.start();
    await settle();
    meanwhile = () =>
      storage.tasks.insert({
        tasks: [critical("critical")],
        limits: { maxQueueSize: 10, maxQueueSizeTotal: 1_000, maxPerAgent: 10 },
      });
    await engine.intake.add(yielding("victim"));
    await settle();
    expect(runs.map(({ id }) => id)).toEqual(["critical"]);
    expect((await task("victim")).state).toBe("queued");
    runs[0]?.latch.open(null);
    await settle();
    expect(runs.map(({ id }) => id)).toEqual(["critical", "victim"]);
  });
});

test("a stream of critical tasks makes one give way three times, and then waits for it", async () => {
  const { engine, runs, of, task } = await makeBusy();
  await engine.start();
  await engine.intake.add(yielding("victim"));
  await settle();
  for (let n = 1; n <= 6; n++) {
    await engine.intake.add(critical(`critical-${n}`));
    await settle();
    of(`critical-${n}`)[0]?.latch.open(null);
    await settle();
  }
  expect(runs.map(({ id }) => id)).toEqual([
    "victim",
    "critical-1",
    "victim",
    "critical-2",
    "victim",
    "critical-3",
    "victim",
  ]);
  of("victim").at(-1)?.latch.open("done at last");
  await settle();
  expect(await task("victim")).toMatchObject({ state: "done", result: "done at last" });
  expect((await task("critical-4")).state).toBe("running");
});

test("a free slot is taken, and no task is pre-empted", async () => {
  const { engine, runs } = await makeBusy({ concurrency: { tasks: 2 } });
  await engine.start();
  await engine.intake.add(yielding("other"));
  await settle();
  await engine.intake.add(critical("critical"));
  await settle();
  expect(runs.map(({ id, signal }) => [id, signal.aborted])).toEqual([
    ["other", false],
    ["critical", false],
  ]);
});
