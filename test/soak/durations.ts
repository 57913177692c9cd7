import { percentile } from "../../bench/figure.ts";

/** Durations measured since the last sample. */
export class Durations {
  #values: number[] = [];

  add(ms: number): void {
    this.#values.push(ms);
  }

  /** The percentiles of what came since the last look; NaN: nothing came. */
  take(percents: readonly number[]): number[] {
    const values = this.#values;
    this.#values = [];
    return percents.map((percent) => percentile(values, percent));
  }
}
