import { KeyConcurrency } from "./key-concurrency.ts";
import type { ChargedTo } from "./middleware/request-limits.ts";

/** Pages of lists and of replayed events that are read at the same time for one key. */
const OF_KEY_MAX = 2;
/** The same for all keys of a tenant. On PostgreSQL all tenants share six connections. */
const OF_TENANT_MAX = 3;

/**
 * Lets a few pages of each key be read at once, and, if there is a second tenant, a few of each tenant. The others wait.
 */
export class ReadTurns {
  readonly #keys = new KeyConcurrency(OF_KEY_MAX);
  readonly #tenants = new KeyConcurrency(OF_TENANT_MAX);
  readonly #hasSecondTenant: () => boolean;

  constructor(hasSecondTenant: () => boolean) {
    this.#hasSecondTenant = hasSecondTenant;
  }

  /** Reads a page in turn. Rejects when `gone` fires before its turn. */
  async during<Page>(owner: ChargedTo | null, gone: AbortSignal, read: () => Promise<Page>): Promise<Page> {
    const leave = await this.enter(owner, gone);
    try {
      return await read();
    } finally {
      leave();
    }
  }

  /** Resolves with the function to call when the page has been read. Rejects when `gone` fires before its turn. Null: no keys. */
  async enter(owner: ChargedTo | null, gone: AbortSignal): Promise<() => void> {
    const leaveKey = await this.#keys.enter(owner?.key ?? null, gone);
    if (owner === null || !this.#hasSecondTenant()) return leaveKey;
    try {
      const leaveTenant = await this.#tenants.enter(owner.tenant, gone);
      return () => {
        leaveTenant();
        leaveKey();
      };
    } catch (error) {
      leaveKey();
      throw error;
    }
  }
}
