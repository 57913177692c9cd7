/** Steps of a computation in one turn of the event loop: some milliseconds at most. */
export const STEPS_PER_TURN = 10;

/** A computation that yields after each step, which takes well below a millisecond. */
export type Steps<Result> = Generator<void, Result, void>;

/**
 * Runs long computations for callers, a few steps in each turn of the event loop. Computations take turns: other work never
 * waits for the steps of more than one. A short computation ends at once.
 *
 * @example
 * const preview = await turns.run(previewSteps(rule, range));
 */
export class WorkTurns {
  readonly #waiting: (() => boolean)[] = [];
  #working = false;

  run<Result>(steps: Steps<Result>): Promise<Result> {
    return new Promise((resolve, reject) => {
      const advance = (): boolean => {
        try {
          for (let count = 0; count < STEPS_PER_TURN; count += 1) {
            const { done, value } = steps.next();
            if (!done) continue;
            resolve(value);
            return true;
          }
          return false;
        } catch (error) {
          reject(error);
          return true;
        }
      };
      if (advance()) return;
      this.#waiting.push(advance);
      if (!this.#working) void this.#work();
    });
  }

  async #work(): Promise<void> {
    this.#working = true;
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      await new Promise((resolve) => setImmediate(resolve));
      if (!next()) this.#waiting.push(next);
    }
    this.#working = false;
  }
}
