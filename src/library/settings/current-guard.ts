import { isDeepStrictEqual } from "node:util";
import type { Clock } from "../../model/clock.ts";
import { type OutboundTargets, TargetGuard } from "../../outbound/target-guard.ts";

/** The guard that the settings describe right now. */
export class CurrentGuard {
  readonly #targets: () => OutboundTargets;
  readonly #clock: Clock;
  #current: OutboundTargets;
  #guard: TargetGuard;

  constructor(params: { readonly targets: () => OutboundTargets; readonly clock: Clock }) {
    this.#targets = params.targets;
    this.#clock = params.clock;
    this.#current = this.#targets();
    this.#guard = new TargetGuard({ ...this.#current, clock: this.#clock });
  }

  get value(): TargetGuard {
    const targets = this.#targets();
    if (isDeepStrictEqual(targets, this.#current)) return this.#guard;
    // The old guard finishes its requests, and closes its connections by itself once they are idle.
    this.#current = targets;
    this.#guard = new TargetGuard({ ...targets, clock: this.#clock });
    return this.#guard;
  }

  close(): Promise<void> {
    return this.#guard.close();
  }
}
