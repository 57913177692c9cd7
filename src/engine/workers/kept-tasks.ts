import type { TaskRecord } from "../../model/task-record.ts";

/** How many tasks of workers a node keeps, and about how much memory they may take. */
const KEPT = { tasks: 2_000, bytes: 32 * 1_048_576 } as const;

interface Kept {
  readonly task: TaskRecord;
  readonly bytes: number;
}

/**
 * Tasks that workers run, by fencing token, so that this node need not read them again when they end. The oldest make room for new
 * ones.
 */
export class KeptTasks {
  readonly #max: { readonly tasks: number; readonly bytes: number };
  readonly #kept = new Map<number, Kept>();
  #bytes = 0;

  constructor(max: { readonly tasks: number; readonly bytes: number } = KEPT) {
    this.#max = max;
  }

  has(token: number): boolean {
    return this.#kept.has(token);
  }

  get(token: number): TaskRecord | undefined {
    return this.#kept.get(token)?.task;
  }

  /** `bytes`: about how much memory its input takes. */
  keep(token: number, task: TaskRecord, bytes: number): void {
    this.forget(token);
    if (bytes > this.#max.bytes) return;
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size < this.#max.tasks && this.#bytes + bytes <= this.#max.bytes) break;
      this.forget(oldest);
    }
    this.#kept.set(token, { task, bytes });
    this.#bytes += bytes;
  }

  forget(token: number): void {
    this.#bytes -= this.#kept.get(token)?.bytes ?? 0;
    this.#kept.delete(token);
  }
}
