import { Service, type ServiceOptions } from "../../services/service.ts";
import type { Storage } from "../../storage/storage.ts";

const EVERY_MS = 60_000;
/** Tasks whose bytes are counted in one transaction. */
const COUNT_SLICE = 1_000;

export interface RecounterOptions extends ServiceOptions {
  readonly storage: Storage;
}

/** Recounts one counter row a minute. A wrong counter is corrected and logged as an error. */
export class Recounter extends Service<RecounterOptions> {
  readonly name = "recounter";

  async tick(): Promise<number> {
    const faults = await this.options.storage.counters.recountOne({ random: this.random() });
    for (const fault of faults) this.log.error({ ...fault }, "a counter was wrong and was corrected");
    // Continues the count of stored bytes that another process began and did not finish.
    const { more } = await this.options.storage.tenants.countStored({ limit: COUNT_SLICE });
    return more ? 0 : EVERY_MS;
  }
}
