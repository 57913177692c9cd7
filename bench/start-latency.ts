import { setTimeout as sleep } from "node:timers/promises";
import { type NewStorage, withStorage } from "./empty-storage.ts";
import { openRota, taskInput } from "./workload.ts";

/** Between samples: the end of the one before is written by then, and nothing is left to do. */
const PAUSE_MS = 5;
/** Not counted: code that runs for the first times is slow. */
const WARM_UP = 100;

/** Milliseconds from calling `submit` to the start of the handler, one task at a time. */
export function measureStartLatency(
  newStorage: NewStorage,
  { samples }: { samples: number },
): Promise<number[]> {
  return withStorage(newStorage, async (target) => {
    let started: (at: number) => void = () => {};
    const rota = await openRota(target.url, { handler: () => started(performance.now()) });
    await rota.start();
    const latencies: number[] = [];
    for (let n = 0; n < WARM_UP + samples; n++) {
      const start = new Promise<number>((resolve) => {
        started = resolve;
      });
      const begun = performance.now();
      await rota.tasks.submit(taskInput(n));
      latencies.push((await start) - begun);
      await sleep(PAUSE_MS);
    }
    await rota.stop();
    return latencies.slice(WARM_UP);
  });
}
