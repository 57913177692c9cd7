import { describe, expect, test } from "vitest";
import { type EngineParams, makeEngine, newTask, type TaskOverrides } from "../../../test/support/engine.ts";
import {
  asDistantStorage,
  asSharedStorage,
  type Meddler,
  openMemory,
} from "../../../test/support/storages.ts";
import { pause } from "../../clock/pause.ts";
import type { Executor } from "../../executors/executor.ts";
import type { NewTask, Storage } from "../../storage/storage.ts";
import { ManualClock, settle } from "../../testing/manual-clock.ts";
import { Latch } from "../../testing/signals.ts";

const SLOTS = 4;
const TASK_MS = 10;
const EXCHANGE_MS = 20;

interface AheadParams extends EngineParams {
  /** How long each task runs; left out: `TASK_MS`. */
  readonly taskMs?: number;
  readonly claimsAhead?: boolean;
}

/** An engine whose exchanges take `EXCHANGE_MS`, and whose tasks are short until `block` is called. */
async function makeDistant(params: AheadParams = {}) {
  const { taskMs = TASK_MS, claimsAhead = true, meddler, ...others } = params;
  const clock = new ManualClock();
  const memory = asSharedStorage(await openMemory(clock));
  const storage = claimsAhead ? asDistantStorage(memory) : memory;
  const started: string[] = [];
  let running = 0;
  let most = 0;
  let latch: Latch | null = null;
  const executor: Executor = async ({ taskId }, { signal }) => {
    started.push(taskId);
    most = Math.max(most, ++running);
    const aborted = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
    await Promise.race([latch === null ? pause(clock, taskMs) : latch.opened, aborted]);
    running -= 1;
  };
  const slowly: Meddler = {
    ...meddler,
    async before(call) {
      await meddler?.before?.(call);
      if (call.operation === "tasks.finishAndClaim") await pause(clock, EXCHANGE_MS);
    },
  };
  const made = await makeEngine({
    executor,
    concurrency: { tasks: SLOTS },
    getsSignals: true,
    ...others,
    clock,
    storage,
    meddler: slowly,
  });
  const list = async (state: "assigned" | "running" | "queued") => {
    const { tasks } = await storage.tasks.list({ tenant: "default", states: [state], limit: 1_000 });
    return tasks.map(({ id }) => id).reverse();
  };
  return {
    ...made,
    storage,
    started,
    list,
    most: () => most,
    block: () => {
      latch = new Latch();
      return latch;
    },
    unblock: () => {
      latch?.open();
      latch = null;
    },
  };
}

type Distant = Awaited<ReturnType<typeof makeDistant>>;

const retried = (overrides: TaskOverrides = {}): NewTask => newTask({ maxRetriesIfLost: 3, ...overrides });

/** Runs short tasks until some are held ahead while tasks that do not end hold all slots. Returns the held ones. */
async function holdSome(world: Distant, overrides: TaskOverrides = {}): Promise<string[]> {
  const { engine, clock, started, list } = world;
  await engine.start();
  await engine.intake.addMany(Array.from({ length: 300 }, () => retried(overrides)));
  await clock.advance(400);
  world.block();
  await clock.advance(EXCHANGE_MS * 4);
  const held = (await list("assigned")).filter((id) => !started.includes(id));
  expect(held.length).toBeGreaterThan(1);
  expect(engine.running).toBe(SLOTS);
  return held;
}

function exchangesWith(world: Distant): number {
  return world.exchanges.filter(({ claims }) => claims.some(({ ahead }) => ahead !== undefined)).length;
}

describe("claiming ahead", () => {
  test("keeps slots busy while an exchange is under way, and never runs more than there are", async () => {
    const rate = async (claimsAhead: boolean) => {
      const { engine, clock, started, most, storage } = await makeDistant({ claimsAhead });
      await engine.intake.addMany(Array.from({ length: 400 }, () => retried()));
      await engine.start();
      await clock.advance(500);
      const before = started.length;
      for (let look = 0; look < 50; look += 1) {
        await clock.advance(7);
        const { running = 0 } = await storage.tasks.counts({ tenant: "default" });
        expect(running).toBeLessThanOrEqual(SLOTS);
      }
      expect(most()).toBeLessThanOrEqual(SLOTS);
      expect(new Set(started).size).toBe(started.length);
      return started.length - before;
    };
    const ideal = (350 / TASK_MS) * SLOTS;
    expect(await rate(false)).toBeLessThan(ideal * 0.5);
    expect(await rate(true)).toBeGreaterThan(ideal * 0.9);
  });

  test("reports when each task began, and ends all of them once", async () => {
    const world = await makeDistant();
    const { engine, clock, storage, states } = world;
    await engine.intake.addMany(Array.from({ length: 100 }, (_, n) => retried({ id: `t${n}` })));
    await engine.start();
    await clock.advance(5_000);
    expect(await states()).toEqual({ done: 100 });
    expect(exchangesWith(world)).toBeGreaterThan(0);
    const { tasks } = await storage.tasks.list({ tenant: "default", limit: 1_000 });
    for (const { startedAt, completedAt, attempts } of tasks) {
      expect(attempts).toMatchObject([{ startedAt, outcome: "done" }]);
      expect((completedAt ?? 0) - (startedAt ?? 0)).toBeGreaterThanOrEqual(TASK_MS);
    }
    const { events } = await storage.events.read({ after: 0, limit: 1_000, bytesMax: 1e9 });
    expect(events.filter(({ type }) => type === "task.started")).toHaveLength(100);
    expect(await storage.counters.recountAll()).toEqual([]);
  });

  test("claims no long tasks ahead, none that must not be lost, and none on a storage that is near", async () => {
    for (const [params, overrides] of [
      [{ taskMs: 10_000 }, { maxRetriesIfLost: 3 }],
      [{}, { maxRetriesIfLost: 0 }],
      [{ claimsAhead: false }, { maxRetriesIfLost: 3 }],
    ] as const) {
      const world = await makeDistant(params);
      await world.engine.intake.addMany(Array.from({ length: 60 }, () => newTask(overrides)));
      await world.engine.start();
      for (let look = 0; look < 60; look += 1) {
        await world.clock.advance(11);
        expect(await world.list("assigned")).toEqual([]);
      }
    }
  });

  test("writes ends together while enough is held, but at once for a caller that waits", async () => {
    const exchanges = async (isFollowed: boolean) => {
      const clock = new ManualClock();
      const storage = asDistantStorage(asSharedStorage(await openMemory(clock)));
      let ended = 0;
      const { engine, exchanges: made } = await makeEngine({
        clock,
        storage,
        concurrency: { tasks: 20 },
        isFollowed,
        // They end one after the other.
        executor: () => pause(clock, 40 + (ended++ % 40)),
        meddler: {
          before: (call) => (call.operation === "tasks.finishAndClaim" ? pause(clock, 4) : undefined),
        },
      });
      await engine.intake.addMany(Array.from({ length: 2_000 }, () => retried()));
      await engine.start();
      await clock.advance(1_000);
      const before = made.length;
      await clock.advance(1_000);
      return made.length - before;
    };
    const together = await exchanges(false);
    expect(await exchanges(true)).toBeGreaterThan(together * 1.3);
  });

  test("reports starts again whose exchange failed", async () => {
    let failures = 0;
    const world = await makeDistant({
      meddler: {
        before: ({ operation, params }) => {
          if (operation === "tasks.finishAndClaim" && params.begun?.length > 0 && ++failures < 3)
            throw new Error("away");
        },
      },
    });
    const { engine, clock, states, storage } = world;
    await engine.intake.addMany(Array.from({ length: 60 }, () => retried()));
    await engine.start();
    await clock.advance(10_000);
    expect(failures).toBeGreaterThan(2);
    expect(await states()).toEqual({ done: 60 });
    const { events } = await storage.events.read({ after: 0, limit: 1_000, bytesMax: 1e9 });
    expect(events.filter(({ type }) => type === "task.started")).toHaveLength(60);
  });
});

describe("a task that is held ahead", () => {
  test("does not begin after it was cancelled", async () => {
    const world = await makeDistant();
    const [first = "", ...others] = await holdSome(world);
    await world.storage.tasks.cancel({ tenant: "default", ids: [first], error: null });
    world.unblock();
    await world.clock.advance(5_000);
    expect(world.started).not.toContain(first);
    for (const id of others) expect(world.started).toContain(id);
    expect(await world.task(first)).toMatchObject({ state: "cancelled" });
    expect(await world.storage.counters.recountAll()).toEqual([]);
  });

  test("begins after a critical task that comes later, with a retry or without", async () => {
    for (const maxRetriesIfLost of [0, 3]) {
      const world = await makeDistant();
      const held = await holdSome(world);
      await world.engine.intake.add(newTask({ id: "urgent", priority: 0, maxRetriesIfLost }));
      const before = world.started.length;
      world.unblock();
      await world.clock.advance(5_000);
      const after = world.started.slice(before);
      expect(after.indexOf("urgent")).toBeLessThan(SLOTS + 1);
      expect(after.indexOf(held.at(-1) ?? "")).toBeGreaterThan(after.indexOf("urgent"));
    }
  });

  test("leaves the slot of a pre-empted task to the critical one", async () => {
    const world = await makeDistant();
    const held = await holdSome(world, { preemptible: true });
    const before = world.started.length;
    await world.engine.intake.add(newTask({ id: "urgent", priority: 0 }));
    await world.clock.advance(EXCHANGE_MS * 3);
    expect(world.started.slice(before)).toEqual(["urgent"]);
    expect(await world.list("assigned")).toEqual(held);
    expect(world.engine.running).toBe(SLOTS);
  });

  test("goes back to the queue when its node drains, uncounted", async () => {
    const world = await makeDistant();
    const held = await holdSome(world);
    const before = world.started.length;
    const drained = world.engine.drain(1_000);
    await world.clock.advance(100);
    for (const id of held) {
      expect(await world.task(id)).toMatchObject({
        state: "queued",
        retryCount: 0,
        startedAt: null,
        attempts: [],
      });
    }
    world.unblock();
    await world.clock.advance(5_000);
    await drained;
    expect(world.started).toHaveLength(before);
    expect(await world.storage.counters.recountAll()).toEqual([]);
  });

  test("goes back to the queue if no slot becomes free in time", async () => {
    const world = await makeDistant();
    const held = await holdSome(world);
    await world.clock.advance(600);
    expect(await world.list("assigned")).toEqual([]);
    for (const id of held) expect(await world.task(id)).toMatchObject({ state: "queued", retryCount: 0 });
    world.unblock();
    await world.clock.advance(10_000);
    expect(await world.states()).toEqual({ done: 300 });
  });

  test("does not begin if its node has lost its lease", async () => {
    const world = await makeDistant();
    const held = await holdSome(world);
    await killNode(world.storage, world.engine.node);
    const before = world.started.length;
    await world.clock.advance(6_000);
    world.unblock();
    expect(world.started.slice(before).filter((id) => held.includes(id))).toEqual([]);
    await world.clock.advance(60_000);
    expect(await world.states()).toEqual({ done: 300 });
    expect(new Set(held.map((id) => world.started.filter((each) => each === id).length))).toEqual(
      new Set([1]),
    );
  });

  test("is known to its heartbeat, which does not put it back", async () => {
    const world = await makeDistant();
    const held = await holdSome(world);
    for (let beat = 0; beat < 3; beat += 1) await beatOf(world);
    expect(await world.list("assigned")).toEqual(held);
  });

  test("counts in the memory that running tasks may hold", async () => {
    const world = await makeDistant({ maxRunningBytes: 1_000_000_000 });
    const held = await holdSome(world, { payload: "x".repeat(10_000) });
    expect(world.engine.memory.held).toBeGreaterThan((held.length + SLOTS) * 10_000);
    world.unblock();
    await world.clock.advance(60_000);
    expect(world.engine.memory.held).toBe(0);
  });

  test("is not begun past its deadline", async () => {
    const world = await makeDistant();
    const deadline = world.clock.now() + 600;
    const held = await holdSome(world, { deadline });
    await world.clock.advance(deadline + 1 - world.clock.now());
    world.unblock();
    await world.clock.advance(2_000);
    for (const id of held) {
      expect(world.started).not.toContain(id);
      expect(await world.task(id)).toMatchObject({ state: "failed" });
    }
  });
});

async function killNode(storage: Storage, node: string): Promise<void> {
  const record = (await storage.nodes.list()).find((each) => each.node === node);
  await storage.nodes.markDead({ node, beat: record?.beat ?? -1 });
}

/** A heartbeat of the node between two claims. */
async function beatOf({ engine, clock }: Distant): Promise<void> {
  engine.onSignal({ kind: "reconnected" });
  await settle();
  await clock.advance(1);
}
