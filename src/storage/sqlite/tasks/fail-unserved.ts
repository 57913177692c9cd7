import type { TaskKind } from "../../../model/task.ts";
import { noExecutorError } from "../../no-executor-error.ts";
import type { TaskLabels } from "../../storage.ts";
import type { SqliteDatabase } from "../connection/database.ts";
import type { Transaction } from "../connection/transaction.ts";
import { labelsOf } from "../counters/ledger.ts";
import { UNSERVED } from "../counters/standing.ts";
import { endWaitingTask, WAITING_COLUMNS, type WaitingTask } from "./steps/end-waiting-task.ts";

/** Fails tasks of agents that are not served, if no live node has been able to execute them for `afterMs`. */
export async function failUnserved(
  db: SqliteDatabase,
  { afterMs, limit }: { afterMs: number; limit: number },
): Promise<{ failed: TaskLabels[]; nextAt: number | null }> {
  // Usually there is no such agent queue, and then nothing is written.
  if (
    db.prepare(`select 1 from line where standing = ${UNSERVED} and waiting > 0 limit 1`).get() === undefined
  ) {
    return { failed: [], nextAt: null };
  }
  return db.transactDurably((tx) => {
    // Tasks that have ended in another way.
    tx.prepare(
      "delete from unserved where not exists (select 1 from task t where t.seq = task_seq and t.completed_at is null)",
    ).run();
    const marked = markUnserved(tx, limit);
    const due = tx
      .prepare<WaitingTask & { kind: TaskKind }>(
        `select ${WAITING_COLUMNS}, t.spec ->> '$.work.kind' as kind from unserved u join task t on t.seq = u.task_seq
          where u.at <= ? order by u.at, u.task_seq limit +?`,
      )
      .all(tx.now - afterMs, limit + 1);
    const failed = due.slice(0, limit).map((task) => {
      const agentQueue = tx.ledger.agentQueue(task.line);
      endWaitingTask(tx, task, { state: "failed", error: noExecutorError(agentQueue.agent, task.kind) });
      tx.prepare("delete from unserved where task_seq = ?").run(task.seq);
      return labelsOf(agentQueue);
    });
    tx.save();
    if (failed.length > 0) tx.signal("events");
    const next = tx.prepare<{ at: number | null }>("select min(at) as at from unserved").get();
    const nextAt = next?.at == null ? null : next.at + afterMs;
    return { failed, nextAt: marked > limit || due.length > limit ? tx.now : nextAt };
  });
}

/** Starts the clock for up to `limit` tasks. Returns how many unmarked ones it found, at most `limit + 1`. */
function markUnserved(tx: Transaction, limit: number): number {
  const unmarked = tx
    .prepare<{ seq: number }>(
      `with waiting as (
         select r.task_seq as seq from line n join ready r on r.line = n.id where n.standing = ${UNSERVED} and n.waiting > 0
         union all
         select t.seq from line n join task t indexed by task_parked on t.line = n.id and t.parked is not null
          where n.standing = ${UNSERVED} and n.waiting > 0)
       select seq from waiting where not exists (select 1 from unserved u where u.task_seq = seq) order by seq limit +?`,
    )
    .all(limit + 1);
  const mark = tx.prepare("insert into unserved (task_seq, at) values (?, ?)");
  for (const { seq } of unmarked.slice(0, limit)) mark.run(seq, tx.now);
  return unmarked.length;
}
