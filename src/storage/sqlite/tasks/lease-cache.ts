import type { Lease } from "./lease.ts";

/**
 * Leases as the claims of this process wrote them, so that the end of an attempt need not read what its start wrote. A lease in
 * the cache may have been lost since. Code that ends an attempt deletes the row, which shows whether the lease was still held; see
 * `StaleLeaseError`.
 */
export class LeaseCache {
  readonly #leases = new Map<number, Lease>();

  keep(lease: Lease): void {
    this.#leases.set(lease.task_seq, lease);
  }

  /** The lease of this attempt; undefined: not cached. */
  find(taskSeq: number, token: number): Lease | undefined {
    const lease = this.#leases.get(taskSeq);
    return lease?.token === token ? lease : undefined;
  }

  /** Call this when an attempt ends or its lease changes. */
  forget(taskSeq: number): void {
    this.#leases.delete(taskSeq);
  }

  /** Clears the cache after a transaction failed. */
  clear(): void {
    this.#leases.clear();
  }
}
