import { RotaError } from "../model/errors.ts";
import type { TenantLimits } from "../storage/storage.ts";

export interface OpenStreamsOptions {
  /** Undefined: the tenant is not known here, and has no limits. */
  readonly limitsOf: (tenant: string) => TenantLimits | undefined;
}

/** Counts the open event and notification streams of each tenant in this process. */
export class OpenStreams {
  readonly #options: OpenStreamsOptions;
  readonly #open = new Map<string, number>();

  constructor(options: OpenStreamsOptions) {
    this.#options = options;
  }

  /** Counts one more stream. Returns a function that releases it. Throws `rate_limited` if the tenant is at its limit. */
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
