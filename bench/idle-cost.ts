import { setTimeout as sleep } from "node:timers/promises";
import { type EmptyStorage, type NewStorage, withStorage } from "./empty-storage.ts";
import { openRota } from "./workload.ts";

/** What starting leaves to be done is done by then. */
const SETTLE_MS = 2_000;

export interface IdleCost {
  /** Of one core. */
  readonly cpuPercent: number;
  /** How far each counter moved. */
  readonly counted: readonly number[];
}

/** What a started Rota with nothing to do takes. `counters` are read before and after. */
export function measureIdleCost(newStorage: NewStorage, params: IdleParams): Promise<IdleCost> {
  return withStorage(newStorage, async (target) => {
    const rota = await openRota(target.url, {});
    await rota.start();
    await sleep(SETTLE_MS);
    const cost = await idleCost(target, params);
    await rota.stop();
    return cost;
  });
}

export interface IdleParams {
  readonly seconds: number;
  readonly counters: (target: EmptyStorage) => Promise<readonly Counter[]>;
}

/** What this process takes while nothing is asked of it. */
export async function idleCost(target: EmptyStorage, { seconds, counters }: IdleParams): Promise<IdleCost> {
  const open = await counters(target);
  const before = await Promise.all(open.map((counter) => counter.read()));
  const cpuBefore = process.cpuUsage();
  const begun = performance.now();
  await sleep(seconds * 1_000);
  const { user, system } = process.cpuUsage(cpuBefore);
  const elapsedMs = performance.now() - begun;
  const after = await Promise.all(open.map((counter) => counter.read()));
  await Promise.all(open.map((counter) => counter.close()));
  return {
    cpuPercent: ((user + system) / 1_000 / elapsedMs) * 100,
    counted: after.map((value, index) => value - (before[index] ?? 0)),
  };
}

export interface Counter {
  read(): Promise<number>;
  close(): Promise<void>;
}
