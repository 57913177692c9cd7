import { expect, test } from "vitest";
import { makeEngine, newTask } from "../../test/support/engine.ts";
import { MIB } from "../model/bytes.ts";
import { Gate, until } from "../testing/signals.ts";
import { RunningBytes } from "./running-bytes.ts";

test("few are claimed at once as less is left, one where one may be too much, and none from the bound on", () => {
  const memory = new RunningBytes({ max: () => 100 * MIB, onRoom: () => {} });
  expect(memory.claimsMax).toBe(20);
  memory.hold(80 * MIB);
  expect(memory.claimsMax).toBe(4);
  memory.hold(20 * MIB - 1);
  expect(memory.claimsMax).toBe(1);
  memory.hold(1);
  expect(memory.claimsMax).toBe(0);
});

test("without a bound any number is claimed", () => {
  const memory = new RunningBytes({ max: () => 0, onRoom: () => {} });
  memory.hold(1e15);
  expect(memory.claimsMax).toBe(Number.POSITIVE_INFINITY);
});

test("says when there is room again, once", () => {
  let calls = 0;
  const memory = new RunningBytes({ max: () => 10, onRoom: () => calls++ });
  memory.hold(30);
  memory.release(20);
  expect(calls).toBe(0);
  memory.release(5);
  memory.release(5);
  expect(calls).toBe(1);
});

test("a process goes beyond its bound by one task at most, in all lanes, and goes on as tasks end", async () => {
  const gates: Gate[] = [];
  let most = 0;
  let ended = 0;
  const { engine, states } = await makeEngine({
    concurrency: { tasks: 50, main: 50 },
    maxRunningBytes: 10 * MIB,
    executor: () => {
      const gate = new Gate();
      gates.push(gate);
      most = Math.max(most, gates.length);
      return gate.opened.then(() => void ended++);
    },
  });
  const payload = "x".repeat(MIB);
  const lanes = ["tasks", "main"] as const;
  const tasks = Array.from({ length: 30 }, (_, n) => newTask({ payload, lane: lanes[n % 2] as string }));
  await engine.start();
  await engine.intake.addMany(tasks);
  await until(() => gates.length === 10);
  expect(engine.memory.held).toBeGreaterThanOrEqual(10 * MIB);
  expect(engine.memory.held).toBeLessThan(11 * MIB);
  // What ends makes room for as many, and all are run in the end.
  while (ended < 30) {
    gates.shift()?.open();
    await until(() => engine.running === Math.min(10, 30 - ended) && gates.length === engine.running);
    expect(engine.memory.held).toBeLessThan(11 * MIB);
  }
  await until(async () => (await states()).done === 30);
  expect([most, engine.memory.held]).toEqual([10, 0]);
});
