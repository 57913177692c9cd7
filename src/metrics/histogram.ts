/** Upper bounds in seconds: from the time of a function in this process to the longest timeout of a task. */
export const BUCKETS_SEC = [
  0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600,
] as const;

const BOUNDS_MS = BUCKETS_SEC.map((sec) => sec * 1_000);

/** The distribution of durations. It is updated with every task, so `observe` only compares and adds. */
export class Histogram {
  /** How many fell between each bound and the one before. The last: beyond all bounds. */
  readonly #counts: number[] = new Array(BOUNDS_MS.length + 1).fill(0);
  #sumMs = 0;

  observe(ms: number): void {
    let bucket = 0;
    while (bucket < BOUNDS_MS.length && ms > (BOUNDS_MS[bucket] as number)) bucket += 1;
    this.#counts[bucket] = (this.#counts[bucket] as number) + 1;
    this.#sumMs += ms;
  }

  get sumSec(): number {
    return this.#sumMs / 1_000;
  }

  /** How many took at most as long as each bound. The last: all of them. */
  cumulated(): number[] {
    let sum = 0;
    return this.#counts.map((count) => (sum += count));
  }
}
