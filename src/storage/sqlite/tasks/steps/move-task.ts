import type { Transaction } from "../../connection/transaction.ts";
import type { AgentQueue } from "../../counters/ledger.ts";
import type { Lease } from "../lease.ts";
import { contest } from "./concurrency-keys.ts";

/** Moves a running task to another queue of its agent. The caller changes its lease. */
export function moveHeldTask(
  tx: Transaction,
  held: Pick<Lease, "task_seq" | "line" | "concurrency_key">,
  to: AgentQueue,
): void {
  const from = tx.ledger.agentQueue(held.line);
  from.inflight -= 1;
  to.inflight += 1;
  moveTask(tx, held, { from, to });
}

/** Moves a task to another queue of its agent. The caller counts it there as waiting or running. */
export function moveTask(
  tx: Transaction,
  { task_seq: seq, concurrency_key: key }: Pick<Lease, "task_seq" | "concurrency_key">,
  { from, to }: { from: AgentQueue; to: AgentQueue },
): void {
  from.tasks -= 1;
  to.tasks += 1;
  tx.prepare("update task set line = ? where seq = ?").run(to.id, seq);
  tx.prepare("update task_of_line set line = ? where line = ? and task_seq = ?").run(to.id, from.id, seq);
  // The tasks with this key may be in several agent queues now.
  if (key !== null) contest(tx, { tenant: from.tenant, key });
}
