import { SESSION_ENDS } from "../../../../model/session.ts";
import type { Transaction } from "../../connection/transaction.ts";
import type { SessionRow } from "../../counters/session-ledger.ts";
import { endWaitingTask, WAITING_COLUMNS, type WaitingTask } from "./end-waiting-task.ts";

/** A task that was just queued, and that no attempt holds. */
export interface QueuedTask {
  readonly seq: number;
  readonly line: number;
  readonly rank: number;
  readonly batch: string | null;
  readonly session: number | null;
  readonly place: number | null;
  readonly in_session: 0 | 1;
  readonly concurrency_key: string | null;
}

export const QUEUED_COLUMNS = "seq, line, rank, batch, session, place, in_session, concurrency_key";

/**
 * Parks a task that was just queued if its session or its batch may hold it back, until `settleMoves` fills free slots.
 * Otherwise the task asks for its concurrency key, or without one enters the ready set.
 */
export function enterQueue(tx: Transaction, task: QueuedTask): void {
  if (task.session === null || task.in_session === 1) {
    // A task that its session admitted before has kept its slot. If fewer may run now, `settleSessions` parks it later.
    if (task.session !== null) tx.ledger.sessions.get(task.session);
    enterBatch(tx, task);
    return;
  }
  const session = tx.ledger.sessions.get(task.session);
  if (task.place !== null && task.place <= session.cutoff) {
    const found = tx
      .prepare<WaitingTask>(`select ${WAITING_COLUMNS} from task t where t.seq = ?`)
      .get(task.seq);
    if (found === undefined) throw new Error(`task ${task.seq} is gone`);
    // The task is neither ready nor parked yet.
    const nowhere = { ...found, resting_state: "queued", parked: "session" } as const;
    endWaitingTask(tx, nowhere, { state: "cancelled", error: SESSION_ENDS.stale });
    return;
  }
  if (session.debounce_seq === task.seq) session.debounce_seq = null;
  endDebounce(tx, session);
  session.last_place += 1;
  tx.prepare("update task set parked = 'session', place = ? where seq = ?").run(session.last_place, task.seq);
}

/** Ends the debounce window of a session, because a later task came: its message is queued first. */
export function endDebounce(tx: Transaction, session: SessionRow): void {
  if (session.debounce_seq === null) return;
  const task = tx
    .prepare<QueuedTask>(
      `update task set resting_state = 'queued' where seq = ? and resting_state = 'delayed' returning ${QUEUED_COLUMNS}`,
    )
    .get(session.debounce_seq);
  session.debounce_seq = null;
  if (task === undefined) return;
  tx.ledger.count(session.tenant, "delayed", -1);
  tx.ledger.count(session.tenant, "queued", 1);
  enterQueue(tx, task);
}

/** The same for a task without a session, or one that its session has admitted. */
export function enterBatch(
  tx: Transaction,
  task: Pick<QueuedTask, "seq" | "line" | "rank" | "batch" | "concurrency_key">,
): void {
  const batch = tx.ledger.batches.of(task);
  if (batch === undefined || batch.parallelism === null) {
    tx.ledger.askForKey(task);
    return;
  }
  tx.prepare("update task set parked = 'batch' where seq = ?").run(task.seq);
}
