import type { WaitingState } from "../../../../model/task-state.ts";
import type { TaskOrigin } from "../../../storage.ts";
import type { Transaction } from "../../connection/transaction.ts";
import { addDelivery } from "../../log/steps/add-delivery.ts";
import { endRun } from "../../schedules/steps/end-run.ts";
import { addRelease } from "./add-release.ts";
import { leaveBatch } from "./leave-batch.ts";
import { leaveReady } from "./leave-ready.ts";

/** A task that no attempt holds and that has not ended. */
export interface WaitingTask {
  readonly seq: number;
  readonly line: number;
  readonly rank: number;
  readonly resting_state: WaitingState;
  readonly callback_url: string | null;
  readonly has_dependants: 0 | 1;
  readonly batch: string | null;
  readonly parked: "batch" | "session" | "key" | null;
  readonly session: number | null;
  readonly origin: TaskOrigin;
  readonly in_session: 0 | 1;
  readonly concurrency_key: string | null;
}

export const WAITING_COLUMNS =
  "t.seq, t.line, t.rank, t.resting_state, t.callback_url, t.has_dependants, t.batch, t.parked, t.session, t.origin, t.in_session, t.concurrency_key";

const END_EVENTS = { done: "task.completed", failed: "task.failed", cancelled: "task.cancelled" } as const;

/** Ends a task without an attempt. */
export function endWaitingTask(
  tx: Transaction,
  task: WaitingTask,
  end: {
    state: "done" | "failed" | "cancelled";
    error: string | null;
    dueTo?: "dependency";
    /** Of a task that is done, as JSON. */
    result?: string;
  },
): void {
  const { ledger } = tx;
  const agentQueue = ledger.agentQueue(task.line);
  ledger.countWaiting(agentQueue, task, -1);
  if (task.session !== null && task.in_session === 1) ledger.sessions.get(task.session).active -= 1;
  const isReady = task.resting_state === "queued" && task.parked === null;
  if (isReady) leaveReady(tx, task);
  leaveBatch(tx, task.batch, { ended: true, wasActive: isReady });
  tx.prepare(
    "update task set resting_state = ?, parked = null, in_session = 0, completed_at = ?, error = ?, result = ? where seq = ?",
  ).run(end.state, tx.now, end.error, end.result ?? null, task.seq);
  ledger.count(agentQueue.tenant, task.resting_state, -1);
  ledger.count(agentQueue.tenant, end.state, 1);
  const event = ledger.events.add({
    type: END_EVENTS[end.state],
    at: tx.now,
    tenant: agentQueue.tenant,
    taskSeq: task.seq,
    data: end.error === null ? null : { error: end.error },
  });
  if (task.callback_url !== null) addDelivery(tx, event, task.seq);
  if (task.has_dependants === 1) {
    const error = end.dueTo === "dependency" && end.error !== null ? end.error : undefined;
    addRelease(tx, { parentSeq: task.seq, state: end.state, error });
  }
  if (task.origin === "run") endRun(tx, task.seq, end);
}
