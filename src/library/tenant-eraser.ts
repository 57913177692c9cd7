import { Service, type ServiceOptions } from "../services/service.ts";
import type { StorageClock } from "../services/storage-clock.ts";
import type { Storage } from "../storage/storage.ts";
import type { TenantCatalogue } from "./tenant-catalogue.ts";

/** What is deleted in one transaction, so that a tenant that owns much holds up nobody for long. */
const SLICE = 500;
/** How often this node looks for deletions that another node, or this one before it died, has left unfinished. */
const LOOK_MS = 5_000;
/** A deletion that another node is at writes more often than this. */
const ABANDONED_MS = 10_000;

export interface TenantEraserOptions extends ServiceOptions {
  readonly storage: Storage;
  readonly storageClock: StorageClock;
  readonly catalogue: TenantCatalogue;
  /** Resolves once everything is stored that was taken in before. */
  readonly takenIn: () => Promise<void>;
  /** Resolves once no other node lets anybody in with a key that was taken away, and what came in before is stored there. */
  readonly lockedElsewhere: () => Promise<void>;
}

/** Deletes tenants with everything that they own, slice by slice, and goes on with deletions that were left unfinished. */
export class TenantEraser extends Service {
  readonly name = "tenant eraser";
  readonly #options: TenantEraserOptions;
  /** Those that this node is at. */
  readonly #erasing = new Set<string>();

  constructor(options: TenantEraserOptions) {
    super(options);
    this.#options = options;
  }

  async tick(): Promise<number> {
    const { storage, storageClock, catalogue } = this.#options;
    const quietMs = storage.capabilities.exclusive ? 0 : ABANDONED_MS;
    for (const id of catalogue.deleting()) {
      if (this.#erasing.has(id)) continue;
      const tenant = await storage.tenants.get({ id });
      if (tenant?.deleting !== true || storageClock.now() - tenant.updatedAt < quietMs) continue;
      this.log.info({ tenant: id }, "going on with the deletion of a tenant");
      await this.erase(id);
      await catalogue.read();
    }
    return LOOK_MS;
  }

  /** What it throws leaves a tenant that is locked, unless that failed already, and the rest for `tick`. */
  async erase(id: string): Promise<void> {
    this.#erasing.add(id);
    try {
      await this.#lock(id);
      await this.#options.lockedElsewhere();
      await this.#deleteSlices(id);
    } finally {
      this.#erasing.delete(id);
    }
  }

  /** It is disabled and has no keys from here on; what is deleted before everybody knows would come again. */
  async #lock(id: string): Promise<void> {
    const { storage, catalogue, takenIn } = this.#options;
    // Nothing more comes in here, and what is on its way is in: so nothing is left over that is nobody's.
    catalogue.close(id);
    try {
      await takenIn();
      await storage.tenants.delete({ id, limit: 0 });
    } catch (error) {
      catalogue.reopen(id);
      throw error;
    }
  }

  async #deleteSlices(id: string): Promise<void> {
    for (let more = true; more; ) {
      const deleted = await this.#options.storage.tenants.delete({ id, limit: SLICE });
      more = deleted.found && deleted.was === null && deleted.more;
    }
  }
}
