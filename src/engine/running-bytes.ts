import { MIB } from "../model/bytes.ts";
import { DEPENDENCY_BYTES_MAX } from "../model/task.ts";

/** What a task that is about to be claimed takes at most before anything is known of it: its input and the results handed on. */
const CLAIM_BYTES_MAX = DEPENDENCY_BYTES_MAX + MIB;

export interface RunningBytesOptions {
  /** How many bytes the running tasks of this process may hold; 0: any number. */
  readonly max: () => number;
  /** Called when there is room again after there was none. */
  readonly onRoom: () => void;
}

/**
 * How many bytes the running tasks of this process hold, as far as it knows: their input, the results of their dependencies,
 * requests, the answers that arrive, and results that are not stored yet. An executor that ignores its signal holds them
 * until it returns.
 */
export class RunningBytes {
  readonly #options: RunningBytesOptions;
  #held = 0;

  constructor(options: RunningBytesOptions) {
    this.#options = options;
  }

  get held(): number {
    return this.#held;
  }

  /** 0: any number. */
  get max(): number {
    return this.#options.max();
  }

  /** How many tasks may be claimed at once: none while too much is held; one where one more may be too much. */
  get claimsMax(): number {
    const { max } = this;
    if (max === 0) return Number.POSITIVE_INFINITY;
    if (this.#held >= max) return 0;
    return Math.max(Math.floor((max - this.#held) / CLAIM_BYTES_MAX), 1);
  }

  hold(bytes: number): void {
    this.#held += bytes;
  }

  release(bytes: number): void {
    if (bytes === 0) return;
    const before = this.#held;
    this.#held -= bytes;
    const { max } = this;
    if (max > 0 && before >= max && this.#held < max) this.#options.onRoom();
  }
}
