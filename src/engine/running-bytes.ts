import { TASK_BYTES_MAX } from "../model/task-input.ts";

export interface RunningBytesOptions {
  /** How many bytes the running tasks of this process may hold; 0: any number. */
  readonly max: () => number;
  /** How many tasks hold them. */
  readonly running: () => number;
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

  /** Whether tasks may start. */
  get hasRoom(): boolean {
    const { max } = this;
    return max === 0 || this.#held < max;
  }

  /**
   * How many tasks may be claimed at once: none while too much is held, one where one more may be too much. Those that come
   * are taken to hold as much as those that run do, and as much as the input of a task may take at least.
   */
  get claimsMax(): number {
    const { max } = this;
    if (max === 0) return Number.POSITIVE_INFINITY;
    if (this.#held >= max) return 0;
    const each = Math.max(this.#held / Math.max(this.#options.running(), 1), TASK_BYTES_MAX);
    return Math.max(Math.floor((max - this.#held) / each), 1);
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
