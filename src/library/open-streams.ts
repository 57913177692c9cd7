import { RotaError } from "../model/errors.ts";
import type { TenantLimits } from "../storage/storage.ts";

export interface OpenStreamsOptions {
  /** Undefined: nothing is known that bounds the tenant. */
  readonly limitsOf: (tenant: string) => TenantLimits | undefined;
}

/** Counts the readers of events and notifications that each tenant has in this process. */
export class OpenStreams {
  readonly #options: OpenStreamsOptions;
  readonly #open = new Map<string, number>();

  constructor(options: OpenStreamsOptions) {
    this.#options = options;
  }

  /** Counts one more; what it answers counts it off again. Throws `rate_limited` when there are as many as may be. */
  open(tenant: string): () => void {
    const count = this.#open.get(tenant) ?? 0;
    const max = this.#options.limitsOf(tenant)?.maxStreams ?? null;
    if (max !== null && count >= max) throw tooMany(count, max);
    this.#open.set(tenant, count + 1);
    let isOpen = true;
    return () => {
      if (isOpen) this.#close(tenant);
      isOpen = false;
    };
  }

  #close(tenant: string): void {
    const left = (this.#open.get(tenant) ?? 1) - 1;
    if (left === 0) this.#open.delete(tenant);
    else this.#open.set(tenant, left);
  }
}

function tooMany(open: number, max: number): RotaError {
  const streams = max === 1 ? "1 stream" : `${max} streams`;
  return new RotaError("rate_limited", `the tenant may have ${streams} open on a node: close one first`, {
    details: { open, maxStreams: max },
  });
}
