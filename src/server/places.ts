import { RotaError } from "../model/errors.ts";

export interface PlacesOptions {
  readonly max: number;
  /** How many of them one key can have, so that none takes them all. */
  readonly maxEach: number;
  readonly what: string;
}

/** How many requests of a kind may be open at once: each holds a connection, and whoever opens them can open many. */
export class Places {
  readonly #options: PlacesOptions;
  readonly #each = new Map<string, number>();
  #taken = 0;

  constructor(options: PlacesOptions) {
    this.#options = options;
  }

  get taken(): number {
    return this.#taken;
  }

  /** `key`: what whoever takes it came with; null: nobody was asked for one. Throws `rate_limited`; else answers what gives the place back. */
  take(key: string | null): () => void {
    const { max, maxEach, what } = this.#options;
    if (this.#taken >= max) throw full(`${max} ${what} are open`, this.#taken, max);
    if (key !== null) {
      const own = this.#each.get(key) ?? 0;
      if (own >= maxEach) throw full(`${maxEach} ${what} are open with this API key`, own, maxEach);
      this.#each.set(key, own + 1);
    }
    this.#taken += 1;
    let given = true;
    return () => {
      if (given) this.#giveBack(key);
      given = false;
    };
  }

  #giveBack(key: string | null): void {
    this.#taken -= 1;
    if (key === null) return;
    const left = (this.#each.get(key) ?? 1) - 1;
    if (left === 0) this.#each.delete(key);
    else this.#each.set(key, left);
  }
}

function full(what: string, open: number, max: number): RotaError {
  return new RotaError("rate_limited", `${what}, and there can be no more: close some`, {
    details: { open, max },
  });
}
