import {
  ALL_AGENTS,
  EXPIRED_PER_CLAIM_MAX,
  endsOfRota,
  type WorkerExchange,
  type WorkerExchangeParams,
  type WorkerFinish,
  type WorkerPoll,
} from "../../storage.ts";
import type { SqliteDatabase } from "../connection/database.ts";
import type { Transaction } from "../connection/transaction.ts";
import { transactEnds } from "../tasks/stale-lease.ts";
import { expireOverdue, isOverdue } from "../tasks/steps/expire-overdue.ts";
import { beginAndFinish, writeProgress } from "../tasks/steps/finish-held-tasks.ts";
import { Assignments } from "./steps/assign-tasks.ts";

/** One transaction for what workers do all the time: end attempts and ask for others. */
export async function exchangeForWorkers(
  db: SqliteDatabase,
  { finishes, progress, polls }: WorkerExchangeParams,
): Promise<WorkerExchange> {
  // Polls that wait ask now and then. While nothing is ready, one read is all it takes.
  if (finishes.length + progress.length === 0 && !pollsMayGet(db, polls))
    return { finished: [], claimed: polls.map(() => []), expired: [], held: false };
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
  const exchanged = transactEnds(db, exchange);
  // A worker forgets an end once the response says that it is stored. Other workers need not wait for that.
  return exchanged.finished.length > 0 ? { ...exchanged, durable: db.durable() } : exchanged;
}

/** Whether a task is ready or overdue, a poll has attempts from an earlier call, or its worker is unknown or lost. */
function pollsMayGet(db: SqliteDatabase, polls: readonly WorkerPoll[]): boolean {
  const row = db
    .prepare<{ may: 0 | 1 }>(
      `with poll as materialized (select value ->> 0 as worker, value ->> 1 as claim from json_each(@polls)),
            asked as materialized (
              select distinct w.tenant, a.value as agent
                from (select distinct w.tenant, w.agents from poll cross join worker w where w.id = poll.worker) w
               cross join json_each(w.agents) a)
       select exists (select 1 from asked a cross join line n where n.tenant = a.tenant and n.agent = a.agent and n.ready > 0)
           or exists (select 1 from asked a cross join line n where a.agent = '${ALL_AGENTS}' and n.tenant = a.tenant and n.ready > 0)
           or exists (select 1 from task t where ${isOverdue("@now")})
           or exists (select 1 from poll left join worker w on w.id = poll.worker and w.lost = 0 where w.id is null)
           or exists (select 1 from poll cross join worker_attempt a where a.worker = poll.worker and a.claim = poll.claim) as may`,
    )
    .get({ now: db.now(), polls: JSON.stringify(polls.map(({ worker, claim }) => [worker, claim])) });
  return row?.may === 1;
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
