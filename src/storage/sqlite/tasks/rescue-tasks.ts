import type { TaskKind } from "../../../model/task.ts";
import type { HeldState } from "../../../model/task-state.ts";
import { ALONE_AFTER_LOSSES, aloneKindOf, isAloneKind, lostError } from "../../alone-queue.ts";
import type { RescuedTasks, TaskLabels } from "../../storage.ts";
import type { SqliteDatabase } from "../connection/database.ts";
import type { Transaction } from "../connection/transaction.ts";
import { labelsOf } from "../counters/ledger.ts";
import type { Lease } from "./lease.ts";
import { addStart, endTask, returnTask } from "./steps/end-attempt.ts";
import { moveHeldTask } from "./steps/move-task.ts";

const WORKER_LOST = "worker lost";

/** Ends attempts of a dead node: the task is queued again if it has retries left, else it fails. */
export async function rescueTasks(
  db: SqliteDatabase,
  params: { node: string; limit: number; maxLost?: number },
): Promise<RescuedTasks> {
  return db.transactDurably((tx) => {
    const leases = tx
      .prepare<LostAttempt>(
        `select l.*, t.retry_count < t.max_retries_if_lost as rescuable, t.losses, t.spec ->> '$.work.kind' as kind
           from lease l join task t on t.seq = l.task_seq
          where l.node = ? and exists (select 1 from node where id = ? and dead = 1)
          order by l.task_seq limit +?`,
      )
      .all(params.node, params.node, params.limit);
    const { ledger, now } = tx;
    const removeLease = tx.prepare("delete from lease where task_seq = ?");
    const requeued: TaskLabels[] = [];
    const failed: TaskLabels[] = [];
    // Those that are assigned may have begun.
    const begunLeases = leases.map((lease) => ({
      lease,
      begun: lease.state === "assigned" ? { ...lease, ...addStart(tx, lease) } : lease,
    }));
    for (const { lease, begun } of begunLeases) {
      removeLease.run(lease.task_seq);
      const losses = countLoss(tx, lease, params.maxLost);
      const isLost = params.maxLost !== undefined && losses >= params.maxLost;
      const end = { outcome: "lost", error: isLost ? lostError(losses) : WORKER_LOST } as const;
      if (lease.rescuable === 1 && !isLost) {
        const returned = losses < ALONE_AFTER_LOSSES ? begun : moveToAlone(tx, begun);
        returnTask(tx, returned, { ...end, to: "queued", counted: true, runAt: now });
        requeued.push(labelsOf(ledger.agentQueue(lease.line)));
      } else {
        endTask(tx, begun, { ...end, state: "failed", result: null });
        failed.push(labelsOf(ledger.agentQueue(lease.line)));
      }
    }
    if (leases.length > 0) tx.signal("events", "work", "due");
    return { requeued, failed };
  });
}

interface LostAttempt extends Lease {
  readonly state: HeldState;
  readonly rescuable: 0 | 1;
  readonly losses: number;
  readonly kind: TaskKind;
}

/** Counts a loss and returns how often the task was lost. An attempt that was not `running` does not count. */
function countLoss(tx: Transaction, lost: LostAttempt, maxLost: number | undefined): number {
  if (maxLost === undefined || lost.state !== "running") return lost.losses;
  tx.prepare("update task set losses = losses + 1 where seq = ?").run(lost.task_seq);
  return lost.losses + 1;
}

/** Moves a task to the queue for tasks that run alone. Returns its lease with the new agent queue. */
export function moveToAlone(tx: Transaction, lost: Lease & { readonly kind: TaskKind }): Lease {
  const { lane, tenant, agent, kind } = tx.ledger.agentQueue(lost.line);
  if (isAloneKind(kind)) return lost;
  const agentQueue = tx.ledger.agentQueueOf(lane, tenant, agent, aloneKindOf(agent, lost.kind));
  moveHeldTask(tx, lost, agentQueue);
  return { ...lost, line: agentQueue.id };
}
