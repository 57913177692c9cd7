import { describe, expect, test } from "vitest";
import { type EngineParams, makeEngine, newTask } from "../../../test/support/engine.ts";
import { asSharedStorage, away, openMemory } from "../../../test/support/storages.ts";
import type { Executor } from "../../executors/executor.ts";
import type { Clock } from "../../model/clock.ts";
import { silentLog } from "../../model/log.ts";
import type { Storage } from "../../storage/storage.ts";
import { ManualClock, settle } from "../../testing/manual-clock.ts";
import { Latch } from "../../testing/signals.ts";
import { Heartbeat } from "./heartbeat.ts";

/** A node among several: leases count. */
async function makeNode(params: EngineParams = {}) {
  const clock = params.clock ?? new ManualClock();
  const storage = asSharedStorage(params.storage ?? (await openMemory(clock)));
  return makeEngine({ ...params, clock, storage });
}

/** An executor that never ends by itself, and the outcome of each of its runs. */
function makeEndless(): { executor: Executor; signals: AbortSignal[] } {
  const signals: AbortSignal[] = [];
  return {
    signals,
    executor: (_task, { signal }) => {
      signals.push(signal);
      return new Promise(() => {});
    },
  };
}

describe("a node that renews its lease", () => {
  test("does so every five seconds and keeps its work", async () => {
    const { executor, signals } = makeEndless();
    let beats = 0;
    const { engine, clock, states } = await makeNode({
      executor,
      meddler: { before: ({ operation }) => void (operation === "nodes.heartbeat" && beats++) },
    });
    await engine.start();
    await engine.intake.add(newTask());
    await clock.advance(60_000);
    expect(beats).toBe(13);
    expect(signals.map(({ aborted }) => aborted)).toEqual([false]);
    expect(await states()).toEqual({ running: 1 });
  });

  test("stops an attempt that it no longer holds, and no other", async () => {
    const { executor, signals } = makeEndless();
    const { engine, clock, storage } = await makeNode({ executor });
    await engine.start();
    await engine.intake.addMany([newTask({ id: "cancelled" }), newTask({ id: "kept" })]);
    await settle();
    // The engine gets no signals of the storage in this test: another node cancels, and the signal gets lost.
    await storage.tasks.cancel({ tenant: "default", ids: ["cancelled"], error: null });
    await clock.advance(5_000);
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, false]);
    expect(engine.running).toBe(1);
  });

  test("does not stop what it claimed while the renewal was on its way", async () => {
    const { executor, signals } = makeEndless();
    let claimMeanwhile: (() => Promise<void>) | null = null;
    const { engine, clock } = await makeNode({
      executor,
      meddler: {
        after: async ({ operation }) => {
          if (operation === "nodes.heartbeat") await claimMeanwhile?.();
        },
      },
    });
    await engine.start();
    await settle();
    claimMeanwhile = async () => {
      claimMeanwhile = null;
      await engine.intake.add(newTask());
      await settle();
    };
    await clock.advance(10_000);
    expect(signals.map(({ aborted }) => aborted)).toEqual([false]);
  });
});

test("a claim whose response was lost is put back, uncounted, and runs", async () => {
  const clock = new ManualClock();
  const shared = asSharedStorage(await openMemory(clock));
  let lost = false;
  // The response to the first claim that returns tasks is lost.
  const storage: Storage = {
    ...shared,
    tasks: {
      ...shared.tasks,
      finishAndClaim: async (params) => {
        const answer = await shared.tasks.finishAndClaim(params);
        if (answer.claimed.length === 0 || lost) return answer;
        lost = true;
        throw away();
      },
    },
  };
  let runs = 0;
  const { engine, task } = await makeEngine({
    clock,
    storage,
    executor: () => {
      runs += 1;
    },
  });
  await engine.start();
  await engine.intake.add(newTask({ id: "mislaid" }));
  await clock.advance(4_000);
  expect([(await task("mislaid")).state, runs]).toEqual(["running", 0]);
  await clock.advance(8_000);
  expect(await task("mislaid")).toMatchObject({
    state: "done",
    retryCount: 0,
    attempts: [{ outcome: "interrupted" }, { outcome: "done" }],
  });
  expect(runs).toBe(1);
});

describe("a node that missed its lease", () => {
  test("aborts its work first, and registered again after its lease was lost", async () => {
    const { executor, signals } = makeEndless();
    let broken = false;
    const { engine, clock, log, task } = await makeNode({
      executor,
      meddler: {
        before: () => {
          if (broken) throw away();
        },
      },
    });
    await engine.start();
    await engine.intake.add(newTask({ id: "orphan", maxRetriesIfLost: 5 }));
    await settle();
    const before = engine.node;
    broken = true;
    await clock.advance(14_999);
    expect(signals[0]?.aborted).toBe(false);
    await clock.advance(1);
    expect(signals[0]?.aborted).toBe(true);
    expect(engine.running).toBe(0);
    expect(log.messages("error")).toContain("lost its lease and aborted its running tasks");

    broken = false;
    await clock.advance(10_000);
    expect(engine.node).not.toBe(before);
    expect(await task("orphan")).toMatchObject({
      state: "running",
      attempts: [
        { outcome: "lost", node: before },
        { outcome: null, node: engine.node },
      ],
    });
  });

  test("by the wall clock alone, as after a sleep of the machine, does the same", async () => {
    const { executor, signals } = makeEndless();
    const { engine, clock } = await makeNode({ executor });
    await engine.start();
    await engine.intake.add(newTask({ maxRetriesIfLost: 5 }));
    await settle();
    const before = engine.node;
    clock.set(clock.now() + 3_600_000);
    await clock.advance(5_000);
    expect(signals[0]?.aborted).toBe(true);
    await clock.advance(1_000);
    expect(engine.node).not.toBe(before);
    expect(engine.running).toBe(1);
  });

  test("keeps its work when the clock is merely set back", async () => {
    const { executor, signals } = makeEndless();
    const { engine, clock } = await makeNode({ executor });
    await engine.start();
    await engine.intake.add(newTask());
    await settle();
    clock.set(clock.now() - 3_600_000);
    await clock.advance(60_000);
    expect(signals[0]?.aborted).toBe(false);
  });

  test("aborts also while a renewal hangs", async () => {
    const { executor, signals } = makeEndless();
    const { engine, clock } = await makeNode({
      executor,
      meddler: {
        before: ({ operation }) =>
          operation === "nodes.heartbeat" && hang ? new Promise<void>(() => {}) : undefined,
      },
    });
    let hang = false;
    await engine.start();
    await engine.intake.add(newTask());
    await settle();
    hang = true;
    await clock.advance(20_000);
    expect(signals[0]?.aborted).toBe(true);
  });

  test("aborts no later than others may take its work, though the response to its registration was late", async () => {
    const { executor, signals } = makeEndless();
    const clock = new ManualClock();
    const { engine } = await makeNode({
      executor,
      clock,
      meddler: {
        before: ({ operation }) => {
          if (operation === "nodes.heartbeat") throw away();
        },
        after: async ({ operation }) => {
          if (operation === "nodes.register")
            await new Promise<void>((resolve) => clock.setTimer(10_000, resolve));
        },
      },
    });
    const started = engine.start();
    await clock.advance(10_000);
    await started;
    await engine.intake.add(newTask());
    await clock.advance(4_999);
    expect(signals.map(({ aborted }) => aborted)).toEqual([false]);
    await clock.advance(1);
    expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
  });

  test("still writes down what had ended before", async () => {
    let broken = false;
    const { engine, clock, task } = await makeNode({
      executor: () => {
        broken = true;
        return "the answer";
      },
      meddler: {
        before: () => {
          if (broken) throw away();
        },
      },
    });
    await engine.start();
    await engine.intake.add(newTask({ id: "finished" }));
    await clock.advance(30_000);
    broken = false;
    await clock.advance(10_000);
    expect(await task("finished")).toMatchObject({ state: "done", result: "the answer" });
    expect(engine.node).toBe("node-2");
  });

  test("and was declared dead meanwhile aborts, and its late results change nothing", async () => {
    const clock = new ManualClock();
    const storage = await openMemory(clock);
    const { executor, signals } = makeEndless();
    const { engine, task } = await makeNode({ executor, clock, storage });
    await engine.start();
    await engine.intake.add(newTask({ id: "taken", maxRetriesIfLost: 0 }));
    await settle();
    const [record] = await storage.nodes.list();
    await storage.nodes.markDead({ node: "node", beat: record?.beat ?? -1 });
    await storage.tasks.rescue({ node: "node", limit: 10 });
    await clock.advance(5_000);
    expect(signals[0]?.aborted).toBe(true);
    expect(await task("taken")).toMatchObject({ state: "failed", error: "worker lost" });
    await clock.advance(5_000);
    expect(engine.node).toBe("node-2");
    await engine.intake.add(newTask({ id: "next" }));
    await settle();
    expect(await task("next")).toMatchObject({ state: "running" });
  });

  test("while it was stopping starts nothing more under its new name", async () => {
    const { executor } = makeEndless();
    const { engine, clock, states } = await makeNode({ executor });
    await engine.start();
    await engine.intake.addMany([newTask(), ...Array.from({ length: 9 }, () => newTask())]);
    await settle();
    const draining = engine.drain(60_000);
    clock.set(clock.now() + 3_600_000);
    await clock.advance(10_000);
    await draining;
    expect(engine.running).toBe(0);
    expect((await states()).running).toBeUndefined();
  });
});

test("a node that unregisters while a renewal is under way does not count that as a lost lease", async () => {
  const arrives = new Latch();
  let isLeaving = false;
  const { engine, log } = await makeNode({
    meddler: {
      before: ({ operation }) => (operation === "nodes.heartbeat" && isLeaving ? arrives.opened : undefined),
    },
  });
  await engine.start();
  await settle();
  isLeaving = true;
  engine.onSignal({ kind: "reconnected" });
  await settle();
  await engine.drain(0);
  arrives.open();
  await settle();
  expect(log.messages("error")).toEqual([]);
});

test("a node whose renewal hangs aborts its work even if its timers fire a little early", async () => {
  const clock = new ManualClock();
  const early: Clock = {
    now: () => clock.now(),
    monotonic: () => clock.monotonic(),
    setTimer: (delayMs, callback) => clock.setTimer(Math.max(delayMs - 0.5, 0.1), callback),
  };
  const lost: string[] = [];
  let beats = 0;
  const storage = await openMemory(clock);
  const heartbeat = new Heartbeat({
    clock: early,
    random: () => 0,
    log: silentLog,
    storage: {
      ...storage,
      nodes: {
        ...storage.nodes,
        heartbeat: () => (beats++ === 0 ? Promise.resolve({ alive: true, held: [] }) : new Promise(() => {})),
      },
    },
    node: () => "north",
    tokens: () => [],
    onHeld: () => {},
    onFenced: () => {},
    onLost: (reason) => lost.push(reason),
  });
  heartbeat.start();
  await clock.advance(15_002);
  expect(lost).toEqual([expect.stringContaining("its lease was not renewed for")]);
  await heartbeat.stop();
});
