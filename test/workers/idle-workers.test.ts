import { expect, test } from "vitest";
import type { Storage } from "../../src/storage/storage.ts";
import { ManualClock } from "../../src/testing/manual-clock.ts";
import { openTestServer } from "../support/http.ts";
import { openMemory } from "../support/storages.ts";
import { claimsWait, claimTasks, registerWorker } from "../support/workers.ts";

/** Counts the calls of the operations for workers. */
function counting(storage: Storage): { storage: Storage; calls: Map<string, number> } {
  const calls = new Map<string, number>();
  const workers = new Proxy(storage.workers, {
    get(target, name: keyof Storage["workers"]) {
      const operation = target[name] as (...params: unknown[]) => unknown;
      return (...params: unknown[]) => {
        calls.set(name, (calls.get(name) ?? 0) + 1);
        return operation(...params);
      };
    },
  });
  return { storage: { ...storage, workers }, calls };
}

test("workers that only wait cost at most a statement a second", async () => {
  const clock = new ManualClock();
  const { storage, calls } = counting(await openMemory(clock));
  const { ask } = await openTestServer({ clock, storage });
  const workers = await Promise.all(
    Array.from({ length: 20 }, (_, n) => registerWorker(ask, { name: `w${n}`, slots: 5 })),
  );
  let isOver = false;
  const askAgain = async (worker: string) => {
    while (!isOver) await claimTasks(ask, worker, { waitS: 25 });
  };
  const waiting = workers.map(askAgain);
  await claimsWait(ask, 20);
  await clock.advance(1_000);
  calls.clear();
  // In this time each claim ends and is made again three times.
  for (let second = 0; second < 75; second += 1) {
    await clock.advance(1_000);
    await claimsWait(ask, 20);
  }
  // Of the metrics.
  calls.delete("count");
  const statements = [...calls.values()].reduce((sum, count) => sum + count, 0);
  expect(statements, JSON.stringify([...calls])).toBeLessThanOrEqual(75);
  expect((await ask("/v1/workers")).body.workers).toHaveLength(20);
  for (const { state } of (await ask("/v1/workers")).body.workers) expect(state).toBe("idle");
  isOver = true;
  await clock.advance(25_000);
  await Promise.all(waiting);
});
