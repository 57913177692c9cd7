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

/** A shared storage with a correct clock. It takes this long before and after it reads the clock. */
async function openSlow() {
  const clock = new ManualClock();
  const storage = asSharedStorage(await openMemory(clock));
  const slow = { beforeMs: 0, afterMs: 0, asked: 0 };
  const now = async () => {
    slow.asked += 1;
    await clock.advance(slow.beforeMs);
    const at = await storage.now();
    await clock.advance(slow.afterMs);
    return at;
  };
  return { clock, slow, storageClock: new StorageClock({ clock, storage: { ...storage, now } }) };
}

test.each([
  ["waited for", { beforeMs: 4_000, afterMs: 0 }],
  ["looked at late", { beforeMs: 0, afterMs: 4_000 }],
])("a shared storage whose response is %s is not taken to be ahead of its time", async (_name, times) => {
  const { clock, slow, storageClock } = await openSlow();
  Object.assign(slow, times);
  await storageClock.sync();
  expect(storageClock.now()).toBeLessThanOrEqual(clock.now());
  expect(storageClock.now()).toBeGreaterThanOrEqual(clock.now() - times.beforeMs - times.afterMs);
});

test("a slow response does not replace a better measurement, and is soon followed by another one", async () => {
  const { clock, slow, storageClock } = await openSlow();
  await storageClock.sync();
  Object.assign(slow, { afterMs: 4_000 });
  await clock.advance(5_000);
  await storageClock.sync();
  expect(storageClock.now()).toBe(clock.now());
  Object.assign(slow, { afterMs: 0, asked: 0 });
  await storageClock.sync();
  expect(slow.asked).toBe(0);
  await clock.advance(1_000);
  await storageClock.sync();
  await storageClock.sync();
  expect(slow.asked).toBe(1);
});

test("a shared storage whose clock is set back is followed", async () => {
  const clock = new ManualClock();
  const elsewhere = new ManualClock(clock.now());
  const storageClock = new StorageClock({ clock, storage: asSharedStorage(await openMemory(elsewhere)) });
  await storageClock.sync();
  elsewhere.set(elsewhere.now() - 60_000);
  await clock.advance(5_000);
  await storageClock.sync();
  expect(storageClock.now()).toBe(elsewhere.now());
});

test("a sleep until a time lasts a millisecond at least, so that nothing spins, and no longer than it may", async () => {
  const clock = new ManualClock();
  const storageClock = new StorageClock({ clock, storage: await openMemory(clock) });
  const now = clock.now();
  expect(storageClock.sleepMs(now + 700, 5_000)).toBe(700);
  expect(storageClock.sleepMs(now - 1, 5_000)).toBe(1);
  expect(storageClock.sleepMs(now + 60_000, 5_000)).toBe(5_000);
  expect(storageClock.sleepMs(null, 5_000)).toBe(5_000);
});
