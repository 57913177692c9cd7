import { Service, type ServiceOptions } from "../../services/service.ts";
import type { Storage } from "../../storage/storage.ts";

/** Rows deleted in one transaction. */
const SLICE = 500;
const EVERY_MS = 10_000;
/** The pause between slices while there is more, for other writes. It still allows fifty thousand tasks a second. */
const PAUSE_MS = 10;
/** The newest rejected tasks of each tenant that are kept. */
const REJECTED_MAX = 1_000;

export interface PrunerOptions extends ServiceOptions {
  readonly storage: Storage;
  /** Of tasks and events. */
  readonly retentionMs: () => number;
  /** Of runs and notifications. */
  readonly runRetentionMs: () => number;
}

/** Deletes data that is past its retention. */
export class Pruner extends Service<PrunerOptions> {
  readonly name = "pruner";

  async tick(): Promise<number> {
    const { storage, retentionMs, runRetentionMs } = this.options;
    const tasks = await storage.tasks.prune({
      retentionMs: retentionMs(),
      rejectedMax: REJECTED_MAX,
      limit: SLICE,
    });
    await storage.agents.forget();
    const runs = await storage.schedules.prune({ retentionMs: runRetentionMs(), limit: SLICE });
    const rollups = await storage.rollups.prune({ limit: SLICE });
    return tasks.more || runs.more || rollups.more ? PAUSE_MS : EVERY_MS;
  }
}
