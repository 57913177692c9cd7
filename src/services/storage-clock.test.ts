import { expect, test } from "vitest";
import { asSharedStorage, openMemory } from "../../test/support/storages.ts";
import { ManualClock } from "../testing/manual-clock.ts";
import { StorageClock } from "./storage-clock.ts";

test("a storage of our own has our time", async () => {
  const clock = new ManualClock();
  const storageClock = new StorageClock({ clock, storage: await openMemory(clock) });
  await storageClock.sync();
  clock.set(clock.now() + 3_600_000);
  expect(storageClock.now()).toBe(clock.now());
});

test("a shared storage has its own time, whatever this machine's clock does", async () => {
  const clock = new ManualClock();
  const elsewhere = new ManualClock(clock.now() + 90_000);
  const storageClock = new StorageClock({ clock, storage: asSharedStorage(await openMemory(elsewhere)) });
  await storageClock.sync();
  expect(storageClock.now()).toBe(elsewhere.now());
  clock.set(0);
  await clock.advance(1_000);
  expect(storageClock.now()).toBe(elsewhere.now() + 1_000);
});

test("a shared storage's time is asked for again now and then, not every time", async () => {
  const clock = new ManualClock();
  const elsewhere = new ManualClock(clock.now());
  const storageClock = new StorageClock({ clock, storage: asSharedStorage(await openMemory(elsewhere)) });
  await storageClock.sync();
  elsewhere.set(elsewhere.now() + 70);
  await storageClock.sync();
  expect(storageClock.now()).toBe(clock.now());
  await clock.advance(5_000);
  await elsewhere.advance(5_000);
  await storageClock.sync();
  expect(storageClock.now()).toBe(elsewhere.now());
});
