import { Service, type ServiceOptions } from "../../services/service.ts";
import type { Storage } from "../../storage/storage.ts";

/** Dependants updated in one transaction. */
const SLICE = 200;
/** A signal may be lost: check at least this often. */
const EVERY_MS = 10_000;

export interface ReleaserOptions extends ServiceOptions {
  readonly storage: Storage;
}

/** Updates dependants after a task ended or was retried, when there are more than one transaction updates. */
export class Releaser extends Service<ReleaserOptions> {
  readonly name = "releaser";

  async tick(): Promise<number> {
    const { more } = await this.options.storage.tasks.release({ limit: SLICE });
    return more ? 0 : EVERY_MS;
  }
}
