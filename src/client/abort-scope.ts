import type { Clock, Timer } from "../model/clock.ts";

/**
 * The signal of one request. It fires with the caller's signal, after a time limit, or when the client itself aborts. `end()`
 * removes the listener from the caller's signal, which may live much longer than the request.
 */
export class AbortScope {
  readonly #controller = new AbortController();
  readonly #parent: AbortSignal | undefined;
  readonly #clock: Clock;
  #limit: Timer | undefined;
  #timedOut = false;

  constructor(clock: Clock, parent?: AbortSignal) {
    this.#clock = clock;
    this.#parent = parent;
    if (parent?.aborted) this.#onAbort();
    else parent?.addEventListener("abort", this.#onAbort, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Whether a time limit fired. */
  get timedOut(): boolean {
    return this.#timedOut;
  }

  /** Fires after `ms`, unless the limit is lifted or set again before. */
  limit(ms: number, reason?: () => unknown): void {
    this.lift();
    this.#limit = this.#clock.setTimer(ms, () => {
      this.#timedOut = true;
      this.#controller.abort(reason?.());
    });
  }

  lift(): void {
    this.#limit?.cancel();
    this.#limit = undefined;
  }

  abort(): void {
    this.#controller.abort();
  }

  end(): void {
    this.lift();
    this.#parent?.removeEventListener("abort", this.#onAbort);
  }

  readonly #onAbort = (): void => this.#controller.abort(this.#parent?.reason);
}
