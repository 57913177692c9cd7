import { RotaError } from "../model/errors.ts";

export interface UnreadBytesOptions {
  readonly max: number;
  /** The most bytes of one key, so that no key takes all the room. */
  readonly maxEach: number;
}

/** The caller of a response. */
interface UnreadOwner {
  /** Null: a server without keys. */
  readonly keyId: string | null;
  readonly tenant: string;
}

const MIB = 1_048_576;
export const UNREAD_BYTES: UnreadBytesOptions = { max: 256 * MIB, maxEach: 32 * MIB };

/**
 * Counts the bytes of responses that callers have not read yet and that are still in memory. A request is cheap: without a bound,
 * one key could fill the memory with responses that it never reads.
 */
export class UnreadBytes {
  readonly #options: UnreadBytesOptions;
  readonly #hasSecondTenant: () => boolean;
  readonly #each = new Map<string, number>();
  readonly #tenants = new Map<string, number>();
  #all = 0;

  /** One tenant takes at most half of the bytes once a second enabled tenant exists. */
  constructor(options: UnreadBytesOptions, hasSecondTenant: () => boolean) {
    this.#options = options;
    this.#hasSecondTenant = hasSecondTenant;
  }

  get all(): number {
    return this.#all;
  }

  /** Refuses a caller whose unread responses have reached a limit. Throws `rate_limited`. */
  check({ keyId, tenant }: UnreadOwner): void {
    if (keyId === null) return;
    const { maxEach } = this.#options;
    if (bytesOf(this.#each, keyId) >= maxEach) throw tooMuch("of this API key", maxEach);
    if (bytesOf(this.#tenants, tenant) >= this.#tenantMax) throw tooMuch("of this tenant", this.#tenantMax);
  }

  /** Returns the function to call once the bytes are read, or the caller is gone. Throws `rate_limited`. */
  add(owner: UnreadOwner | null, bytes: number): () => void {
    const { max } = this.#options;
    // A response larger than the limit is sent when it is the only one.
    if (this.#all > 0 && this.#all + bytes > max) throw tooMuch("of all callers", max);
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

  #checkRoom({ keyId, tenant }: UnreadOwner, bytes: number): void {
    if (keyId === null) return;
    const { maxEach } = this.#options;
    const own = bytesOf(this.#each, keyId);
    if (own > 0 && own + bytes > maxEach) throw tooMuch("of this API key", maxEach);
    const ofTenant = bytesOf(this.#tenants, tenant);
    if (ofTenant > 0 && ofTenant + bytes > this.#tenantMax) throw tooMuch("of this tenant", this.#tenantMax);
  }

  #change(owner: UnreadOwner | null, bytes: number): void {
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

function tooMuch(owner: string, bytesMax: number): RotaError {
  return new RotaError(
    "rate_limited",
    `the unread responses ${owner} may take ${bytesMax} bytes, and this one would exceed that: read them first, or request less at once`,
    { details: { bytesMax } },
  );
}
