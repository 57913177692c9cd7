import { Service, type ServiceOptions } from "../../services/service.ts";
import { ROLLUP_SLICE, type Storage } from "../../storage/storage.ts";

/** The delay after the first event that is not counted, so that many are counted together. */
const GATHER_MS = 2_000;
/** The delay while another node counts. */
const OTHER_NODE_MS = 1_000;
/**
 * While there is more to count, the pause after a slice, as a multiple of the time that the slice took: counting what a burst
 * of submits has left must not take the thread, or the database, from the tasks. With 2, SQLite ran a third fewer tasks
 * behind a million submits. A fifth of the time is enough: counting what tasks write at their fastest takes less.
 */
const PAUSE_RATIO = 4;
/** The longest of these pauses. */
const PAUSE_MAX_MS = 1_000;
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
    const { clock, storage } = this.options;
    const begun = clock.monotonic();
    const { events, more } = await storage.rollups.advance({ limit: ROLLUP_SLICE });
    if (!more) return EVERY_MS;
    if (events === 0) return OTHER_NODE_MS;
    return Math.min((clock.monotonic() - begun) * PAUSE_RATIO, PAUSE_MAX_MS);
  }
}
