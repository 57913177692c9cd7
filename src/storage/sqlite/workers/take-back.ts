import type { TaskKind } from "../../../model/task.ts";
import type { HeldState } from "../../../model/task-state.ts";
import { ALONE_AFTER_LOSSES, lostError } from "../../alone-queue.ts";
import type { TakeBackParams, TakenBack } from "../../storage.ts";
import type { SqliteDatabase } from "../connection/database.ts";
import { labelsOf } from "../counters/ledger.ts";
import type { Lease } from "../tasks/lease.ts";
import { moveToAlone } from "../tasks/rescue-tasks.ts";
import { endTask, returnTask } from "../tasks/steps/end-attempt.ts";

interface TakenAttempt extends Lease {
  readonly state: HeldState;
  readonly id: string;
  readonly has_retries: 0 | 1;
  readonly losses: number;
  readonly kind: TaskKind;
}

/** Ends attempts of a worker. Their tasks are queued again, or fail. */
export async function takeBack(db: SqliteDatabase, params: TakeBackParams): Promise<TakenBack> {
  return db.transactDurably((tx) => {
    const { worker, attempts, limit, counted, maxLost, recorded = false, error: reason } = params;
    const isUndelivered = maxLost === undefined;
    const leases = tx
      .prepare<TakenAttempt>(
        `select l.*, t.id, t.retry_count < t.max_retries_if_lost as has_retries, t.losses, t.spec ->> '$.work.kind' as kind
           from lease l join task t on t.seq = l.task_seq
          where l.node = @worker and (@tokens is null or l.token in (select value from json_each(@tokens)))
            and (not @isUndelivered or l.state = 'assigned')
          order by l.task_seq limit +@limit`,
      )
      .all({
        worker,
        tokens: attempts === undefined ? null : JSON.stringify(attempts.map(({ token }) => token)),
        isUndelivered: isUndelivered ? 1 : 0,
        limit,
      });
    const { ledger, now } = tx;
    const removeLease = tx.prepare("delete from lease where task_seq = ?");
    const countLoss = tx.prepare("update task set losses = losses + 1 where seq = ?");
    const taken = {
      requeued: [] as TakenBack["requeued"][number][],
      failed: [] as TakenBack["failed"][number][],
    };
    for (const lease of leases) {
      removeLease.run(lease.task_seq);
      if (maxLost !== undefined) countLoss.run(lease.task_seq);
      const losses = lease.losses + (maxLost === undefined ? 0 : 1);
      const isLost = maxLost !== undefined && losses >= maxLost;
      const isRetry = counted && lease.state === "running";
      const end = {
        outcome: maxLost === undefined ? "interrupted" : "lost",
        error: isLost ? lostError(losses) : reason,
      } as const;
      const labels = { id: lease.id, ...labelsOf(ledger.agentQueue(lease.line)) };
      if (!isLost && (!isRetry || lease.has_retries === 1)) {
        const returned = losses < ALONE_AFTER_LOSSES ? lease : moveToAlone(tx, lease);
        const undelivered = isUndelivered;
        returnTask(tx, returned, { ...end, to: "queued", counted: isRetry, runAt: now, undelivered });
        taken.requeued.push(labels);
      } else {
        endTask(tx, lease, { ...end, state: "failed", result: null });
        taken.failed.push(labels);
      }
    }
    if (leases.length > 0) {
      tx.signal("events", "work", "due");
      const tokens = leases.map(({ token }) => token);
      // The next attempt of a task that was not delivered has the same number: a signal could end that one.
      if (!isUndelivered) tx.fence(tokens, "cancelled");
      if (recorded)
        tx.prepare(
          "update worker_attempt set ended_at = ?, recorded = 1 where token in (select value from json_each(?))",
        ).run(now, JSON.stringify(tokens));
    }
    return taken;
  });
}
