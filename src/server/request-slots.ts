import { RotaError } from "../model/errors.ts";

export interface RequestSlotsOptions {
  readonly max: number;
  /** The most slots of one key, so that no key takes all of them. */
  readonly maxEach: number;
  /** One tenant takes at most half of the slots once a second enabled tenant exists. */
  readonly hasSecondTenant: () => boolean;
  readonly what: string;
}

/** The caller that takes a slot. */
interface SlotOwner {
  /** Null: a server without keys. */
  readonly key: string | null;
  readonly tenant: string;
}

/** Limits how many requests of a kind are open at once: each holds a connection, and one caller can open many. */
export class RequestSlots {
  readonly #options: RequestSlotsOptions;
  readonly #each = new Map<string, number>();
  readonly #tenants = new Map<string, number>();
  #taken = 0;

  constructor(options: RequestSlotsOptions) {
    this.#options = options;
  }

  get taken(): number {
    return this.#taken;
  }

  /** Takes a slot for a caller, and returns the function that frees it. Throws `rate_limited`. */
  take(owner: SlotOwner): () => void {
    this.#check(owner);
    this.#change(owner, 1);
    let isTaken = true;
    return () => {
      if (isTaken) this.#change(owner, -1);
      isTaken = false;
    };
  }

  #check({ key, tenant }: SlotOwner): void {
    const { max, maxEach, what, hasSecondTenant } = this.#options;
    if (this.#taken >= max) throw full(`${max} ${what} are open`, this.#taken, max);
    if (key === null) return;
    const own = this.#each.get(key) ?? 0;
    if (own >= maxEach) throw full(`${maxEach} ${what} are open with this API key`, own, maxEach);
    if (!hasSecondTenant()) return;
    const half = Math.floor(max / 2);
    const ofTenant = this.#tenants.get(tenant) ?? 0;
    if (ofTenant >= half) throw full(`${half} ${what} of this tenant are open`, ofTenant, half);
  }

  #change({ key, tenant }: SlotOwner, by: 1 | -1): void {
    this.#taken += by;
    if (key === null) return;
    add(this.#each, key, by);
    add(this.#tenants, tenant, by);
  }
}

function add(counts: Map<string, number>, name: string, by: number): void {
  const count = (counts.get(name) ?? 0) + by;
  if (count === 0) counts.delete(name);
  else counts.set(name, count);
}

function full(what: string, open: number, max: number): RotaError {
  return new RotaError("rate_limited", `${what}, and there can be no more: close some`, {
    details: { open, max },
  });
}
