import { Service, type ServiceOptions } from "../../services/service.ts";
import type { Storage } from "../../storage/storage.ts";

/** Dependants reached in one transaction. */
const SLICE = 200;
/** A signal may be lost: look at least this often. */
const EVERY_MS = 10_000;

export interface ReleaserOptions extends ServiceOptions {
  readonly storage: Storage;
}

/** Passes ends and retries on to dependants, when there are more of them than one transaction reaches. */
export class Releaser extends Service {
  readonly name = "releaser";
  readonly #storage: Storage;

  constructor(options: ReleaserOptions) {
    super(options);
    this.#storage = options.storage;
  }

  async tick(): Promise<number> {
    const { more } = await this.#storage.tasks.release({ limit: SLICE });
    return more ? 0 : EVERY_MS;
  }
}
