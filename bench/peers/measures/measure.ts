import { AGENTS, perSecond } from "../../workload.ts";
import type { Queue, Task, Tuning } from "../queue.ts";
import type { PeerSizes } from "../sizes.ts";

/** One run of one measurement, in a process of its own, on a storage that the caller made. */
export type Measure = (run: Run) => Promise<Values>;

export interface Run {
  /** The measurement closes it. */
  readonly queue: Queue;
  readonly url: string;
  readonly tuning: Tuning;
  readonly sizes: PeerSizes;
  /** Tasks to fill a storage with; 0 for everything else. */
  readonly count: number;
}

export type Values = Readonly<Record<string, number>>;

/**
 * Not counted: code that runs for the first times is slow, and each run begins in a new process. As many as the largest
 * batch that is fetched in advance, so that none of what is measured was fetched before the clock ran.
 */
export const WARM_UP = 2_000;
/** Tasks of one call of `addMany`. */
export const PER_CALL = 1_000;
/** Where a system is so slow that a run would not end, what it did until then is its figure. */
export const SECONDS_MAX = 60;

export function task(n: number): Task {
  return { agentId: `agent-${n % AGENTS}`, n };
}

export async function fill(queue: Queue, count: number): Promise<void> {
  for (let from = 0; from < count; from += PER_CALL) {
    await queue.addMany(tasks(from, Math.min(PER_CALL, count - from)));
  }
}

export function tasks(from: number, count: number): Task[] {
  return Array.from({ length: count }, (_, n) => task(from + n));
}

/** Does something up to `count` times, and answers how often a second. */
export async function rateOf(count: number, once: (n: number) => Promise<void>, per = 1): Promise<number> {
  const begun = performance.now();
  const enough = begun + SECONDS_MAX * 1_000;
  let done = 0;
  while (done < count && performance.now() < enough) {
    await once(done);
    done += per;
  }
  return perSecond(done, performance.now() - begun);
}
