import type { Clock } from "../model/clock.ts";

export interface RecentOptions<Value> {
  readonly clock: Clock;
  /** How old an answer may be, counted from when it was asked for. */
  readonly maxAgeMs: number;
  readonly read: () => Promise<Value>;
}

/** Something that is read again when the last answer is too old or was dropped. Those who ask at once share one answer. */
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

  /** Whoever asks from now on gets a new answer, also while one is on its way. */
  drop(): void {
    this.#last = null;
  }
}
