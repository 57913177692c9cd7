import { expect, test } from "vitest";
import { ManualClock } from "../../src/testing/manual-clock.ts";
import { ask as askUrl, openTestServer } from "../support/http.ts";
import { asSharedStorage, openMemory } from "../support/storages.ts";
import { type Ask, claimsWait, claimTasks, registerWorker } from "../support/workers.ts";

const WORKERS = 20;
const SECONDS = 75;

/**
 * Operations for workers and for keys, each of which is a statement. A write of keys on SQLite, which is twice a minute, is three.
 * A storage that other nodes share may lose signals about keys, so it is asked once a second whether they are still there.
 */
test.each([
  { storage: "an exclusive storage", keys: 0, perSecond: 1 },
  { storage: "an exclusive storage", keys: WORKERS, perSecond: 1 },
  { storage: "a shared storage", keys: 0, perSecond: 2 },
  { storage: "a shared storage", keys: WORKERS, perSecond: 2 },
])(
  "workers with $keys keys that only wait cost $storage at most $perSecond statements a second",
  async ({ storage, keys, perSecond }) => {
    const clock = new ManualClock();
    const calls = new Map<string, number>();
    const memory = await openMemory(clock);
    const { url, rota } = await openTestServer({
      clock,
      storage: storage === "a shared storage" ? asSharedStorage(memory) : memory,
      meddler: {
        before: ({ operation }) => {
          if (/^(workers|keys)\./.test(operation)) calls.set(operation, (calls.get(operation) ?? 0) + 1);
        },
      },
    });
    const created = await Promise.all(
      Array.from({ length: keys }, (_, n) => rota.keys.create({ role: "operator", name: `w${n}` })),
    );
    const asks = Array.from({ length: WORKERS }, (_, n): Ask => {
      const headers = keys === 0 ? {} : { authorization: `Bearer ${created[n % keys]?.key}` };
      return (path, init) => askUrl(url + path, { headers, ...init });
    });
    const [ask = askUrl] = asks;
    const workers = await Promise.all(asks.map((own, n) => registerWorker(own, { name: `w${n}`, slots: 5 })));
    // Claims end with the second. Keys are read a second after the last time, which is seldom at the same moment.
    await clock.advance(300);
    let isOver = false;
    const askAgain = async (own: Ask, worker: string) => {
      while (!isOver) await claimTasks(own, worker, { waitS: 25 });
    };
    const waiting = asks.map((own, n) => askAgain(own, workers[n] ?? ""));
    await claimsWait(ask, WORKERS);
    await clock.advance(1_000);
    calls.clear();
    // In this time each claim ends and is made again three times.
    for (let second = 0; second < SECONDS; second += 1) {
      await clock.advance(1_000);
      await claimsWait(ask, WORKERS);
    }
    // Of the metrics.
    calls.delete("workers.count");
    const statements = [...calls.values()].reduce((sum, count) => sum + count, 0);
    expect(statements, JSON.stringify([...calls])).toBeLessThanOrEqual(perSecond * SECONDS);
    const { body } = await ask("/v1/workers");
    expect(body.workers).toHaveLength(WORKERS);
    for (const { state } of body.workers) expect(state).toBe("idle");
    isOver = true;
    await clock.advance(25_000);
    await Promise.all(waiting);
  },
);
