import type { Lease } from "./lease.ts";

/**
 * Leases as the claims of this process wrote them, so that the end of an attempt need not read what its start wrote. What
 * is here may have been taken away since: whoever ends an attempt removes its lease, which shows whether it was held.
 */
export class LeaseCache {
  readonly #leases = new Map<number, Lease>();

  keep(lease: Lease): void {
    this.#leases.set(lease.task_seq, lease);
  }

  /** The lease of this attempt; undefined when it has to be read. */
  find(taskSeq: number, token: number): Lease | undefined {
    const lease = this.#leases.get(taskSeq);
    return lease?.token === token ? lease : undefined;
  }

  /** It ended, or was changed. */
  forget(taskSeq: number): void {
    this.#leases.delete(taskSeq);
  }

  /** Forgets everything: a transaction failed. */
  clear(): void {
    this.#leases.clear();
  }
}
