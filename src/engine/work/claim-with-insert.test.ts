import { describe, expect, test } from "vitest";
import { type EngineParams, makeEngine, manyTasks, newTask } from "../../../test/support/engine.ts";
import { asDistantStorage, asSharedStorage, away, openMemory } from "../../../test/support/storages.ts";
import { pause } from "../../clock/pause.ts";
import type { Executor } from "../../executors/executor.ts";
import { ManualClock, settle } from "../../testing/manual-clock.ts";
import { Latch } from "../../testing/signals.ts";

const SLOTS = 4;

/** A started engine on a storage whose exchanges take long. Its tasks take `taskMs`. */
async function makeDistant({ taskMs = 10, ...params }: EngineParams & { taskMs?: number } = {}) {
  const clock = new ManualClock();
  const storage = asDistantStorage(asSharedStorage(await openMemory(clock)));
  const started: string[] = [];
  let running = 0;
  let most = 0;
  const executor: Executor = async ({ taskId }) => {
    started.push(taskId);
    most = Math.max(most, ++running);
    await pause(clock, taskMs);
    running -= 1;
  };
  const made = await makeEngine({ clock, storage, executor, concurrency: { tasks: SLOTS }, ...params });
  await made.engine.start();
  await settle();
  const claimed = () => made.exchanges.filter(({ claims }) => claims.some(({ limit }) => limit > 0)).length;
  return { ...made, started, claimed, most: () => most };
}

describe("an insert on a node with free slots", () => {
  test("starts its tasks without an exchange", async () => {
    const { engine, started, exchanges, clock, states } = await makeDistant();
    const before = exchanges.length;
    await engine.intake.addMany([newTask({ id: "a" }), newTask({ id: "b" })]);
    await settle();
    expect(started).toEqual(["a", "b"]);
    expect(exchanges.length).toBe(before);
    await clock.advance(100);
    expect(await states()).toEqual({ done: 2 });
  });

  test("starts them before it is known to be kept", async () => {
    const kept = new Latch();
    const { engine, started } = await makeDistant({
      meddler: { after: ({ operation }) => (operation === "tasks.insert" ? kept.opened : undefined) },
    });
    const inserted = engine.intake.add(newTask({ id: "a" }));
    await settle();
    expect(started).toEqual(["a"]);
    kept.open();
    expect(await inserted).toMatchObject({ id: "a", state: "queued" });
  });

  test("leaves what does not fit to the next exchange, and never runs more than its slots", async () => {
    const { engine, clock, states, most, started } = await makeDistant();
    for (let round = 0; round < 40; round += 1) {
      void engine.intake.addMany(manyTasks(1 + (round % 7)));
      await clock.advance(round % 3);
    }
    await clock.advance(2_000);
    expect(new Set(started).size).toBe(started.length);
    expect(await states()).toEqual({ done: started.length });
    expect(most()).toBe(SLOTS);
  });

  test("keeps its slots free for others if it fails", async () => {
    let failures = 0;
    const { engine, started, clock } = await makeDistant({
      meddler: {
        before: ({ operation }) => {
          if (operation === "tasks.insert" && ++failures < 3) throw away();
        },
      },
    });
    const inserted = engine.intake.addMany(manyTasks(SLOTS));
    await clock.advance(1_000);
    await inserted;
    expect(started.length).toBe(SLOTS);
  });

  test("holds up no later task if beginning its own fails", async () => {
    let isFaulty = true;
    const { engine, started, clock } = await makeDistant({
      meddler: {
        before: ({ operation, params: { claim } }) => {
          if (operation !== "tasks.insert" || claim === undefined || !isFaulty) return;
          isFaulty = false;
          const { onClaimed } = claim;
          claim.onClaimed = () => onClaimed({ finished: [], expired: [], claimed: [{ token: 1 }] });
        },
      },
    });
    await expect(engine.intake.add(newTask({ id: "a" }))).rejects.toThrow(TypeError);
    await engine.intake.add(newTask({ id: "b" }));
    await clock.advance(20_000);
    expect(started).toContain("b");
  });

  test("starts nothing on a node that stops meanwhile", async () => {
    const arrives = new Latch();
    const { engine, started, clock, states } = await makeDistant({
      meddler: { before: ({ operation }) => (operation === "tasks.insert" ? arrives.opened : undefined) },
    });
    const inserted = engine.intake.add(newTask({ id: "a" }));
    await settle();
    const drained = engine.drain(1_000);
    arrives.open();
    await inserted;
    await clock.advance(1_000);
    await drained;
    expect(started).toEqual([]);
    expect(await states()).toEqual({ queued: 1 });
  });

  test("leaves tasks with an idempotency key to an exchange that is sent right behind it", async () => {
    const arrives = new Latch();
    const { engine, started, claimed, clock } = await makeDistant({
      meddler: { after: ({ operation }) => (operation === "tasks.insert" ? arrives.opened : undefined) },
    });
    const before = claimed();
    const idempotency = { key: "once", hash: "same" };
    const inserted = engine.intake.add(newTask({ id: "a", idempotency }));
    await settle();
    expect(claimed()).toBe(before + 1);
    expect(started).toEqual(["a"]);
    arrives.open();
    await inserted;
    await clock.advance(100);
    expect(started).toEqual(["a"]);
  });

  test("does not claim while an exchange is under way", async () => {
    const answered = new Latch();
    let held = false;
    const { engine, clock, started, most, states } = await makeDistant({
      taskMs: 1,
      meddler: {
        before: ({ operation, params }) => {
          if (operation === "tasks.insert" && held) expect(params.claim).toBeUndefined();
        },
        after: ({ operation, params }) =>
          operation === "tasks.finishAndClaim" && params.finishes.length > 0 && held
            ? answered.opened
            : undefined,
      },
    });
    await engine.intake.addMany(manyTasks(2));
    held = true;
    await clock.advance(10);
    const inserted = engine.intake.addMany(manyTasks(SLOTS));
    await clock.advance(10);
    held = false;
    answered.open();
    await inserted;
    await clock.advance(100);
    expect(await states()).toEqual({ done: started.length });
    expect(most()).toBe(SLOTS);
  });
});
