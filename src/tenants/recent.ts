import type { Clock } from "../model/clock.ts";

export interface RecentOptions<Value> {
  readonly clock: Clock;
  /** How old a value may be, counted from the start of its read. */
  readonly maxAgeMs: number;
  readonly read: () => Promise<Value>;
}

/** A cached value that is read again when it is too old or was dropped. Concurrent callers share one read. */
export class Recent<Value> {
  readonly #options: RecentOptions<Value>;
  #last: { readonly askedAt: number; readonly answer: Promise<Value> } | null = null;

  constructor(options: RecentOptions<Value>) {
    this.#options = options;
  }

  get(maxAgeMs = this.#options.maxAgeMs): Promise<Value> {
    const { clock, read } = this.#options;
    if (this.#last !== null && !this.isOlder(maxAgeMs)) return this.#last.answer;
    const asked = { askedAt: clock.monotonic(), answer: read() };
    this.#last = asked;
    asked.answer.catch(() => {
      if (this.#last === asked) this.#last = null;
    });
    return asked.answer;
  }

  /** Whether a caller that accepts values of this age would have to read. */
  isOlder(maxAgeMs = this.#options.maxAgeMs): boolean {
    return this.#last === null || this.#options.clock.monotonic() - this.#last.askedAt >= maxAgeMs;
  }

  /** A read for other callers, which began then, has returned this, too. What was asked since stays. */
  put(value: Value, askedAt: number): void {
    if (this.#last !== null && this.#last.askedAt >= askedAt) return;
    this.#last = { askedAt, answer: Promise.resolve(value) };
  }

  /** Later calls start a new read, even while one is under way. */
  drop(): void {
    this.#last = null;
  }
}
