import { RotaError } from "../model/errors.ts";

export interface SlotPoolOptions {
  readonly max: number;
  /** The most slots of one key, so that no key takes all of them. */
  readonly maxEach: number;
  readonly what: string;
}

/** Limits how many requests of a kind are open at once: each holds a connection, and one caller can open many. */
export class SlotPool {
  readonly #options: SlotPoolOptions;
  readonly #each = new Map<string, number>();
  #taken = 0;

  constructor(options: SlotPoolOptions) {
    this.#options = options;
  }

  get taken(): number {
    return this.#taken;
  }

  /** Takes a slot for `key` (null: a server without keys), and returns the function that frees it. Throws `rate_limited`. */
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
