import { expect, test } from "vitest";
import { openTestRota } from "../../test/support/rota.ts";
import { asSharedStorage, away, openMemory } from "../../test/support/storages.ts";
import { ManualClock } from "../testing/manual-clock.ts";
import { hashOf, isApiKey, newApiKey } from "./api-key.ts";

test("a key has 256 random bits behind a prefix by which it is known, and its hash says nothing of it", () => {
  const keys = Array.from({ length: 100 }, newApiKey);
  expect(new Set(keys).size).toBe(100);
  for (const key of keys) {
    expect(key).toMatch(/^rota_[\w-]{43}$/);
    expect(isApiKey(key)).toBe(true);
    expect(hashOf(key)).toMatch(/^[\w-]{43}$/);
    expect(hashOf(key)).not.toContain(key.slice(5, 15));
  }
});

/** Two nodes on one storage. The second gets no signals of the first, unless it is `notified`. */
async function openNodes({ notified = false } = {}) {
  const clock = new ManualClock();
  const storage = asSharedStorage(await openMemory(clock));
  const deaf = { ...storage, subscribe: () => () => {} };
  const reads: string[] = [];
  const one = await openTestRota({ clock, storage });
  const other = await openTestRota({
    clock,
    storage: notified ? storage : deaf,
    meddler: {
      before: ({ operation }) => {
        if (operation.startsWith("keys.")) reads.push(operation);
      },
    },
  });
  return { clock, one: one.rota, other: other.rota, reads };
}

test("a key that is deleted elsewhere is unknown within a second, also without a notification", async () => {
  const { clock, one, other } = await openNodes();
  const { id, key } = await one.keys.create({ role: "viewer", name: "lost" });
  expect(await other.keys.callerOf(key)).toEqual({
    tenant: "default",
    role: "viewer",
    agent: null,
    keyId: id,
    keyName: "lost",
  });
  await one.keys.delete(id);
  expect(await one.keys.callerOf(key)).toBeNull();
  await clock.advance(1_000);
  expect(await other.keys.callerOf(key)).toBeNull();
});

test("that there is a key is known elsewhere at once, and within five seconds without a notification", async () => {
  for (const notified of [true, false]) {
    const { clock, one, other } = await openNodes({ notified });
    expect(await other.keys.any()).toBe(false);
    await one.keys.create({ role: "viewer", name: "first" });
    expect(await one.keys.any()).toBe(true);
    await clock.advance(notified ? 0 : 5_000);
    expect(await other.keys.any()).toBe(true);
  }
});

test("the storage is asked once a second for a key, however often it is used, and not for what is none", async () => {
  const { clock, one, other, reads } = await openNodes();
  const { key } = await one.keys.create({ role: "viewer", name: "busy" });
  await Promise.all(Array.from({ length: 100 }, () => other.keys.callerOf(key)));
  await clock.advance(500);
  await other.keys.callerOf(key);
  expect(reads.filter((read) => read === "keys.findByHashes")).toHaveLength(1);
  await clock.advance(500);
  await other.keys.callerOf(key);
  expect(reads.filter((read) => read === "keys.findByHashes")).toHaveLength(2);
  for (const none of ["", "rota_", "rota_short", `${key}x`, "Bearer"])
    expect(await other.keys.callerOf(none)).toBeNull();
  expect(reads.filter((read) => read === "keys.findByHashes")).toHaveLength(2);
});

test("a storage that no other process changes is asked for a key only after changes of keys", async () => {
  const reads: string[] = [];
  const meddler = {
    before: ({ operation }: { readonly operation: string }) => {
      if (["keys.any", "keys.findByHashes"].includes(operation)) reads.push(operation);
    },
  };
  const { rota, clock } = await openTestRota({ meddler });
  const expiresAt = new Date(clock.now() + 60_000).toISOString();
  const { id, key } = await rota.keys.create({ role: "viewer", name: "busy", expiresAt });
  const { gone } = rota.keys.watch(key);
  const isKnown = async () => [await rota.keys.any(), (await rota.keys.callerOf(key)) !== null];
  expect(await isKnown()).toEqual([true, true]);
  const before = reads.length;
  await clock.advance(59_000);
  expect(await isKnown()).toEqual([true, true]);
  expect(reads).toHaveLength(before);
  await clock.advance(1_000);
  expect(await isKnown()).toEqual([true, false]);
  expect(gone.aborted).toBe(true);
  await rota.keys.delete(id);
  expect(await isKnown()).toEqual([false, false]);
});

test("a watcher of a key is called within a second after it has expired, and at once when it is deleted elsewhere", async () => {
  const { clock, one, other } = await openNodes({ notified: true });
  const lost = await one.keys.create({ role: "viewer", name: "lost" });
  const expiresAt = new Date(clock.now() + 5_000).toISOString();
  const short = await one.keys.create({ role: "viewer", name: "short", expiresAt });
  const watches = [lost, short].map(({ key }) => other.keys.watch(key));
  const gone = () => watches.map((watch) => watch.gone.aborted);
  await clock.advance(4_000);
  expect(gone()).toEqual([false, false]);
  await one.keys.delete(lost.id);
  await clock.advance(0);
  expect(gone()).toEqual([true, false]);
  await clock.advance(1_000);
  expect(gone()).toEqual([true, true]);
});

test("a watcher is called within five seconds after its key was deleted elsewhere, also without a notification", async () => {
  const { clock, one, other, reads } = await openNodes();
  const lost = await one.keys.create({ role: "viewer", name: "lost" });
  const { gone } = other.keys.watch(lost.key);
  await clock.advance(60_000);
  expect(reads.filter((read) => read === "keys.findByHashes")).toHaveLength(12);
  await one.keys.delete(lost.id);
  await clock.advance(5_000);
  expect(gone.aborted).toBe(true);
});

test("in the process that deletes a key its watchers are called at once", async () => {
  const { rota, clock } = await openTestRota();
  const { id, key } = await rota.keys.create({ role: "viewer", name: "lost" });
  const { gone } = rota.keys.watch(key);
  await rota.keys.delete(id);
  await clock.advance(0);
  expect(gone.aborted).toBe(true);
});

test("a watch that is over costs nothing any more", async () => {
  const { clock, one, other, reads } = await openNodes();
  const { key } = await one.keys.create({ role: "viewer", name: "over" });
  other.keys.watch(key).stop();
  await clock.advance(1_000);
  const before = reads.length;
  await clock.advance(60_000);
  expect(reads.length).toBe(before);
});

test("a caller without a key is refused while the storage cannot say whether there are keys", async () => {
  let isAway = false;
  const { rota } = await openTestRota({
    meddler: {
      before: ({ operation }) => {
        if (isAway && operation === "keys.any") throw away();
      },
    },
  });
  expect(await rota.keys.any()).toBe(false);
  await rota.keys.create({ role: "admin", name: "first" });
  isAway = true;
  await expect(rota.keys.any()).rejects.toMatchObject({ code: "storage_unavailable" });
});

test("when a key was used last is written down soon, then twice a minute, and shown at once in the list of keys", async () => {
  const { clock, one, other, reads } = await openNodes();
  const { key } = await one.keys.create({ role: "viewer", name: "busy" });
  const lastUsed = async () => (await one.keys.list()).keys[0]?.lastUsedAt;
  expect(await lastUsed()).toBeUndefined();
  for (let use = 0; use < 10; use++) await other.keys.callerOf(key);
  await clock.advance(1_000);
  expect(await lastUsed()).toBe(new Date(clock.now() - 1_000).toISOString());
  expect(reads.filter((read) => read === "keys.touch")).toHaveLength(1);
  await one.keys.callerOf(key);
  expect(await lastUsed()).toBe(new Date(clock.now()).toISOString());
  reads.length = 0;
  for (let second = 0; second < 60; second++) {
    await other.keys.callerOf(key);
    await clock.advance(1_000);
  }
  expect(reads.filter((read) => read === "keys.touch")).toHaveLength(2);
});

test("the keys of all open streams are read together, and that there are keys is known from them", async () => {
  const { clock, one, other, reads } = await openNodes();
  const keys = await Promise.all(
    Array.from({ length: 10 }, () => one.keys.create({ role: "viewer", name: "reader" })),
  );
  const watches = keys.map(({ key }) => other.keys.watch(key));
  await clock.advance(1_000);
  reads.length = 0;
  for (let second = 0; second < 10; second++) {
    await clock.advance(1_000);
    expect(await other.keys.any()).toBe(true);
    for (const { key } of keys) expect(await other.keys.callerOf(key)).not.toBeNull();
  }
  const looked = reads.filter((operation) => operation !== "keys.touch");
  expect(looked).toEqual(Array(10).fill("keys.findByHashes"));
  const [first] = keys;
  if (first !== undefined) await one.keys.delete(first.id);
  await clock.advance(5_000);
  expect(watches.map(({ gone }) => gone.aborted)).toEqual(keys.map((key) => key === first));
  for (const watch of watches) watch.stop();
});

test("what was used last is written down before a Rota has stopped", async () => {
  const clock = new ManualClock();
  const storage = asSharedStorage(await openMemory(clock));
  const { rota } = await openTestRota({ clock, storage });
  const { key } = await rota.keys.create({ role: "viewer", name: "last" });
  await rota.keys.callerOf(key);
  await rota.stop();
  expect((await storage.keys.list({ tenant: "default" }))[0]?.lastUsedAt).toBe(clock.now());
});

test("a key that changes often makes a node look at the keys of its open streams once at a time", async () => {
  const { clock, one, other, reads } = await openNodes();
  const keys = await Promise.all(
    Array.from({ length: 10 }, () => one.keys.create({ role: "viewer", name: "reader" })),
  );
  const watches = keys.map(({ key }) => other.keys.watch(key));
  reads.length = 0;
  await Promise.all(Array.from({ length: 20 }, () => other.keys.create({ role: "viewer", name: "more" })));
  await clock.advance(0);
  // The check that is under way, and one after the last change: not one for each of the 20.
  const looked = reads.filter((operation) => operation === "keys.findByHashes").length;
  expect(looked).toBeLessThanOrEqual(3);
  for (const watch of watches) {
    expect(watch.gone.aborted).toBe(false);
    watch.stop();
  }
});
