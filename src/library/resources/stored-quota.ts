import { RotaError } from "../../model/errors.ts";
import { jsonText } from "../../model/text/json-text.ts";
import { type NewTask, type Storage, TASK_OVERHEAD_BYTES } from "../../storage/storage.ts";

export interface StoredQuotaOptions {
  readonly storage: Storage;
  /** How many bytes the tasks of a tenant may take, as far as this node knows; null: no limit. */
  readonly maxStoredBytes: (tenant: string) => number | null;
}

/**
 * Refuses new tasks of tenants that store too much. The storage counts stored bytes, and this class those that this process is
 * about to store. Only several nodes that store at the same time can exceed a limit. Ends of tasks are always stored.
 */
export class StoredQuota {
  readonly #options: StoredQuotaOptions;
  /** Bytes of tasks that are being stored, by tenant. */
  readonly #onTheirWay = new Map<string, number>();

  constructor(options: StoredQuotaOptions) {
    this.#options = options;
  }

  /** Whether a tenant has reached its quota. */
  async isFull(tenant: string): Promise<boolean> {
    const max = this.#options.maxStoredBytes(tenant);
    return max !== null && (await this.#stored(tenant)) >= max;
  }

  /** Calls `store`, which stores tasks of a tenant. Throws `quota_exceeded` instead if they exceed the quota. */
  storing<Answer>(tenant: string, tasks: readonly NewTask[], store: () => Promise<Answer>): Promise<Answer> {
    const max = this.#options.maxStoredBytes(tenant);
    return max === null ? store() : this.#storeWithin(max, tenant, tasks, store);
  }

  async #storeWithin<Answer>(
    maxStoredBytes: number,
    tenant: string,
    tasks: readonly NewTask[],
    store: () => Promise<Answer>,
  ): Promise<Answer> {
    let bytes = bytesOfAll(tasks);
    const storedBytes = await this.#stored(tenant);
    const isTooMuch = () => storedBytes + (this.#onTheirWay.get(tenant) ?? 0) + bytes > maxStoredBytes;
    if (isTooMuch() && tasks.some(({ idempotency }) => idempotency !== null)) {
      const made = await this.#withoutRepeats(tenant, tasks);
      // A request that stores nothing new returns its earlier tasks, even beyond the quota.
      if (made.length === 0) return store();
      bytes = bytesOfAll(made);
    }
    if (isTooMuch()) {
      throw new RotaError(
        "quota_exceeded",
        `the tenant stores ${storedBytes} bytes and may store ${maxStoredBytes}, and this takes ${bytes}: wait until old tasks are deleted, or have \`limits.maxStoredBytes\` raised`,
        { details: { bytes, storedBytes, maxStoredBytes } },
      );
    }
    this.#onTheirWay.set(tenant, (this.#onTheirWay.get(tenant) ?? 0) + bytes);
    try {
      return await store();
    } finally {
      const left = (this.#onTheirWay.get(tenant) ?? bytes) - bytes;
      if (left > 0) this.#onTheirWay.set(tenant, left);
      else this.#onTheirWay.delete(tenant);
    }
  }

  /** Inputs that do not repeat the `idempotencyKey` of a stored task: a repetition stores nothing. */
  async #withoutRepeats(tenant: string, tasks: readonly NewTask[]): Promise<readonly NewTask[]> {
    const keys = tasks.flatMap(({ idempotency }) => (idempotency === null ? [] : [idempotency.key]));
    const kept = new Set(await this.#options.storage.tasks.keptKeys({ tenant, keys }));
    return tasks.filter(({ idempotency }) => idempotency === null || !kept.has(idempotency.key));
  }

  async #stored(tenant: string): Promise<number> {
    return (await this.#options.storage.tenants.get({ id: tenant }))?.storedBytes ?? 0;
  }
}

function bytesOfAll(tasks: readonly NewTask[]): number {
  // A run counts even before its task is created.
  return tasks.reduce((sum, task) => sum + bytesOf(task), 0) || TASK_OVERHEAD_BYTES;
}

function bytesOf({ spec }: NewTask): number {
  return TASK_OVERHEAD_BYTES + Buffer.byteLength(jsonText(spec) ?? "");
}
