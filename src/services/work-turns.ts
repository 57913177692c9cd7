import { TurnBudget } from "./turn-budget.ts";

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
  readonly #turns = new TurnBudget<object>({ pieces: 1, bytes: Number.POSITIVE_INFINITY });

  async run<Result>(steps: Steps<Result>): Promise<Result> {
    for (;;) {
      for (let count = 0; count < STEPS_PER_TURN; count += 1) {
        const { done, value } = steps.next();
        if (done) return value;
      }
      await this.#turns.next(steps);
      this.#turns.used(0);
    }
  }
}
