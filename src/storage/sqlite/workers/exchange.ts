import {
  EXPIRED_PER_CLAIM_MAX,
  type WorkerExchange,
  type WorkerExchangeParams,
  type WorkerFinish,
} from "../../storage.ts";
import type { SqliteDatabase } from "../connection/database.ts";
import type { Transaction } from "../connection/transaction.ts";
import { expireOverdue } from "../tasks/steps/expire-overdue.ts";
import { finishHeldTasks, writeProgress } from "../tasks/steps/finish-held-tasks.ts";
import { Assignments } from "./steps/assign-tasks.ts";

/** One transaction for what workers do all the time: end attempts and ask for others. */
export async function exchangeForWorkers(
  db: SqliteDatabase,
  { finishes, progress, polls }: WorkerExchangeParams,
): Promise<WorkerExchange> {
  const exchange = (tx: Transaction): WorkerExchange => {
    for (const report of progress) writeProgress(tx, { node: report.worker, progress: [report] });
    const byWorker = Map.groupBy(finishes, ({ worker }) => worker);
    const finished = [...byWorker].flatMap(([node, ends]) => finishHeldTasks(tx, { node, finishes: ends }));
    const ended = new Set(finished.map(({ token }) => token));
    for (const finish of finishes) if (ended.delete(finish.token)) countEnd(tx, finish);
    const expired = polls.length > 0 ? expireOverdue(tx, EXPIRED_PER_CLAIM_MAX) : [];
    tx.settle();
    const assignments = new Assignments(tx, polls);
    const claimed = assignments.make();
    const { held } = assignments;
    tx.save();
    const assigned = claimed.reduce((sum, tasks) => sum + (tasks?.length ?? 0), 0);
    if (finished.length > 0) tx.signal("work");
    if (finished.length + assigned + expired.length + progress.length > 0) tx.signal("events");
    if (finished.some(({ state }) => state === "delayed")) tx.signal("due");
    return { finished, claimed, expired, held };
  };
  // A worker forgets an end once the response says that it is stored.
  return finishes.length > 0 ? db.transactDurably(exchange) : db.transact(exchange);
}

function countEnd(tx: Transaction, { worker, token, settlement, recorded }: WorkerFinish): void {
  tx.prepare("update worker_attempt set ended_at = ?, recorded = ? where token = ?").run(
    tx.now,
    recorded ? 1 : 0,
    token,
  );
  if (settlement.to === "queued") return;
  const done = settlement.to === "done" ? 1 : 0;
  tx.prepare(
    `insert into worker_minute (worker, minute, done, failed) values (@worker, @minute, @done, 1 - @done)
     on conflict (worker, minute) do update set done = done + @done, failed = failed + 1 - @done`,
  ).run({ worker, minute: Math.floor(tx.now / 60_000), done });
}
