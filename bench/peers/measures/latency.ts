import { setTimeout as sleep } from "node:timers/promises";
import { percentile } from "../../figure.ts";
import { type Measure, SECONDS_MAX, task } from "./measure.ts";

const WARM_UP = 50;
/** Between samples: the end of the one before is written by then, and nothing is left to do. */
const PAUSE_MS = 5;

/** Milliseconds from handing a task in to the start of its handler, one task at a time. */
export const latency: Measure = async ({ queue, tuning, sizes }) => {
  let started: (at: number) => void = () => {};
  await queue.start(() => started(performance.now()));
  const latencies: number[] = [];
  const enough = performance.now() + SECONDS_MAX * 1_000;
  for (let n = 0; n < WARM_UP + sizes.samples && performance.now() < enough; n++) {
    const start = new Promise<number>((resolve) => {
      started = resolve;
    });
    const begun = performance.now();
    await queue.add(task(n));
    latencies.push((await start) - begun);
    // A queue that polls must not be measured at the same point of its interval every time.
    await sleep(PAUSE_MS + Math.random() * Math.max(tuning.pollMs, PAUSE_MS));
  }
  const counted = latencies.slice(WARM_UP);
  return { p50: percentile(counted, 50), p99: percentile(counted, 99) };
};
