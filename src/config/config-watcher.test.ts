import { expect, test } from "vitest";
import { ManualClock, settle } from "../testing/manual-clock.ts";
import { Latch } from "../testing/signals.ts";
import { ConfigWatcher } from "./config-watcher.ts";

function watch(load: () => number | Promise<number>) {
  const clock = new ManualClock();
  const reloads: number[] = [];
  const faults: (string | null)[] = [];
  const rota = {
    reload: async (options: number) => {
      if (options < 0) throw new Error(`${options} is refused`);
      reloads.push(options);
    },
    configFault: (error: Error | null) => void faults.push(error?.message ?? null),
  };
  const watcher = new ConfigWatcher(30_000, load, rota, { clock });
  return { watcher, clock, reloads, faults };
}

test("reads at once, and then every interval, until it is stopped", async () => {
  let loads = 0;
  const { watcher, clock, reloads, faults } = watch(() => ++loads);
  expect(loads).toBe(0);
  watcher.start();
  await settle();
  expect(reloads).toEqual([1]);
  await clock.advance(29_999);
  expect(reloads).toEqual([1]);
  await clock.advance(1);
  expect(reloads).toEqual([1, 2]);
  await clock.advance(60_000);
  expect(reloads).toEqual([1, 2, 3, 4]);
  watcher.stop();
  watcher.stop();
  await clock.advance(120_000);
  expect([loads, clock.pending]).toEqual([4, 0]);
  expect(faults).toEqual([null, null, null, null]);
});

test("started twice it watches once, and started again after a stop it goes on", async () => {
  let loads = 0;
  const { watcher, clock, reloads } = watch(() => ++loads);
  watcher.start();
  await settle();
  watcher.start();
  await settle();
  expect(clock.pending).toBe(1);
  watcher.stop();
  watcher.start();
  await settle();
  expect(reloads).toEqual([1, 2, 3]);
  await clock.advance(30_000);
  expect(reloads).toEqual([1, 2, 3, 4]);
});

test("a look that is asked for comes at once, and moves the next one", async () => {
  let loads = 0;
  const { watcher, clock, reloads } = watch(() => ++loads);
  watcher.look();
  expect(loads).toBe(0);
  watcher.start();
  await clock.advance(20_000);
  watcher.look();
  await settle();
  expect(reloads).toEqual([1, 2]);
  await clock.advance(29_000);
  expect(reloads).toEqual([1, 2]);
  await clock.advance(1_000);
  expect(reloads).toEqual([1, 2, 3]);
});

test("loads never overlap: one that hangs is waited for, and looks meanwhile become one", async () => {
  const latches: Latch<number>[] = [];
  const { watcher, clock, reloads } = watch(() => {
    const latch = new Latch<number>();
    latches.push(latch);
    return latch.opened;
  });
  watcher.start();
  await clock.advance(300_000);
  watcher.look();
  watcher.look();
  await settle();
  expect(latches).toHaveLength(1);
  latches[0]?.open(1);
  await settle();
  expect(latches).toHaveLength(2);
  latches[1]?.open(2);
  await settle();
  expect([latches.length, reloads]).toEqual([2, [1, 2]]);
});

test("what is loaded after a stop is not taken over, also when it was started again", async () => {
  const latches = [new Latch<number>(), new Latch<number>()];
  let loads = 0;
  const { watcher, reloads, faults } = watch(() => (latches[loads++] as Latch<number>).opened);
  watcher.start();
  watcher.stop();
  watcher.start();
  latches[1]?.open(2);
  await settle();
  latches[0]?.open(1);
  await settle();
  expect([reloads, faults]).toEqual([[2], [null]]);
});

test("what cannot be loaded or is refused is logged, and the watcher goes on", async () => {
  const said: (number | Error | string)[] = [new Error("no such file"), -1, 5, "odd"];
  const { watcher, clock, reloads, faults } = watch(() => {
    const next = said.shift() ?? 7;
    if (typeof next === "number") return next;
    throw next;
  });
  watcher.start();
  await clock.advance(120_000);
  expect(reloads).toEqual([5, 7]);
  expect(faults).toEqual([
    "no such file",
    "-1 is refused",
    null,
    "the configuration cannot be loaded: odd",
    null,
  ]);
});

test("does with anything that can be reloaded", async () => {
  const reloads: string[] = [];
  const clock = new ManualClock();
  const watcher = new ConfigWatcher(
    10,
    () => "options",
    { reload: async (options) => reloads.push(options) },
    { clock },
  );
  watcher.start();
  await clock.advance(10);
  expect(reloads).toEqual(["options", "options"]);
  watcher.stop();
});

test("waits for a load that returns a promise", async () => {
  const { watcher, reloads } = watch(async () => 3);
  watcher.start();
  await settle();
  expect(reloads).toEqual([3]);
});

test.each([0, -1, Number.NaN, "5"])("refuses the interval %s", (intervalMs) => {
  expect(() => new ConfigWatcher(intervalMs as number, () => 1, { reload: async () => {} })).toThrow(
    "`intervalMs` must be a number above 0",
  );
});
