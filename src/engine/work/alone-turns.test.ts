import { describe, expect, test } from "vitest";
import { type EngineParams, makeEngine, newTask } from "../../../test/support/engine.ts";
import type { Storage } from "../../storage/storage.ts";
import { settle } from "../../testing/manual-clock.ts";
import { Latch } from "../../testing/signals.ts";
import { AloneTurns, OTHERS_FIRST_MS } from "./alone-turns.ts";

/** Creates tasks with these ids that were lost twice: they wait to run alone. */
async function loseTwice(storage: Storage, ids: readonly string[], lane = "tasks"): Promise<void> {
  const limits = { maxQueueSize: 1_000, maxQueueSizeTotal: 100_000, maxPerAgent: 1_000 };
  const tasks = ids.map((id) => newTask({ id, lane, agent: "poison", maxRetriesIfLost: 100 }));
  await storage.tasks.insert({ tasks, limits });
  for (const node of ["first", "second"]) {
    await claimOn(storage, node, lane);
    const beat = (await storage.nodes.list()).find((record) => record.node === node)?.beat ?? 0;
    await storage.nodes.markDead({ node, beat });
    await storage.tasks.rescue({ node, limit: 100, maxLost: 5 });
    await storage.nodes.remove({ node });
  }
}

async function claimOn(storage: Storage, node: string, lane: string): Promise<void> {
  await storage.nodes.register({ node });
  await storage.tasks.finishAndClaim({ node, finishes: [], progress: [], claims: [{ lane, limit: 100 }] });
}

/** An engine whose tasks each run until their latch is opened. */
async function gatedEngine(ids: readonly string[], params: EngineParams = {}) {
  const running = new Map<string, Latch>();
  const made = await makeEngine({
    ...params,
    executor: async ({ taskId }) => {
      const latch = new Latch();
      running.set(taskId, latch);
      await latch.opened;
      running.delete(taskId);
    },
  });
  if (ids.length > 0) await loseTwice(made.storage, ids);
  const end = async (...taskIds: string[]) => {
    for (const id of taskIds) running.get(id)?.open();
    await settle();
  };
  return { ...made, end, running: () => [...running.keys()] };
}

describe("a task that runs alone", () => {
  test("lets the others go first after a start, then holds them back while it runs, and they go on afterwards", async () => {
    const { engine, clock, end, running } = await gatedEngine(["poison"]);
    await engine.intake.addMany([newTask({ id: "a" }), newTask({ id: "b" })]);
    await engine.start();
    await settle();
    expect([running(), engine.alonePhase]).toEqual([["a", "b"], "open"]);
    await end("a", "b");
    await clock.advance(OTHERS_FIRST_MS);
    expect([running(), engine.alonePhase]).toEqual([["poison"], "alone"]);
    await engine.intake.addMany([newTask({ id: "c" }), newTask({ id: "d" })]);
    await clock.advance(20_000);
    expect(running()).toEqual(["poison"]);
    await end("poison");
    expect([running(), engine.alonePhase]).toEqual([["c", "d"], "open"]);
  });

  test("waits for what runs, which no others join meanwhile", async () => {
    const concurrency = { tasks: 4, main: 0 };
    const { engine, clock, storage, end, running } = await gatedEngine([], { concurrency });
    await engine.intake.addMany([newTask({ id: "a" }), newTask({ id: "b" })]);
    await engine.start();
    await settle();
    await loseTwice(storage, ["poison"], "main");
    concurrency.main = 1;
    engine.settingsChanged();
    await clock.advance(10_000);
    await engine.intake.add(newTask({ id: "c" }));
    await settle();
    expect([running(), engine.alonePhase]).toEqual([["a", "b"], "closing"]);
    await end("a");
    expect(running()).toEqual(["b"]);
    await end("b");
    expect(running()).toEqual(["poison"]);
    await end("poison");
    expect(running()).toEqual(["c"]);
  });

  test("leaves the others at least as much time as it took them", async () => {
    const { engine, clock, end, running } = await gatedEngine(["p1", "p2"]);
    await engine.start();
    await clock.advance(OTHERS_FIRST_MS);
    expect(running()).toEqual(["p1"]);
    await engine.intake.add(newTask({ id: "a" }));
    await clock.advance(60_000);
    expect(running()).toEqual(["p1"]);
    await end("p1");
    expect(running()).toEqual(["a"]);
    await clock.advance(50_000);
    expect([running(), engine.alonePhase]).toEqual([["a"], "open"]);
    // Then none joins it, and when it has ended the next one runs alone.
    await clock.advance(15_000);
    await engine.intake.add(newTask({ id: "b" }));
    await settle();
    expect([running(), engine.alonePhase]).toEqual([["a"], "closing"]);
    await end("a");
    expect(running()).toEqual(["p2"]);
    await end("p2");
    expect(running()).toEqual(["b"]);
  });

  test("that is cancelled lets the others go on", async () => {
    const { engine, clock, storage, running } = await gatedEngine(["poison"], { getsSignals: true });
    await engine.start();
    await clock.advance(OTHERS_FIRST_MS);
    await engine.intake.add(newTask({ id: "a" }));
    await settle();
    expect(running()).toEqual(["poison"]);
    const [cancelled] = await storage.tasks.cancel({ tenant: "default", ids: ["poison"], error: null });
    expect(cancelled).toMatchObject({ was: null });
    await settle();
    expect([engine.alonePhase, running().includes("a")]).toEqual(["open", true]);
  });

  test("that its limits keep from starting holds the others back no longer than it takes to see that", async () => {
    const { engine, clock, storage, running } = await gatedEngine(["poison"]);
    await engine.start();
    await settle();
    const limits = { maxQueueSize: 1_000, maxQueueSizeTotal: 100_000, maxPerAgent: 1_000 };
    await storage.tasks.insert({ tasks: [newTask({ agent: "poison", lane: "main" })], limits });
    await claimOn(storage, "other", "main");
    await storage.agents.configure({ tenant: "default", agent: "poison", maxInflight: 1 });
    await clock.advance(OTHERS_FIRST_MS);
    await engine.intake.addMany([newTask({ id: "a" }), newTask({ id: "b" })]);
    await settle();
    expect([running(), engine.alonePhase]).toEqual([["a", "b"], "open"]);
  });

  test("is not started by a process that closes down", async () => {
    const { engine, running } = await gatedEngine(["poison"]);
    await engine.drain(0);
    await settle();
    expect(running()).toEqual([]);
  });
});

test("turns are taken so that the others have half of the time at least", () => {
  const turns = new AloneTurns(-OTHERS_FIRST_MS);
  expect(turns.lookInMs(0)).toBe(0);
  turns.looked(0, { waits: false });
  expect([turns.phase, turns.lookInMs(0), turns.lookInMs(5_000)]).toEqual(["open", 5_000, 0]);
  turns.lookSoon();
  expect(turns.lookInMs(100)).toBe(0);
  turns.looked(100, { waits: true });
  expect([turns.phase, turns.lookInMs(90_000)]).toEqual(["closing", Number.POSITIVE_INFINITY]);
  turns.began();
  expect(turns.phase).toBe("alone");
  turns.reopen(30_100);
  expect([turns.phase, turns.lookInMs(30_100), turns.lookInMs(60_100)]).toEqual(["open", 30_000, 0]);
});

test("where none could start, the next look is not before the time of a look", () => {
  const turns = new AloneTurns(-OTHERS_FIRST_MS);
  turns.looked(0, { waits: true });
  turns.reopen(1);
  expect(turns.lookInMs(1)).toBe(4_999);
});
