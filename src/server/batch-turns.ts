import { KeyConcurrency } from "./key-concurrency.ts";

/** Batches of one tenant that are stored at the same time: up to 200 tasks, which take one transaction. */
const OF_TENANT_MAX = 2;

/**
 * Lets two batches of each tenant be stored at once if there is a second tenant. The others wait: tasks are written in the order
 * in which they arrive, and one key can send ten thousand in a hundred small requests.
 */
export class BatchTurns {
  readonly #tenants = new KeyConcurrency(OF_TENANT_MAX);
  readonly #hasSecondTenant: () => boolean;

  constructor(hasSecondTenant: () => boolean) {
    this.#hasSecondTenant = hasSecondTenant;
  }

  /** Also for a caller that disconnects meanwhile: the batch is stored, as it is if its turn comes at once. */
  async during<Stored>(tenant: string, store: () => Promise<Stored>): Promise<Stored> {
    if (!this.#hasSecondTenant()) return store();
    const leave = await this.#tenants.enter(tenant, new AbortController().signal);
    try {
      return await store();
    } finally {
      leave();
    }
  }
}
