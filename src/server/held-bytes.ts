import { RotaError } from "../model/errors.ts";

export interface HeldBytesOptions {
  readonly max: number;
  /** The most bytes of one key, so that no key takes all the room. */
  readonly maxEach: number;
}

/** Which bytes they are, and what the caller can do about them, for error messages. */
interface HeldKind {
  readonly what: string;
  readonly advice: string;
}

/** The caller of a request. */
interface BytesOwner {
  /** Null: a server without keys. */
  readonly keyId: string | null;
  readonly tenant: string;
}

const MIB = 1_048_576;
export const HELD_BYTES: HeldBytesOptions = { max: 256 * MIB, maxEach: 32 * MIB };

/**
 * Counts bytes of callers that are in memory, like responses that they have not read yet. A request is cheap: without a bound,
 * one key could fill the memory with them.
 */
export class HeldBytes {
  readonly #options: HeldBytesOptions & HeldKind;
  readonly #hasSecondTenant: () => boolean;
  readonly #each = new Map<string, number>();
  readonly #tenants = new Map<string, number>();
  #all = 0;

  /** One tenant takes at most half of the bytes once a second enabled tenant exists. */
  constructor(options: HeldBytesOptions & HeldKind, hasSecondTenant: () => boolean) {
    this.#options = options;
    this.#hasSecondTenant = hasSecondTenant;
  }

  get all(): number {
    return this.#all;
  }

  /** Refuses a caller whose bytes have reached a limit. Throws `rate_limited`. */
  check({ keyId, tenant }: BytesOwner): void {
    if (keyId === null) return;
    const { maxEach } = this.#options;
    if (bytesOf(this.#each, keyId) >= maxEach) throw this.#tooMuch("of this API key", maxEach);
    if (bytesOf(this.#tenants, tenant) >= this.#tenantMax)
      throw this.#tooMuch("of this tenant", this.#tenantMax);
  }

  /** Returns the function to call once the bytes are not held any more. Throws `rate_limited`. */
  add(owner: BytesOwner | null, bytes: number): () => void {
    const { max } = this.#options;
    // One that is larger than the limit fits when it is the only one.
    if (this.#all > 0 && this.#all + bytes > max) throw this.#tooMuch("of all callers", max);
    if (owner !== null) this.#checkRoom(owner, bytes);
    this.#change(owner, bytes);
    let counted = true;
    return () => {
      if (counted) this.#change(owner, -bytes);
      counted = false;
    };
  }

  get #tenantMax(): number {
    return this.#hasSecondTenant() ? this.#options.max / 2 : Number.POSITIVE_INFINITY;
  }

  #checkRoom({ keyId, tenant }: BytesOwner, bytes: number): void {
    if (keyId === null) return;
    const { maxEach } = this.#options;
    const own = bytesOf(this.#each, keyId);
    if (own > 0 && own + bytes > maxEach) throw this.#tooMuch("of this API key", maxEach);
    const ofTenant = bytesOf(this.#tenants, tenant);
    if (ofTenant > 0 && ofTenant + bytes > this.#tenantMax)
      throw this.#tooMuch("of this tenant", this.#tenantMax);
  }

  #tooMuch(owner: string, bytesMax: number): RotaError {
    const { what, advice } = this.#options;
    return new RotaError(
      "rate_limited",
      `${what} ${owner} may take ${bytesMax} bytes, and this one would exceed that: ${advice}`,
      { details: { bytesMax } },
    );
  }

  #change(owner: BytesOwner | null, bytes: number): void {
    this.#all += bytes;
    if (owner === null || owner.keyId === null) return;
    change(this.#each, owner.keyId, bytes);
    change(this.#tenants, owner.tenant, bytes);
  }
}

function bytesOf(counts: ReadonlyMap<string, number>, name: string): number {
  return counts.get(name) ?? 0;
}

function change(counts: Map<string, number>, name: string, by: number): void {
  const bytes = bytesOf(counts, name) + by;
  if (bytes === 0) counts.delete(name);
  else counts.set(name, bytes);
}
