import type { Rota } from "../src/interface/rota.ts";
import { type NewStorage, withStorage } from "./empty-storage.ts";
import { openRota, perSecond, StartCounter, taskInputs } from "./workload.ts";

export interface ConcurrentSubmitsParams {
  readonly tasks: number;
  /** Callers, each of which waits for its answer before it submits the next. */
  readonly callers: number;
}

/** Tasks a second that many callers submit one by one, nothing being run meanwhile. */
export function measureConcurrentSubmits(
  newStorage: NewStorage,
  params: ConcurrentSubmitsParams,
): Promise<number> {
  return withStorage(newStorage, async (target) => {
    const rota = await openRota(target.url, {});
    const begun = performance.now();
    await submitAll(rota, params);
    const elapsedMs = performance.now() - begun;
    await rota.stop();
    return perSecond(params.tasks, elapsedMs);
  });
}

/** The same while what arrives is run: until the last end is written down. */
export function measureThroughput(newStorage: NewStorage, params: ConcurrentSubmitsParams): Promise<number> {
  return withStorage(newStorage, async (target) => {
    const counter = new StartCounter();
    const rota = await openRota(target.url, { handler: counter.handler });
    await rota.start();
    const allStarted = counter.reached(params.tasks);
    const begun = performance.now();
    await submitAll(rota, params);
    await allStarted;
    await rota.drain();
    const elapsedMs = performance.now() - begun;
    await rota.stop();
    return perSecond(params.tasks, elapsedMs);
  });
}

async function submitAll(rota: Rota, { tasks, callers }: ConcurrentSubmitsParams): Promise<void> {
  const inputs = taskInputs(tasks)[Symbol.iterator]();
  const call = async () => {
    for (const input of inputs) await rota.tasks.submit(input);
  };
  await Promise.all(Array.from({ length: callers }, call));
}
