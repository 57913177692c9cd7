import type { SqliteDatabase } from "../connection/database.ts";

/** A row of `batch`, being changed. */
export interface BatchRow {
  readonly id: string;
  readonly tenant: string;
  readonly parallelism: number | null;
  readonly callback_url: string | null;
  readonly created_at: number;
  completed_at: number | null;
  active: number;
  open: number;
}

/** The batches whose tasks one transaction moves: read when first needed, written once at its end. */
export class BatchLedger {
  readonly #db: SqliteDatabase;
  readonly #rows = new Map<string, BatchRow>();

  constructor(db: SqliteDatabase) {
    this.#db = db;
  }

  /** The batch of a task; undefined when it has none. */
  of({ batch: id }: { readonly batch: string | null }): BatchRow | undefined {
    if (id === null) return undefined;
    const known = this.#rows.get(id);
    if (known !== undefined) return known;
    const row = this.#db.prepare<BatchRow>("select * from batch where id = ?").get(id);
    if (row !== undefined) this.#rows.set(id, row);
    return row;
  }

  /** Whether the batch of a task has a free slot for one more active task. */
  hasFreeSlot(task: { readonly batch: string | null }): boolean {
    const batch = this.of(task);
    return batch === undefined || batch.parallelism === null || batch.active < batch.parallelism;
  }

  /** All batches that this transaction has read. */
  touched(): Iterable<BatchRow> {
    return this.#rows.values();
  }

  save(): void {
    const save = this.#db.prepare("update batch set completed_at = ?, active = ?, open = ? where id = ?");
    for (const { id, completed_at, active, open } of this.#rows.values()) {
      save.run(completed_at, active, open, id);
    }
  }
}
