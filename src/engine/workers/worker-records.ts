import type { Clock } from "../../model/clock.ts";
import type { Storage, WorkerRecord, WorkerWatch } from "../../storage/storage.ts";

/** How long a record is kept. The storage signals changes, and `check` finds those whose signal was lost. */
const KEPT_MS = 600_000;
const KEPT_MAX = 10_000;

interface Kept {
  readonly readAt: number;
  readonly record: Promise<WorkerRecord | null>;
}

/** Workers as they registered. Workers call many times a second: each is read once in a while. */
export class WorkerRecords {
  readonly #options: { readonly storage: Storage; readonly clock: Clock };
  /** By id, then by the tenant that asked. */
  readonly #kept = new Map<string, Map<string, Kept>>();

  constructor(options: { readonly storage: Storage; readonly clock: Clock }) {
    this.#options = options;
  }

  /** At most `KEPT_MS` old. */
  get(tenant: string, id: string): Promise<WorkerRecord | null> {
    const { storage, clock } = this.#options;
    const known = this.#kept.get(id)?.get(tenant);
    if (known !== undefined && clock.monotonic() - known.readAt < KEPT_MS) return known.record;
    if (this.#kept.size >= KEPT_MAX) this.#kept.clear();
    const record = storage.workers.get({ tenant, id });
    const kept = { readAt: clock.monotonic(), record };
    const ofWorker = this.#kept.get(id) ?? new Map<string, Kept>();
    this.#kept.set(id, ofWorker.set(tenant, kept));
    const drop = () => {
      if (ofWorker.get(tenant) === kept) ofWorker.delete(tenant);
      if (ofWorker.size === 0 && this.#kept.get(id) === ofWorker) this.#kept.delete(id);
    };
    // Made-up ids must not fill the memory.
    record.then((found) => found === null && drop(), drop);
    return record;
  }

  /** The worker was changed. */
  changed(id: string): void {
    this.#kept.delete(id);
  }

  /** These are all workers as they are now: what changed meanwhile is read again. */
  async check(workers: WorkerWatch["workers"]): Promise<void> {
    const now = new Map(workers.map((each) => [each.worker, each]));
    for (const [id, ofWorker] of this.#kept) {
      const current = now.get(id);
      for (const { record } of ofWorker.values()) {
        const kept = await record.catch(() => null);
        const { registeredAt, draining, lost } = current ?? {};
        if (kept?.registeredAt !== registeredAt || kept?.draining !== draining || kept?.lost !== lost)
          this.changed(id);
      }
    }
  }

  /** Changes may have been missed. */
  clear(): void {
    this.#kept.clear();
  }
}
