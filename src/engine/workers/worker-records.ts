import type { Clock } from "../../model/clock.ts";
import type { Storage, WorkerRecord } from "../../storage/storage.ts";

/** How long a record is kept. Other nodes may change it. */
const KEPT_MS = 1_000;
const KEPT_MAX = 10_000;

interface Kept {
  readonly readAt: number;
  readonly record: Promise<WorkerRecord | null>;
}

/** Workers as they registered. Workers call many times a second: each is read once in that time. */
export class WorkerRecords {
  readonly #options: { readonly storage: Storage; readonly clock: Clock };
  readonly #kept = new Map<string, Kept>();

  constructor(options: { readonly storage: Storage; readonly clock: Clock }) {
    this.#options = options;
  }

  /** At most `KEPT_MS` old. */
  get(tenant: string, id: string): Promise<WorkerRecord | null> {
    const { storage, clock } = this.#options;
    const key = `${id} ${tenant}`;
    const known = this.#kept.get(key);
    if (known !== undefined && clock.monotonic() - known.readAt < KEPT_MS) return known.record;
    if (this.#kept.size >= KEPT_MAX) this.#kept.clear();
    const record = storage.workers.get({ tenant, id });
    const kept = { readAt: clock.monotonic(), record };
    this.#kept.set(key, kept);
    record.then(
      // Made-up ids must not fill the memory.
      (found) => found === null && this.#drop(key, kept),
      () => this.#drop(key, kept),
    );
    return record;
  }

  /** The worker was changed here. */
  changed(tenant: string, id: string): void {
    this.#kept.delete(`${id} ${tenant}`);
  }

  #drop(key: string, kept: Kept): void {
    if (this.#kept.get(key) === kept) this.#kept.delete(key);
  }
}
