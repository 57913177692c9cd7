import { isDeepStrictEqual } from "node:util";
import type { Clock } from "../model/clock.ts";
import { TargetGuard } from "../outbound/target-guard.ts";

/** The guard that the settings describe right now. */
export class CurrentGuard {
  readonly #allow: () => readonly string[];
  readonly #clock: Clock;
  #allowed: readonly string[];
  #guard: TargetGuard;

  constructor(params: { readonly allow: () => readonly string[]; readonly clock: Clock }) {
    this.#allow = params.allow;
    this.#clock = params.clock;
    this.#allowed = this.#allow();
    this.#guard = new TargetGuard({ allow: this.#allowed, clock: this.#clock });
  }

  get value(): TargetGuard {
    const allow = this.#allow();
    if (isDeepStrictEqual(allow, this.#allowed)) return this.#guard;
    // The old one may end what it is doing, and lets go of its connections by itself once they rest.
    this.#allowed = allow;
    this.#guard = new TargetGuard({ allow, clock: this.#clock });
    return this.#guard;
  }

  close(): Promise<void> {
    return this.#guard.close();
  }
}
