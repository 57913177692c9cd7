import { expect, test } from "vitest";
import { away, meddle, openMemory } from "../../../test/support/storages.ts";
import { newTask, TENANT } from "../../storage/conformance/world.ts";
import type { DependencyResultsParams, Storage, StoredDependency } from "../../storage/storage.ts";
import { ManualClock } from "../../testing/manual-clock.ts";
import { Latch, until } from "../../testing/signals.ts";
import { DependencyReader } from "./dependency-results.ts";

/** A storage that has results of these sizes, and writes down how many bytes it was asked for at once. */
function storageOf(sizes: Readonly<Record<string, number>>) {
  const asked: number[] = [];
  const dependencyResults = async ({ ids, bytesMax }: DependencyResultsParams) => {
    let left = bytesMax;
    const found = ids.map((taskId): StoredDependency => {
      const resultBytes = sizes[taskId] ?? 0;
      left = resultBytes <= left ? left - resultBytes : -1;
      return { taskId, resultBytes, result: left < 0 ? null : JSON.stringify("x".repeat(resultBytes - 2)) };
    });
    asked.push(found.reduce((sum, { result }) => sum + (result?.length ?? 0), 0));
    return found;
  };
  return { asked, storage: { tasks: { dependencyResults } } as unknown as Storage };
}

function readerOf(storage: Storage, clock = new ManualClock()) {
  const reader = new DependencyReader({ storage, clock, random: () => 0 });
  return (ids: readonly string[], signal = new AbortController().signal) =>
    reader.read({ seq: 1, tenant: TENANT, spec: { ...newTask().spec, dependsOn: ids } }, signal);
}

test("small results are read at once", async () => {
  const { asked, storage } = storageOf({ a: 10, b: 16_000, c: 20 });
  const { results, bytes } = await readerOf(storage)(["a", "b", "c"]);
  expect(results.map(({ taskId }) => taskId)).toEqual(["a", "b", "c"]);
  expect([asked, bytes]).toEqual([[16_030], 16_030]);
});

test("large ones are read in slices, up to the bound, and of the rest only their sizes are known", async () => {
  const sizes = {
    a: 10,
    b: 1_000_000,
    c: 100_000,
    d: 100_000,
    e: 1_000_000,
    f: 1_000_000,
    g: 1_000_000,
    h: 5,
  };
  const { asked, storage } = storageOf(sizes);
  const { results, bytes } = await readerOf(storage)(Object.keys(sizes));
  expect(asked).toEqual([10, 1_000_000, 200_000, 1_000_000, 1_000_000]);
  expect(bytes).toBe(3_200_010);
  expect(results.map(({ taskId, result }) => [taskId, (result as string | undefined)?.length])).toEqual([
    ["a", 8],
    ["b", 999_998],
    ["c", 99_998],
    ["d", 99_998],
    ["e", 999_998],
    ["f", 999_998],
    ["g", undefined],
    ["h", undefined],
  ]);
  expect(results.slice(-2)).toEqual([
    { taskId: "g", resultBytes: 1_000_000, omitted: true },
    { taskId: "h", resultBytes: 5, omitted: true },
  ]);
});

test("tasks that start together read no more in a turn of the event loop than one of them alone", async () => {
  const { asked, storage } = storageOf({ a: 1_000_000, b: 1_000_000 });
  const read = readerOf(storage);
  const all = Promise.all(Array.from({ length: 20 }, () => read(["a", "b"])));
  let most = 0;
  let over = false;
  void all.then(() => {
    over = true;
  });
  while (!over) {
    const before = asked.reduce((sum, bytes) => sum + bytes, 0);
    await new Promise((resolve) => setImmediate(resolve));
    most = Math.max(most, asked.reduce((sum, bytes) => sum + bytes, 0) - before);
  }
  // Two turns may end between two looks.
  expect(most).toBeLessThanOrEqual(2_000_000);
  expect(asked.reduce((sum, bytes) => sum + bytes, 0)).toBe(40_000_000);
});

test("a task with large results starts in a turn of the event loop in which none are read", async () => {
  const { asked, storage } = storageOf({ a: 1_000_000 });
  const read = readerOf(storage);
  let started = 0;
  const start = async () => {
    await read(["a"]);
    started += 1;
  };
  const all = Promise.all(Array.from({ length: 20 }, start));
  // The first queries are small: they only ask for the sizes.
  await until(() => asked.length >= 20);
  while (started < 20) {
    const before = { started, asked: asked.length };
    await new Promise((resolve) => setImmediate(resolve));
    expect(Math.min(started - before.started, asked.length - before.asked)).toBe(0);
  }
  await all;
});

test("the reads of many tasks with small results run at the same time", async () => {
  let asked = 0;
  const answer = new Latch();
  const dependencyResults = async () => {
    asked += 1;
    await answer.opened;
    return [];
  };
  const storage = { tasks: { dependencyResults } } as unknown as Storage;
  const read = readerOf(storage);
  const all = Array.from({ length: 200 }, () => read(["a"]));
  await until(() => asked === 200);
  answer.open();
  await Promise.all(all);
});

test("the read waits for an unavailable storage until it responds, or the attempt is over", async () => {
  const clock = new ManualClock();
  let broken = true;
  const storage = meddle(await openMemory(clock), {
    before: () => {
      if (broken) throw away();
    },
  });
  const stop = new AbortController();
  const read = readerOf(storage, clock);
  const reading = read([]);
  const stopped = expect(read([], stop.signal)).rejects.toBe("over");
  await clock.advance(5_000);
  stop.abort("over");
  await clock.advance(5_000);
  await stopped;
  broken = false;
  await clock.advance(5_000);
  expect(await reading).toEqual({ results: [], bytes: 0 });
});
