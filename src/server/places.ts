import { RotaError } from "../model/errors.ts";

/** How many requests of a kind may be open at once: each holds a connection, and whoever opens them can open many. */
export class Places {
  readonly #max: number;
  readonly #what: string;
  #taken = 0;

  constructor({ max, what }: { readonly max: number; readonly what: string }) {
    this.#max = max;
    this.#what = what;
  }

  get taken(): number {
    return this.#taken;
  }

  /** Throws `rate_limited`; else answers what gives the place back. */
  take(): () => void {
    if (this.#taken >= this.#max) {
      throw new RotaError(
        "rate_limited",
        `${this.#max} ${this.#what} are open, and there can be no more: close some`,
        { details: { open: this.#taken, max: this.#max } },
      );
    }
    this.#taken += 1;
    let given = true;
    return () => {
      if (given) this.#taken -= 1;
      given = false;
    };
  }
}
