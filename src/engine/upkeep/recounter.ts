import { Service, type ServiceOptions } from "../../services/service.ts";
import type { Storage } from "../../storage/storage.ts";

const EVERY_MS = 60_000;
/** Tasks whose bytes are counted in one transaction. */
const COUNT_SLICE = 1_000;

export interface RecounterOptions extends ServiceOptions {
  readonly storage: Storage;
}

/** Counts one line a minute and compares: a counter that is off is mended, and is a fault worth hearing of. */
export class Recounter extends Service {
  readonly name = "recounter";
  readonly #storage: Storage;

  constructor(options: RecounterOptions) {
    super(options);
    this.#storage = options.storage;
  }

  async tick(): Promise<number> {
    const faults = await this.#storage.counters.recountOne({ random: this.random() });
    for (const fault of faults) this.log.error({ ...fault }, "a counter was off and has been mended");
    // What a process did not get to that was told to count.
    const { more } = await this.#storage.tenants.countStored({ limit: COUNT_SLICE });
    return more ? 0 : EVERY_MS;
  }
}
