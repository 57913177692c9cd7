import { effectiveMaxConcurrent, SESSION_ENDS, type SteeredResult } from "../../../../model/session.ts";
import type { Transaction } from "../../connection/transaction.ts";
import type { ReadyEntry } from "../../counters/ledger.ts";
import type { SessionRow } from "../../counters/session-ledger.ts";
import { endWaitingTask, WAITING_COLUMNS, type WaitingTask } from "../../tasks/steps/end-waiting-task.ts";
import { enterBatch } from "../../tasks/steps/enter-queue.ts";
import { leaveBatch } from "../../tasks/steps/leave-batch.ts";
import { leaveReady } from "../../tasks/steps/leave-ready.ts";

/**
 * Fills the free slots of the sessions that this transaction has read. If a session has too many active tasks, it parks those
 * that have not started, the last first.
 */
export function settleSessions(tx: Transaction): void {
  endTaken(tx);
  for (const session of tx.ledger.sessions.touched()) {
    const max = maxOf(session);
    // If nothing waits, there is nothing to park, end or admit.
    if (session.queued === 0) continue;
    if (session.active > max) stepBack(tx, session, session.active - max);
    if (session.cutoff > 0) endStale(tx, session);
    if (session.active < max) admitParked(tx, session, max - session.active);
  }
}

/** Messages that an attempt has taken end together with its task. */
function endTaken(tx: Transaction): void {
  const { withEnds } = tx.ledger.sessions;
  const sessions = [...withEnds].sort((a, b) => a - b);
  withEnds.clear();
  for (const id of sessions) {
    if (tx.ledger.sessions.get(id).queued === 0) continue;
    const taken = tx
      .prepare<WaitingTask & Taker>(
        `select ${WAITING_COLUMNS}, k.id as taker, k.resting_state as end, k.error
           from task t indexed by task_steered join task k on k.seq = t.taken_by
          where t.session = ? and t.steer_until is not null and t.completed_at is null and k.completed_at is not null
          order by t.place`,
      )
      .all(id);
    for (const { taker, end: state, error, ...task } of taken) {
      const result = { steeredInto: taker } satisfies SteeredResult;
      endWaitingTask(tx, task, {
        state,
        error,
        ...(state === "done" ? { result: JSON.stringify(result) } : {}),
      });
    }
  }
}

/** The task whose attempt has taken a message, and how it ended. */
interface Taker {
  readonly taker: string;
  readonly end: "done" | "failed" | "cancelled";
  readonly error: string | null;
}

/** Admits a new task to its session at once, if a slot is free and no task waits. So most tasks are never parked. */
export function admitAtOnce(session: SessionRow): boolean {
  if (session.queued > 0 || session.active >= maxOf(session)) return false;
  session.active += 1;
  return true;
}

export function maxOf(session: SessionRow): number {
  return effectiveMaxConcurrent({
    maxConcurrent: session.max_concurrent ?? session.default_max,
    tokens: session.tokens,
    contextWindow: session.context_window,
  });
}

/** Tasks that their session has admitted and that have not started. */
const UNSTARTED = `
  session = ? and in_session = 1 and resting_state = 'queued'
  and not exists (select 1 from lease l where l.task_seq = seq)`;

interface SessionTask extends ReadyEntry {
  readonly line: number;
  readonly batch: string | null;
  readonly parked: "batch" | "key" | null;
  readonly concurrency_key: string | null;
}

function stepBack(tx: Transaction, session: SessionRow, count: number): void {
  const last = tx
    .prepare<SessionTask>(
      `select seq as task_seq, line, rank, batch, parked, concurrency_key from task where ${UNSTARTED} order by place desc limit +?`,
    )
    .all(session.id, count);
  for (const task of last) {
    if (task.parked === null) {
      leaveReady(tx, { ...task, seq: task.task_seq });
      leaveBatch(tx, task.batch, { ended: false });
    }
    tx.prepare("update task set parked = 'session', in_session = 0 where seq = ?").run(task.task_seq);
    session.active -= 1;
  }
}

function endStale(tx: Transaction, session: SessionRow): void {
  const stale = tx
    .prepare<WaitingTask>(
      `select ${WAITING_COLUMNS} from task t indexed by task_outside_session
        where t.session = ? and t.in_session = 0 and t.completed_at is null and t.parked = 'session' and t.place <= ?
        order by t.place`,
    )
    .all(session.id, session.cutoff);
  for (const task of stale) {
    endWaitingTask(tx, task, { state: "cancelled", error: SESSION_ENDS.stale });
  }
}

function admitParked(tx: Transaction, session: SessionRow, room: number): void {
  const parked = tx
    .prepare<SessionTask>(
      `select seq as task_seq, line, rank, batch, parked, concurrency_key from task
        where session = ? and in_session = 0 and completed_at is null and parked = 'session' and taken_by is null
        order by place limit +?`,
    )
    .all(session.id, room);
  let last = parked.length === 0 || session.active === 0 ? undefined : lastUnstarted(tx, session);
  for (const task of parked) {
    const rank = rankAfter(last, task);
    tx.prepare("update task set parked = null, in_session = 1, rank = ? where seq = ?").run(
      rank,
      task.task_seq,
    );
    session.active += 1;
    last = { rank, task_seq: task.task_seq };
    enterBatch(tx, { ...task, seq: task.task_seq, rank });
  }
  if (parked.length > 0) tx.signal("work");
}

/** Of the admitted tasks that have not started, the one that starts last. */
function lastUnstarted(tx: Transaction, { id }: SessionRow): ReadyEntry | undefined {
  return tx
    .prepare<ReadyEntry>(
      `select rank, seq as task_seq from task where ${UNSTARTED} order by rank desc, seq desc limit 1`,
    )
    .get(id);
}

/** Order beats priority: a task does not start before tasks that its session admitted earlier. */
function rankAfter(last: ReadyEntry | undefined, task: ReadyEntry): number {
  const isAfter =
    last === undefined || last.rank < task.rank || (last.rank === task.rank && last.task_seq < task.task_seq);
  if (isAfter) return task.rank;
  return last.task_seq < task.task_seq ? last.rank : last.rank + 1;
}
