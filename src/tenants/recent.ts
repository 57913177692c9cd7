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

  get(): Promise<Value> {
    const { clock, maxAgeMs, read } = this.#options;
    if (this.#last !== null && clock.monotonic() - this.#last.askedAt < maxAgeMs) return this.#last.answer;
    const asked = { askedAt: clock.monotonic(), answer: read() };
    this.#last = asked;
    asked.answer.catch(() => {
      if (this.#last === asked) this.#last = null;
    });
    return asked.answer;
  }

  /** Later calls start a new read, even while one is under way. */
  drop(): void {
    this.#last = null;
  }
}
