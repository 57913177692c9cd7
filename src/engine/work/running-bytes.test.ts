import { describe, expect, test } from "vitest";
import { makeEngine, newTask, type TaskOverrides } from "../../../test/support/engine.ts";
import { openMemory } from "../../../test/support/storages.ts";
import { MIB } from "../../model/text/bytes.ts";
import { UNBOUNDED } from "../../storage/conformance/tenants/share-out.ts";
import { ManualClock, settle } from "../../testing/manual-clock.ts";
import { Latch, until } from "../../testing/signals.ts";
import { RunningBytes } from "./running-bytes.ts";

const NEIGHBOUR = { id: "neighbour", name: "neighbour", limits: UNBOUNDED };

interface MemoryParams {
  readonly max: number;
  readonly running?: number;
  readonly share?: number;
  readonly onRoom?: () => void;
}

function memoryOf({ max, running = 0, share, onRoom = () => {} }: MemoryParams): RunningBytes {
  return new RunningBytes({
    max: () => max,
    tenantShare: () => share ?? null,
    running: () => running,
    onRoom,
  });
}

test("fewer are claimed at once as less is left, one where one may be too much, and none from the bound on", () => {
  const memory = memoryOf({ max: 100 * MIB, running: 10 });
  expect(memory.claimsMax).toBe(100);
  memory.hold("a", 80 * MIB);
  expect(memory.claimsMax).toBe(2);
  memory.hold("a", 20 * MIB - 1);
  expect([memory.claimsMax, memory.hasRoom]).toEqual([1, true]);
  memory.hold("a", 1);
  expect([memory.claimsMax, memory.hasRoom]).toEqual([0, false]);
});

test("without a bound any number is claimed", () => {
  const memory = memoryOf({ max: 0 });
  memory.hold("a", 1e15);
  expect([memory.claimsMax, memory.hasRoom]).toEqual([Number.POSITIVE_INFINITY, true]);
});

test("says when there is room again, once", () => {
  let calls = 0;
  const memory = memoryOf({ max: 10, running: 1, onRoom: () => void calls++ });
  memory.hold("a", 30);
  memory.release("a", 20);
  expect(calls).toBe(0);
  memory.release("a", 5);
  memory.release("a", 5);
  expect(calls).toBe(1);
});

test("a tenant that holds its share is named, and others go on", () => {
  const memory = memoryOf({ max: 100 * MIB, share: 0.8, running: 1 });
  memory.hold("a", 80 * MIB - 1);
  expect([memory.tenantMax, memory.tenantsOverShare, memory.isOverShare("a")]).toEqual([
    80 * MIB,
    new Set(),
    false,
  ]);
  memory.hold("a", 1);
  memory.hold("b", MIB);
  expect([...memory.tenantsOverShare]).toEqual(["a"]);
  expect([memory.isOverShare("a"), memory.isOverShare("b"), memory.hasRoom]).toEqual([true, false, true]);
});

test("what a tenant holds beyond its share takes no room of others", () => {
  const memory = memoryOf({ max: 100 * MIB, share: 0.8, running: 400 });
  memory.hold("a", 300 * MIB);
  expect([memory.held, memory.hasRoom, memory.claimsMax]).toEqual([300 * MIB, true, 20]);
  memory.hold("b", 20 * MIB);
  expect([memory.hasRoom, memory.claimsMax, [...memory.tenantsOverShare]]).toEqual([false, 0, ["a"]]);
});

test("a share is never all of it, and never nothing", () => {
  expect(memoryOf({ max: 100, share: 1 }).tenantMax).toBe(99);
  expect(memoryOf({ max: 2, share: 0.1 }).tenantMax).toBe(1);
  expect(memoryOf({ max: 0, share: 0.8 }).tenantMax).toBe(null);
});

test("without a second enabled tenant one tenant may hold all", () => {
  const memory = memoryOf({ max: 10 });
  memory.hold("a", 9);
  expect([memory.tenantMax, memory.tenantsOverShare.size, memory.hasRoom]).toEqual([null, 0, true]);
});

test("says when a tenant is within its share again, once", () => {
  let calls = 0;
  const memory = memoryOf({ max: 100, share: 0.8, onRoom: () => void calls++ });
  memory.hold("a", 120);
  memory.hold("b", 5);
  memory.release("b", 5);
  memory.release("a", 40);
  expect(calls).toBe(0);
  memory.release("a", 1);
  memory.release("a", 79);
  expect([calls, memory.held, memory.heldBy("a")]).toEqual([1, 0, 0]);
});

test("tasks that were claimed together and hold more memory than expected go back to their positions", async () => {
  const running: string[] = [];
  const { engine, task } = await makeEngine({
    concurrency: { tasks: 50 },
    maxRunningBytes: 10 * MIB,
    executor: ({ taskId }) => {
      running.push(taskId);
      return new Promise(() => {});
    },
  });
  // Half a megabyte of JSON each, and eleven once it is parsed.
  const payload = Array.from({ length: 170_000 }, () => ({}));
  await engine.intake.addMany(["a", "b", "c"].map((id) => newTask({ id, payload })));
  await engine.start();
  await until(async () => (await task("b")).attempts[0]?.outcome === "interrupted");
  expect(running).toEqual(["a"]);
  expect(await task("c")).toMatchObject({ state: "queued", retryCount: 0 });
});

test("a process exceeds its bound by one task at most, over all lanes, and claims again as tasks end", async () => {
  const latches: Latch[] = [];
  let most = 0;
  let ended = 0;
  const { engine, states } = await makeEngine({
    concurrency: { tasks: 50, main: 50 },
    maxRunningBytes: 10 * MIB,
    executor: () => {
      const latch = new Latch();
      latches.push(latch);
      most = Math.max(most, latches.length);
      return latch.opened.then(() => void ended++);
    },
  });
  const payload = "x".repeat(MIB);
  const lanes = ["tasks", "main"] as const;
  const tasks = Array.from({ length: 30 }, (_, n) => newTask({ payload, lane: lanes[n % 2] as string }));
  await engine.start();
  await engine.intake.addMany(tasks);
  await until(() => latches.length === 10);
  expect(engine.memory.held).toBeGreaterThanOrEqual(10 * MIB);
  expect(engine.memory.held).toBeLessThan(11 * MIB);
  // What ends makes room for as many, and all are run in the end.
  while (ended < 30) {
    latches.shift()?.open();
    await until(() => engine.running === Math.min(10, 30 - ended) && latches.length === engine.running);
    expect(engine.memory.held).toBeLessThan(11 * MIB);
  }
  await until(async () => (await states()).done === 30);
  expect([most, engine.memory.held]).toEqual([10, 0]);
});

describe("once a second enabled tenant exists,", () => {
  async function sharedEngine(concurrency: Record<string, number>) {
    const latches = new Map<string, Latch>();
    const clock = new ManualClock();
    const storage = await openMemory(clock);
    await storage.tenants.create(NEIGHBOUR);
    const made = await makeEngine({
      clock,
      storage,
      concurrency,
      maxRunningBytes: 10 * MIB,
      hasSecondTenant: true,
      executor: ({ taskId }) => {
        const latch = new Latch();
        latches.set(taskId, latch);
        return latch.opened;
      },
    });
    await made.engine.start();
    return { ...made, latches };
  }

  const large = (id: string, more: TaskOverrides = {}) =>
    newTask({ id, payload: "x".repeat(MIB), lane: "main", ...more });

  test("one tenant's hanging tasks hold their share of memory, and the other's start", async () => {
    const { engine, latches, storage } = await sharedEngine({ tasks: 50, main: 50 });
    const ids = Array.from({ length: 20 }, (_, n) => `a${n}`);
    await engine.intake.addMany(ids.map((id, n) => large(id, { lane: n % 2 === 0 ? "main" : "tasks" })));
    await until(() => latches.size === 8);
    // Nothing moves the clock: no lane is asked unless there is a reason.
    await settle();
    expect([latches.size, engine.memory.isOverShare("default")]).toEqual([8, true]);
    expect(engine.memory.held).toBeLessThan(9 * MIB);

    await engine.intake.addMany(["b0", "b1"].map((id) => large(id, { tenant: NEIGHBOUR.id })));
    await until(() => latches.has("b0") && latches.has("b1"));
    expect([engine.memory.heldBy("default") < 9 * MIB, latches.size]).toEqual([true, 10]);

    // Each task that ends lets the next one start, in any lane.
    for (let ended = 0; ended < 20; ended += 1) {
      await until(() => [...latches.keys()].some((id) => id.startsWith("a")));
      const next = [...latches.keys()].find((id) => id.startsWith("a")) as string;
      latches.get(next)?.open();
      latches.delete(next);
      expect(engine.memory.heldBy("default")).toBeLessThan(9 * MIB);
    }
    for (const latch of latches.values()) latch.open();
    await until(async () => (await storage.tasks.counts({ tenant: NEIGHBOUR.id })).done === 2);
    await until(async () => (await storage.tasks.counts({ tenant: "default" })).done === 20);
    expect([engine.memory.held, engine.memory.heldBy("default")]).toEqual([0, 0]);
  });

  test("a lane with a single slot passes over a tenant that holds its share elsewhere", async () => {
    const { engine, latches } = await sharedEngine({ tasks: 1, main: 50 });
    await engine.intake.addMany(Array.from({ length: 9 }, (_, n) => large(`a${n}`)));
    await until(() => latches.size === 8);
    await engine.intake.addMany([newTask({ id: "mine" }), newTask({ id: "theirs", tenant: NEIGHBOUR.id })]);
    await until(() => latches.has("theirs"));
    expect(latches.has("mine")).toBe(false);
    latches.get("theirs")?.open();
    await settle();
    expect(latches.has("mine")).toBe(false);
    for (const id of ["a0", "a1"]) latches.get(id)?.open();
    await until(() => latches.has("mine"));
  });

  test("tasks that were claimed together and exceed the share of their tenant go back to their positions", async () => {
    const { engine, latches, task } = await sharedEngine({ tasks: 50, main: 50 });
    // Half a megabyte of JSON each, and more than eight once it is parsed.
    const payload = Array.from({ length: 130_000 }, () => ({}));
    await engine.intake.addMany(["a", "b"].map((id) => newTask({ id, payload })));
    await until(async () => (await task("b")).attempts[0]?.outcome === "interrupted");
    expect([...latches.keys()]).toEqual(["a"]);
    expect(await task("b")).toMatchObject({
      state: "queued",
      retryCount: 0,
      attempts: [{ error: "not started: the tasks of its tenant hold their share of its process's memory" }],
    });
    latches.get("a")?.open();
    await until(() => latches.has("b"));
  });
});
