import type { SqliteDatabase } from "./database.ts";
import type { Ledger } from "./ledger.ts";

/** A task that is queued, and that no attempt holds. */
interface QueuedTask {
  readonly seq: number;
  readonly line: number;
  readonly rank: number;
  readonly batch: string | null;
}

/**
 * Puts a task that was just queued where it waits: into the ready set; or, where its batch has a bound, with the others of
 * it that are parked, until `settleBatches` lets in what there is room for.
 */
export function enterQueue(db: SqliteDatabase, ledger: Ledger, task: QueuedTask): void {
  const batch = task.batch === null ? undefined : ledger.batch(task.batch);
  if (batch === undefined || batch.parallelism === null) {
    ledger.addReady(ledger.line(task.line), { rank: task.rank, task_seq: task.seq });
    return;
  }
  db.prepare("update task set parked = 'batch' where seq = ?").run(task.seq);
}
