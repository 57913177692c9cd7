/**
 * One call that several wait for. Whoever stops waiting leaves it to the others; when the last one has gone, it is
 * dropped.
 */
export class SharedCall<Value> {
  readonly #abort = new AbortController();
  readonly #answer: Promise<Value>;
  #waiting = 0;
  #isOver = false;

  constructor(call: (signal: AbortSignal) => Promise<Value>) {
    this.#answer = call(this.#abort.signal).finally(() => {
      this.#isOver = true;
    });
    // Those who wait are told; when nobody does any more, nobody needs to know.
    this.#answer.catch(() => {});
  }

  /** Answered, failed or dropped: it is too late to wait for it. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Its answer; throws the signal's reason when that fires first. */
  async wait(signal: AbortSignal): Promise<Value> {
    signal.throwIfAborted();
    const gone = Promise.withResolvers<never>();
    const onAbort = () => {
      // At once, so that nobody joins a call that is about to be dropped.
      this.#leave();
      gone.reject(signal.reason);
    };
    signal.addEventListener("abort", onAbort, { once: true });
    this.#waiting++;
    try {
      return await Promise.race([this.#answer, gone.promise]);
    } finally {
      signal.removeEventListener("abort", onAbort);
      if (!signal.aborted) this.#leave();
    }
  }

  #leave(): void {
    this.#waiting--;
    if (this.#waiting > 0) return;
    this.#isOver = true;
    this.#abort.abort();
  }
}
