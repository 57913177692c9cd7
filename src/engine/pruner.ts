import { Service, type ServiceOptions } from "../services/service.ts";
import type { Storage } from "../storage/storage.ts";

/** Rows deleted in one transaction. */
const SLICE = 500;
const EVERY_MS = 10_000;
/** Between slices while there is more: others get their turn, and fifty thousand tasks a second can still go. */
const PAUSE_MS = 10;
/** The newest rejected tasks of each tenant that are kept. */
const REJECTED_MAX = 1_000;

export interface PrunerOptions extends ServiceOptions {
  readonly storage: Storage;
  readonly retentionMs: () => number;
}

/** Deletes tasks and events that have been kept long enough. */
export class Pruner extends Service {
  readonly name = "pruner";
  readonly #options: PrunerOptions;

  constructor(options: PrunerOptions) {
    super(options);
    this.#options = options;
  }

  async tick(): Promise<number> {
    const { storage, retentionMs } = this.#options;
    const { more } = await storage.tasks.prune({
      retentionMs: retentionMs(),
      rejectedMax: REJECTED_MAX,
      limit: SLICE,
    });
    return more ? PAUSE_MS : EVERY_MS;
  }
}
