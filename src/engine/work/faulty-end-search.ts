import { errorText } from "../../attempts/attempt-error.ts";
import type { Finish } from "./completer.ts";

/** Ends of attempts written in one transaction: a larger one would make other writes wait longer. */
const FINISHES_MAX = 200;
/** After this many failures on its own, for reasons other than the connection, an end counts as one that cannot be stored. */
const ALONE_TRIES_MAX = 5;

/**
 * Finds the end because of which a write fails again and again: each failure halves the next group, until that end is alone and
 * does not block the others. Each success doubles it.
 */
export class FaultyEndSearch {
  #max = FINISHES_MAX;

  /** How many ends the next exchange may write. */
  get max(): number {
    return this.#max;
  }

  get isOn(): boolean {
    return this.#max < FINISHES_MAX;
  }

  /** A write of these ends failed, and not because of the connection. */
  failed(finishes: readonly Finish[]): void {
    this.#max = Math.max(Math.floor(finishes.length / 2), 1);
  }

  /** A write succeeded. `left`: how many ends wait; none: the search is over. */
  succeeded(left: number): void {
    this.#max = left === 0 ? FINISHES_MAX : Math.min(this.#max * 2, FINISHES_MAX);
  }
}

/** An end whose write failed on its own: it is tried again, or replaced by a failure of its task. */
export function afterFailure(finish: Finish, error: unknown): Finish {
  const failures = finish.failures + 1;
  if (failures < ALONE_TRIES_MAX) return { ...finish, failures };
  const settlement = { to: "failed", error: `its end could not be stored: ${errorText(error)}` } as const;
  // Usage and summary may be what cannot be stored: they are left out.
  const { usage: _, summary: __, ...bare } = finish;
  return { ...bare, failures, settlement };
}
