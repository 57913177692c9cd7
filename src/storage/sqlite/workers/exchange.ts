import {
  EXPIRED_PER_CLAIM_MAX,
  endsOfRota,
  type WorkerExchange,
  type WorkerExchangeParams,
  type WorkerFinish,
} from "../../storage.ts";
import type { SqliteDatabase } from "../connection/database.ts";
import type { Transaction } from "../connection/transaction.ts";
import { expireOverdue } from "../tasks/steps/expire-overdue.ts";
import { beginAndFinish, writeProgress } from "../tasks/steps/finish-held-tasks.ts";
import { Assignments } from "./steps/assign-tasks.ts";

/** One transaction for what workers do all the time: end attempts and ask for others. */
export async function exchangeForWorkers(
  db: SqliteDatabase,
  { finishes, progress, polls }: WorkerExchangeParams,
): Promise<WorkerExchange> {
  const exchange = (tx: Transaction): WorkerExchange => {
    for (const report of progress) writeProgress(tx, { node: report.worker, progress: [report] });
    const byWorker = Map.groupBy(finishes, ({ worker }) => worker);
    const finished = [...byWorker].flatMap(([node, ends]) =>
      beginAndFinish(tx, { node, finishes: ends, progress: [] }),
    );
    const ended = new Set(finished.map(({ token }) => token));
    countEnds(
      tx,
      finishes.filter(({ token }) => ended.delete(token)),
    );
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
    const decided = endsOfRota(finishes, finished);
    if (decided.length > 0) tx.fence(decided, "cancelled");
    return { finished, claimed, expired, held };
  };
  const exchanged = db.transact(exchange);
  // A worker forgets an end once the response says that it is stored. Other workers need not wait for that.
  return exchanged.finished.length > 0 ? { ...exchanged, durable: db.durable() } : exchanged;
}

function countEnds(tx: Transaction, finishes: readonly WorkerFinish[]): void {
  const end = tx.prepare(
    "update worker_attempt set ended_at = ?, recorded = ? where token in (select value from json_each(?))",
  );
  for (const [recorded, own] of Map.groupBy(finishes, (finish) => finish.recorded))
    end.run(tx.now, recorded ? 1 : 0, JSON.stringify(own.map(({ token }) => token)));
  const count = tx.prepare(
    `insert into worker_minute (worker, minute, done, failed) values (@worker, @minute, @done, @failed)
     on conflict (worker, minute) do update set done = done + @done, failed = failed + @failed`,
  );
  const minute = Math.floor(tx.now / 60_000);
  const counted = finishes.filter(({ settlement }) => settlement.to !== "queued");
  for (const [worker, own] of Map.groupBy(counted, (finish) => finish.worker)) {
    const done = own.filter(({ settlement }) => settlement.to === "done").length;
    count.run({ worker, minute, done, failed: own.length - done });
  }
}
