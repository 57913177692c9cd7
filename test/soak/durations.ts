import { percentile } from "../../bench/figure.ts";

/** How long something took, each time since somebody last looked. */
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
