import { SESSION_ENDS } from "../../../model/session.ts";
import type { SqliteDatabase } from "../connection/database.ts";
import type { Ledger } from "../counters/ledger.ts";
import type { SessionRow } from "../counters/session-ledger.ts";
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
export function enterQueue(db: SqliteDatabase, ledger: Ledger, task: QueuedTask, now: number): void {
  if (task.session === null || task.in_session === 1) {
    // A task that its session admitted before has kept its slot. If fewer may run now, `settleSessions` parks it later.
    if (task.session !== null) ledger.sessions.get(task.session);
    enterBatch(db, ledger, task);
    return;
  }
  const session = ledger.sessions.get(task.session);
  if (task.place !== null && task.place <= session.cutoff) {
    const found = db
      .prepare<WaitingTask>(`select ${WAITING_COLUMNS} from task t where t.seq = ?`)
      .get(task.seq);
    if (found === undefined) throw new Error(`task ${task.seq} is gone`);
    // The task is neither ready nor parked yet.
    const nowhere = { ...found, resting_state: "queued", parked: "session" } as const;
    endWaitingTask(db, ledger, nowhere, { state: "cancelled", error: SESSION_ENDS.stale, now });
    return;
  }
  if (session.debounce_seq === task.seq) session.debounce_seq = null;
  endDebounce(db, ledger, session, now);
  session.last_place += 1;
  db.prepare("update task set parked = 'session', place = ? where seq = ?").run(session.last_place, task.seq);
}

/** Ends the debounce window of a session, because a later task came: its message is queued first. */
export function endDebounce(db: SqliteDatabase, ledger: Ledger, session: SessionRow, now: number): void {
  if (session.debounce_seq === null) return;
  const task = db
    .prepare<QueuedTask>(
      `update task set resting_state = 'queued' where seq = ? and resting_state = 'delayed' returning ${QUEUED_COLUMNS}`,
    )
    .get(session.debounce_seq);
  session.debounce_seq = null;
  if (task === undefined) return;
  ledger.count(session.tenant, "delayed", -1);
  ledger.count(session.tenant, "queued", 1);
  enterQueue(db, ledger, task, now);
}

/** The same for a task without a session, or one that its session has admitted. */
export function enterBatch(
  db: SqliteDatabase,
  ledger: Ledger,
  task: Pick<QueuedTask, "seq" | "line" | "rank" | "batch" | "concurrency_key">,
): void {
  const batch = ledger.batches.of(task);
  if (batch === undefined || batch.parallelism === null) {
    ledger.askForKey(task);
    return;
  }
  db.prepare("update task set parked = 'batch' where seq = ?").run(task.seq);
}
