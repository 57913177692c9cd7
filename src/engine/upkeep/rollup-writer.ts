import { Service, type ServiceOptions } from "../../services/service.ts";
import { ROLLUP_SLICE, type Storage } from "../../storage/storage.ts";

/** The delay after the first event that is not counted, so that many are counted together. */
const GATHER_MS = 2_000;
/** The delay while another node counts. */
const OTHER_NODE_MS = 1_000;
/** A signal may be lost: check at least this often. */
const EVERY_MS = 60_000;

export interface RollupWriterOptions extends ServiceOptions {
  readonly storage: Storage;
}

/** Counts the event log into rollups, slice by slice. Idle while there are no new events. */
export class RollupWriter extends Service<RollupWriterOptions> {
  readonly name = "rollups";

  /** Events were written. */
  eventsAdded(): void {
    this.wake(GATHER_MS);
  }

  async tick(): Promise<number> {
    const { events, more } = await this.options.storage.rollups.advance({ limit: ROLLUP_SLICE });
    if (!more) return EVERY_MS;
    return events === 0 ? OTHER_NODE_MS : 0;
  }
}
