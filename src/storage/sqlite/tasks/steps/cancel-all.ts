import {
  isTerminal,
  type TaskState,
  type TerminalState,
  type WaitingState,
} from "../../../../model/task-state.ts";
import type { CancelledTask, EndedTask } from "../../../storage.ts";
import type { Transaction } from "../../connection/transaction.ts";
import { LEASE_COLUMNS, type Lease } from "../lease.ts";
import { addStart, endTask } from "./end-attempt.ts";
import { endWaitingTask, WAITING_COLUMNS, type WaitingTask } from "./end-waiting-task.ts";

/** Ends tasks, waiting or running, and fences the attempts of those that run. */
export function cancelAll(
  tx: Transaction,
  params: { tenant: string; ids: readonly string[]; error: string | null },
): CancelledTask[] {
  const answers = params.ids.map((id) => cancelTask(tx, { ...params, id }));
  signalCancelled(
    tx,
    answers.filter((answer) => answer.found && answer.was === null),
  );
  return answers;
}

export function signalCancelled(tx: Transaction, cancelled: readonly EndedTask[]): void {
  const tokens = cancelled.flatMap(({ token }) => token ?? []);
  tx.signal("events");
  // A slot, an agent's limit or a lane's total may have become free.
  if (tokens.length > 0) {
    tx.fence(tokens, "cancelled");
    tx.signal("work");
  }
}

function cancelTask(
  tx: Transaction,
  { tenant, id, error }: { tenant: string; id: string; error: string | null },
): CancelledTask {
  const task = tx
    .prepare<Omit<WaitingTask, "resting_state"> & { resting_state: TaskState }>(
      `select ${WAITING_COLUMNS} from task t where t.tenant = ? and t.id = ?`,
    )
    .get(tenant, id);
  if (task === undefined) return { id, found: false };
  if (isTerminal(task.resting_state)) return { id, found: true, was: task.resting_state as TerminalState };
  return endNow(tx, { ...task, id, resting_state: task.resting_state as WaitingState }, error);
}

/** Cancels an open task, waiting or running. `resting_state`: its state without the lease. */
export function endNow(
  tx: Transaction,
  task: WaitingTask & { readonly id: string },
  error: string | null,
): EndedTask {
  const held = tx
    .prepare<Lease>(`delete from lease where task_seq = ? returning ${LEASE_COLUMNS}`)
    .get(task.seq);
  // It may have begun.
  const lease = held?.state === "assigned" ? addStart(tx, held) : held;
  if (lease === undefined) endWaitingTask(tx, task, { state: "cancelled", error });
  else endTask(tx, lease, { state: "cancelled", outcome: "cancelled", result: null, error });
  const { agent, lane } = tx.ledger.agentQueue(task.line);
  return { id: task.id, found: true, was: null, token: lease?.token ?? null, agent, lane };
}
