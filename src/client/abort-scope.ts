import type { Clock, Timer } from "../model/clock.ts";

/**
 * The signal of one request: it fires with its caller's, when a time limit is passed, or when the client itself has
 * seen enough. `end()` lets go of the caller's signal, which may live much longer than the request.
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

  /** Whether it was a time limit that fired. */
  get timedOut(): boolean {
    return this.#timedOut;
  }

  /** Fires after so long, unless the limit is lifted or set anew before. */
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
