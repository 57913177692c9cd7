import { expect, test } from "vitest";
import { makeEngine, newTask } from "../../test/support/engine.ts";
import { MIB } from "../model/bytes.ts";
import { Gate, until } from "../testing/signals.ts";
import { RunningBytes } from "./running-bytes.ts";

function memoryOf(max: number, running = 0, onRoom = () => {}): RunningBytes {
  return new RunningBytes({ max: () => max, running: () => running, onRoom });
}

test("fewer are claimed at once as less is left, one where one may be too much, and none from the bound on", () => {
  const memory = memoryOf(100 * MIB, 10);
  expect(memory.claimsMax).toBe(100);
  memory.hold(80 * MIB);
  expect(memory.claimsMax).toBe(2);
  memory.hold(20 * MIB - 1);
  expect([memory.claimsMax, memory.hasRoom]).toEqual([1, true]);
  memory.hold(1);
  expect([memory.claimsMax, memory.hasRoom]).toEqual([0, false]);
});

test("without a bound any number is claimed", () => {
  const memory = memoryOf(0);
  memory.hold(1e15);
  expect([memory.claimsMax, memory.hasRoom]).toEqual([Number.POSITIVE_INFINITY, true]);
});

test("says when there is room again, once", () => {
  let calls = 0;
  const memory = memoryOf(10, 1, () => void calls++);
  memory.hold(30);
  memory.release(20);
  expect(calls).toBe(0);
  memory.release(5);
  memory.release(5);
  expect(calls).toBe(1);
});

test("what was claimed together and holds more than was to be expected goes back to its place", async () => {
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
