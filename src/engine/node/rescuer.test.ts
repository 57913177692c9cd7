import { describe, expect, test } from "vitest";
import { type EngineParams, makeEngine, manyTasks, newTask } from "../../../test/support/engine.ts";
import { asSharedStorage, away, openMemory } from "../../../test/support/storages.ts";
import { ManualClock, settle } from "../../testing/manual-clock.ts";

async function makeNodes() {
  const clock = new ManualClock();
  const storage = asSharedStorage(await openMemory(clock));
  return (params: EngineParams) => makeEngine({ ...params, clock, storage });
}

const endless = () => new Promise(() => {});

describe("the work of a node that is gone", () => {
  test("is taken over by another after a whole lease", async () => {
    const makeNode = await makeNodes();
    let gone = false;
    const north = await makeNode({
      node: "north",
      executor: endless,
      meddler: {
        before: () => {
          if (gone) throw away();
        },
      },
    });
    await north.engine.start();
    await north.engine.intake.add(newTask({ id: "orphan", maxRetriesIfLost: 1 }));
    await settle();
    const south = await makeNode({ node: "south" });
    await south.engine.start();
    await settle();
    gone = true;
    await north.clock.advance(14_000);
    expect((await north.task("orphan")).state).toBe("running");
    await north.clock.advance(7_000);
    expect(await north.task("orphan")).toMatchObject({
      state: "done",
      attempts: [
        { node: "north", outcome: "lost" },
        { node: "south", outcome: "done" },
      ],
    });
    expect((await north.storage.nodes.list()).map(({ node }) => node)).toEqual(["south"]);
  });

  test("fails with `worker lost` when no retry is left for that", async () => {
    const makeNode = await makeNodes();
    const { engine, storage, clock, task } = await makeNode({ node: "south" });
    await storage.nodes.register({ node: "north" });
    await engine.intake.add(newTask({ id: "lost" }));
    await engine.intake.addMany([1, 2].map(() => newTask({ tenant: "acme" })));
    await storage.tasks.finishAndClaim({
      node: "north",
      finishes: [],
      progress: [],
      claims: [{ lane: "tasks", limit: 3 }],
    });
    await engine.start();
    await clock.advance(20_000);
    expect(await task("lost")).toMatchObject({ state: "failed", error: "worker lost" });
    const failed = ["default", "acme"].map((tenant) => engine.metrics.of(tenant).snapshot().tasksFailed);
    expect(failed).toEqual([1, 2]);
  });

  test("is taken back in slices, all of it", async () => {
    const makeNode = await makeNodes();
    const { engine, storage, clock, states } = await makeNode({
      node: "south",
      concurrency: { tasks: 2_000 },
    });
    await storage.nodes.register({ node: "north" });
    await engine.intake.addMany(manyTasks(1_100).map((task) => ({ ...task, maxRetriesIfLost: 1 })));
    await storage.tasks.finishAndClaim({
      node: "north",
      finishes: [],
      progress: [],
      claims: [{ lane: "tasks", limit: 1_100 }],
    });
    await engine.start();
    await clock.advance(20_000);
    await clock.advance(1_000);
    expect(await states()).toEqual({ done: 1_100 });
    expect((await storage.nodes.list()).map(({ node }) => node)).toEqual(["south"]);
  });

  test("is taken back by the next node if the rescuer itself was lost halfway", async () => {
    const makeNode = await makeNodes();
    const { engine, storage, clock, states } = await makeNode({ node: "south" });
    await storage.nodes.register({ node: "north" });
    await engine.intake.add(newTask({ maxRetriesIfLost: 1 }));
    await storage.tasks.finishAndClaim({
      node: "north",
      finishes: [],
      progress: [],
      claims: [{ lane: "tasks", limit: 1 }],
    });
    await storage.nodes.markDead({ node: "north", beat: (await storage.nodes.list())[0]?.beat ?? -1 });
    await engine.start();
    await settle();
    await clock.advance(10);
    expect(await states()).toEqual({ done: 1 });
  });
});

test("a node that renews, however late by any wall clock, is left alone", async () => {
  const makeNode = await makeNodes();
  const north = await makeNode({ node: "north", executor: endless });
  await north.engine.start();
  await north.engine.intake.add(newTask());
  const south = await makeNode({ node: "south" });
  await south.engine.start();
  await north.clock.advance(120_000);
  expect(await north.states()).toEqual({ running: 1 });
  expect((await north.storage.nodes.list()).map(({ node }) => node).sort()).toEqual(["north", "south"]);
});

test("on a storage of its own a node takes back at once what an earlier start left behind", async () => {
  const { engine, storage, task } = await makeEngine({ node: "second" });
  await storage.nodes.register({ node: "first" });
  await engine.intake.add(newTask({ id: "left", maxRetriesIfLost: 1 }));
  await storage.tasks.finishAndClaim({
    node: "first",
    finishes: [],
    progress: [],
    claims: [{ lane: "tasks", limit: 1 }],
  });
  await engine.start();
  await settle();
  expect(await task("left")).toMatchObject({ state: "done" });
});

test("a start whose first try got lost can be made again", async () => {
  const makeNode = await makeNodes();
  let lose = true;
  const { engine, storage, clock, states } = await makeNode({
    node: "north",
    meddler: {
      after: ({ operation }) => {
        if (operation !== "nodes.register" || !lose) return;
        lose = false;
        throw away();
      },
    },
  });
  await expect(engine.start()).rejects.toMatchObject({ code: "storage_unavailable" });
  await engine.start();
  await engine.intake.add(newTask());
  await settle();
  expect(await states()).toEqual({ done: 1 });
  await clock.advance(25_000);
  expect((await storage.nodes.list()).map(({ node }) => node)).toEqual([engine.node]);
});

test("a rescue does not overwrite a task that finished in the meantime", async () => {
  const makeNode = await makeNodes();
  const { engine, storage, clock, task } = await makeNode({ node: "south" });
  await storage.nodes.register({ node: "north" });
  await engine.intake.add(newTask({ id: "done in time", maxRetriesIfLost: 1 }));
  const north = { node: "north", progress: [] };
  const { claimed } = await storage.tasks.finishAndClaim({
    ...north,
    finishes: [],
    claims: [{ lane: "tasks", limit: 1 }],
  });
  await engine.start();
  await clock.advance(14_000);
  const [only] = claimed;
  await storage.tasks.finishAndClaim({
    ...north,
    finishes: [{ seq: only?.task.seq ?? 0, token: only?.token ?? 0, settlement: { to: "done", result: 1 } }],
    claims: [],
  });
  await clock.advance(10_000);
  expect(await task("done in time")).toMatchObject({ state: "done", result: 1 });
});

test("a node that leaves in order says so: the others need not wait for its lease", async () => {
  const makeNode = await makeNodes();
  const north = await makeNode({ node: "north", executor: endless });
  await north.engine.start();
  await north.engine.intake.add(newTask({ id: "handed on", retryPolicy: { maxRetries: 1 } }));
  await settle();
  const south = await makeNode({ node: "south" });
  await south.engine.start();
  await settle();
  await north.engine.drain(0);
  expect((await north.storage.nodes.list()).map(({ node }) => node)).toEqual(["south"]);
  south.engine.onSignal({ kind: "work" });
  await settle();
  expect(await north.task("handed on")).toMatchObject({
    state: "done",
    retryCount: 0,
    attempts: [{ outcome: "interrupted" }, { outcome: "done", node: "south" }],
  });
});
