import { perSecond } from "../../workload.ts";
import { CpuCost } from "../cpu-cost.ts";
import type { Handler } from "../queue.ts";
import { fill, type Measure, SECONDS_MAX, WARM_UP } from "./measure.ts";

/**
 * Tasks a second of a backlog that is run empty, until the last end is written down; and what one costs in processor
 * time, which hardly depends on what else the machine does.
 */
export const drain: Measure = async ({ queue, url, sizes }) => {
  await fill(queue, WARM_UP + sizes.drain);
  const counter = new Starts();
  const [first, all] = [counter.reached(WARM_UP), counter.reached(WARM_UP + sizes.drain)];
  const cpu = await CpuCost.of(url);
  await queue.start(counter.handler);
  const begun = await first;
  await all;
  await queue.drained();
  const elapsedMs = performance.now() - begun;
  const { ownMs, serverMs } = await cpu.read();
  if (counter.started !== WARM_UP + sizes.drain) throw new Error(`${counter.started} tasks were started`);
  const cpuUs = ((ownMs + serverMs) * 1_000) / counter.started;
  return { perSecond: perSecond(sizes.drain, elapsedMs), cpuUs };
};

/** Tasks a second that are started while more of them wait than are measured. */
export const drainWindow: Measure = async ({ queue, sizes }) => {
  const counter = new Starts();
  const [first, last] = [counter.reached(WARM_UP), counter.reached(WARM_UP + sizes.window)];
  await queue.start(counter.handler);
  const begun = await first;
  const ended = await Promise.race([last, counter.stoppedAfter(SECONDS_MAX * 1_000)]);
  return { perSecond: perSecond(Math.min(counter.started - WARM_UP, sizes.window), ended - begun) };
};

/** What one run takes out of a backlog, and what is started beyond it until the system has stopped. */
export function windowTasks(window: number): number {
  return WARM_UP + window + 5_000;
}

class Starts {
  started = 0;
  readonly #marks = new Map<number, (at: number) => void>();

  readonly handler: Handler = () => {
    this.started += 1;
    this.#marks.get(this.started)?.(performance.now());
  };

  reached(count: number): Promise<number> {
    return new Promise((resolve) => this.#marks.set(count, resolve));
  }

  stoppedAfter(ms: number): Promise<number> {
    return new Promise((resolve) => setTimeout(() => resolve(performance.now()), ms).unref());
  }
}
