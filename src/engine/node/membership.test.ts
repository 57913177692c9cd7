import { describe, expect, test } from "vitest";
import { type EngineParams, makeEngine, newTask } from "../../../test/support/engine.ts";
import { asSharedStorage, away, type Call, openMemory } from "../../../test/support/storages.ts";
import { ManualClock, settle } from "../../testing/manual-clock.ts";
import { Latch } from "../../testing/signals.ts";

/** An engine, and the slots that it registered with the storage, in order. */
async function makeReporting(params: EngineParams = {}) {
  const reported: { operation: string; node: string; slots: Record<string, number> }[] = [];
  const made = await makeEngine({
    ...params,
    meddler: {
      ...params.meddler,
      before: (call: Call) => {
        if (call.operation === "nodes.register" || call.operation === "nodes.setSlots") {
          const { node, slots } = call.params;
          reported.push({ operation: call.operation.slice("nodes.".length), node, slots });
        }
        return params.meddler?.before?.(call);
      },
    },
  });
  return { ...made, reported };
}

describe("a node reports to the storage how many tasks of each lane it runs at once:", () => {
  test("with its name when it starts, and nothing more while nothing changes", async () => {
    const { engine, clock, reported } = await makeReporting({ concurrency: { tasks: 4, main: 30 } });
    await engine.start();
    engine.settingsChanged();
    await clock.advance(600_000);
    expect(reported).toEqual([{ operation: "register", node: "node", slots: { tasks: 4, main: 30 } }]);
  });

  test("anew when that changes, and once", async () => {
    const concurrency: Record<string, number> = { tasks: 4 };
    const { engine, clock, reported } = await makeReporting({ concurrency });
    await engine.start();
    concurrency["tasks"] = 2;
    concurrency["main"] = 1;
    engine.settingsChanged();
    engine.settingsChanged();
    await clock.advance(60_000);
    expect(reported.slice(1)).toEqual([
      { operation: "setSlots", node: "node", slots: { tasks: 2, main: 1 } },
    ]);
  });

  test("and what it can execute, again after the storage was restored to an earlier state", async () => {
    const operations: string[] = [];
    const { engine } = await makeEngine({
      meddler: { before: ({ operation }) => void operations.push(operation) },
    });
    await engine.start();
    expect(operations).not.toContain("nodes.setAbilities");
    engine.restored();
    await settle();
    expect(operations).toEqual(expect.arrayContaining(["nodes.setSlots", "nodes.setAbilities"]));
  });

  test("a lane that left the configuration is still run, and stays reported", async () => {
    const concurrency: Record<string, number> = { tasks: 4, main: 1 };
    const { engine, reported } = await makeReporting({ concurrency });
    await engine.start();
    delete concurrency["main"];
    concurrency["tasks"] = 5;
    engine.settingsChanged();
    await settle();
    expect(reported.at(-1)?.slots).toEqual({ tasks: 5, main: 1 });
  });

  test("again and again until the storage is available again", async () => {
    const concurrency: Record<string, number> = { tasks: 4 };
    let broken = false;
    const { engine, clock, log, reported } = await makeReporting({
      concurrency,
      meddler: {
        before: ({ operation }) => {
          if (broken && operation === "nodes.setSlots") throw away();
        },
      },
    });
    await engine.start();
    broken = true;
    concurrency["tasks"] = 2;
    engine.settingsChanged();
    await clock.advance(10_000);
    const tries = reported.length;
    expect(tries).toBeGreaterThan(3);
    expect(log.messages("error")).toEqual([]);
    broken = false;
    await clock.advance(10_000);
    expect(reported).toHaveLength(tries + 1);
    expect(reported.at(-1)).toEqual({ operation: "setSlots", node: "node", slots: { tasks: 2 } });
  });

  test("also when it undoes a write whose response was lost", async () => {
    const concurrency: Record<string, number> = { tasks: 4 };
    const { engine, clock, reported } = await makeReporting({
      concurrency,
      meddler: {
        after: ({ operation, params }) => {
          if (operation !== "nodes.setSlots" || params.slots.tasks !== 2) return;
          concurrency["tasks"] = 4;
          engine.settingsChanged();
          throw away();
        },
      },
    });
    await engine.start();
    concurrency["tasks"] = 2;
    engine.settingsChanged();
    await clock.advance(10_000);
    expect(reported.slice(1).map(({ slots }) => slots)).toEqual([{ tasks: 2 }, { tasks: 4 }]);
  });

  test("none as soon as it drains, while its running tasks go on", async () => {
    const latch = new Latch();
    const { engine, reported, states } = await makeReporting({ executor: () => latch.opened });
    await engine.start();
    await engine.intake.add(newTask());
    await settle();
    const draining = engine.drain(60_000);
    await settle();
    expect(reported.slice(1)).toEqual([{ operation: "setSlots", node: "node", slots: {} }]);
    expect(await states()).toEqual({ running: 1 });
    latch.open();
    await draining;
    expect(reported).toHaveLength(2);
  });
});

describe("a node that lost its lease", () => {
  async function makeNode(params: EngineParams = {}) {
    const clock = new ManualClock();
    return makeReporting({ ...params, clock, storage: asSharedStorage(await openMemory(clock)) });
  }

  test("reports its slots with its new id, as they are by then", async () => {
    const concurrency: Record<string, number> = { tasks: 4 };
    const { engine, clock, reported } = await makeNode({ concurrency });
    await engine.start();
    await settle();
    clock.set(clock.now() + 3_600_000);
    concurrency["tasks"] = 3;
    engine.settingsChanged();
    await clock.advance(10_000);
    expect(engine.node).toBe("node-2");
    expect(reported.at(-1)).toEqual({ operation: "register", node: "node-2", slots: { tasks: 3 } });
  });
});
