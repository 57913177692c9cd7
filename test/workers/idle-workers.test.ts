import { expect, test } from "vitest";
import type { Storage } from "../../src/storage/storage.ts";
import { ManualClock } from "../../src/testing/manual-clock.ts";
import { openTestServer } from "../support/http.ts";
import { openMemory } from "../support/storages.ts";
import { arrived, claimTasks, registerWorker } from "../support/workers.ts";

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

test("workers that only wait cost less than a statement a second", async () => {
  const clock = new ManualClock();
  const { storage, calls } = counting(await openMemory(clock));
  const { ask } = await openTestServer({ clock, storage });
  const workers = await Promise.all(
    Array.from({ length: 20 }, (_, n) => registerWorker(ask, { name: `w${n}`, slots: 5 })),
  );
  const waiting = workers.map((worker) => claimTasks(ask, worker, { waitS: 25 }));
  await arrived();
  await clock.advance(1_000);
  calls.clear();
  for (let second = 0; second < 15; second += 1) await clock.advance(1_000);
  const statements = [...calls.values()].reduce((sum, count) => sum + count, 0);
  expect(statements, JSON.stringify([...calls])).toBeLessThan(15);
  expect((await ask("/v1/workers")).body.workers).toHaveLength(20);
  for (const { state } of (await ask("/v1/workers")).body.workers) expect(state).toBe("idle");
  await clock.advance(10_000);
  await Promise.all(waiting);
});
