import { Service, type ServiceOptions } from "../../services/service.ts";
import type { StorageClock } from "../../services/storage-clock.ts";
import type { Storage } from "../../storage/storage.ts";
import type { TenantCatalogue } from "./tenant-catalogue.ts";

/** Rows deleted in one transaction, so that deleting a large tenant does not block other work for long. */
const SLICE = 500;
/** How often this node looks for deletions that a dead node has left unfinished. */
const LOOK_MS = 5_000;
/** A node that carries out a deletion updates the tenant more often than this. */
const ABANDONED_MS = 10_000;

export interface TenantDeleterOptions extends ServiceOptions {
  readonly storage: Storage;
  readonly storageClock: StorageClock;
  readonly catalogue: TenantCatalogue;
  /** Resolves once all requests accepted before are stored. */
  readonly accepted: () => Promise<void>;
  /** Resolves once every other node refuses the deleted keys, and has stored the requests it accepted before. */
  readonly lockedElsewhere: () => Promise<void>;
}

/** Deletes tenants with everything that they own, slice by slice, and resumes unfinished deletions. */
export class TenantDeleter extends Service<TenantDeleterOptions> {
  readonly name = "tenant deleter";
  /** Tenants that this node is deleting. */
  readonly #deleting = new Set<string>();

  async tick(): Promise<number> {
    const { storage, storageClock, catalogue } = this.options;
    const quietMs = storage.capabilities.exclusive ? 0 : ABANDONED_MS;
    for (const id of catalogue.deleting()) {
      if (this.#deleting.has(id)) continue;
      const tenant = await storage.tenants.get({ id });
      if (tenant?.deleting !== true || storageClock.now() - tenant.updatedAt < quietMs) continue;
      this.log.info({ tenant: id }, "continuing the deletion of a tenant");
      await this.delete(id);
      await catalogue.read();
    }
    return LOOK_MS;
  }

  /** If it throws after the tenant was locked, `tick` deletes the rest. */
  async delete(id: string): Promise<void> {
    this.#deleting.add(id);
    try {
      await this.#lock(id);
      await this.options.lockedElsewhere();
      await this.#deleteSlices(id);
    } finally {
      this.#deleting.delete(id);
    }
  }

  /** Disables the tenant and deletes its keys. Rows deleted before all nodes know this could be written again. */
  async #lock(id: string): Promise<void> {
    const { storage, catalogue, accepted } = this.options;
    // This node accepts no more requests of the tenant, and stores the earlier ones first, so that no rows lose their tenant.
    catalogue.close(id);
    try {
      await accepted();
      await storage.tenants.delete({ id, limit: 0 });
    } catch (error) {
      catalogue.reopen(id);
      throw error;
    }
  }

  async #deleteSlices(id: string): Promise<void> {
    for (let more = true; more; ) {
      const deleted = await this.options.storage.tenants.delete({ id, limit: SLICE });
      more = deleted.found && deleted.was === null && deleted.more;
    }
  }
}
