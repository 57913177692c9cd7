/**
 * One call that several callers share. A caller that stops waiting does not end it for the others. When the last one stops
 * waiting, the call is aborted.
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
    // Waiting callers get the error. Without callers, the rejection must not count as unhandled.
    this.#answer.catch(() => {});
  }

  /** Whether the call has succeeded, failed or been aborted: it is too late to wait for it. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Returns the result of the call. Throws the signal's reason if the signal fires first. */
  async wait(signal: AbortSignal): Promise<Value> {
    signal.throwIfAborted();
    const gone = Promise.withResolvers<never>();
    const onAbort = () => {
      // At once, so that no caller joins a call that is about to be aborted.
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
