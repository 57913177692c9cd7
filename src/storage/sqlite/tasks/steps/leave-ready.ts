import type { Transaction } from "../../connection/transaction.ts";
import type { WantedTask } from "../../counters/concurrency-key-ledger.ts";

/** Removes a task from the ready set and frees its key. If the task only asked for its key, it withdraws the request. */
export function leaveReady({ ledger }: Transaction, task: WantedTask): void {
  const agentQueue = ledger.agentQueue(task.line);
  const { concurrency_key: key } = task;
  if (key !== null && ledger.keys.withdraw(agentQueue.tenant, key, task.seq)) return;
  ledger.removeReady(agentQueue, { rank: task.rank, task_seq: task.seq });
  if (key !== null) ledger.keys.free(agentQueue.tenant, key);
}
