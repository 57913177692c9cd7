import { RotaError } from "../model/errors.ts";

export interface UnreadBytesOptions {
  readonly max: number;
  /** The most bytes of one key, so that no key takes all the room. */
  readonly maxEach: number;
}

const MIB = 1_048_576;
export const UNREAD_BYTES: UnreadBytesOptions = { max: 256 * MIB, maxEach: 32 * MIB };

/**
 * Counts the bytes of responses that callers have not read yet and that are still in memory. A request is cheap: without a bound,
 * one key could fill the memory with responses that it never reads.
 */
export class UnreadBytes {
  readonly #options: UnreadBytesOptions;
  readonly #each = new Map<string, number>();
  #all = 0;

  constructor(options: UnreadBytesOptions) {
    this.#options = options;
  }

  get all(): number {
    return this.#all;
  }

  /** Refuses a key whose unread responses have reached its limit. Throws `rate_limited`. `key` null: a server without keys. */
  check(key: string | null): void {
    const { maxEach } = this.#options;
    if (this.#of(key) >= maxEach) throw tooMuch("of this API key", maxEach);
  }

  /** Returns the function to call once the bytes are read, or the caller is gone. Throws `rate_limited`. */
  add(key: string | null, bytes: number): () => void {
    const { max, maxEach } = this.#options;
    // A response larger than the limit is sent when it is the only one.
    if (this.#all > 0 && this.#all + bytes > max) throw tooMuch("of all callers", max);
    if (this.#of(key) > 0 && this.#of(key) + bytes > maxEach) throw tooMuch("of this API key", maxEach);
    this.#change(key, bytes);
    let counted = true;
    return () => {
      if (counted) this.#change(key, -bytes);
      counted = false;
    };
  }

  #of(key: string | null): number {
    return key === null ? 0 : (this.#each.get(key) ?? 0);
  }

  #change(key: string | null, bytes: number): void {
    this.#all += bytes;
    if (key === null) return;
    const own = this.#of(key) + bytes;
    if (own === 0) this.#each.delete(key);
    else this.#each.set(key, own);
  }
}

function tooMuch(owner: string, bytesMax: number): RotaError {
  return new RotaError(
    "rate_limited",
    `the unread responses ${owner} may take ${bytesMax} bytes, and this one would exceed that: read them first, or request less at once`,
    { details: { bytesMax } },
  );
}
