import { SUBMIT_MINUTES } from "../../storage.ts";
import type { SqliteDatabase } from "../connection/database.ts";
import type { Transaction } from "../connection/transaction.ts";
import { countBeforePrune } from "../log/steps/roll-up.ts";
import { type Age, deleteOne, forgetEmptyAgents, isWaitedFor, keepNumber } from "./steps/delete-task.ts";

/**
 * Deletes a slice of what has expired. The event log is the list of what to delete: reading it from its start finds the tasks
 * that ended before the cutoff without an index on their end, which every finish would have to update.
 */
export async function prune(
  db: SqliteDatabase,
  params: { retentionMs: number; rejectedMax: number; limit: number },
): Promise<{ tasks: number; more: boolean }> {
  return db.transact((tx) => {
    // Each has a ledger of its own: the rejected tasks are counted after the expired ones were deleted.
    const { retentionMs } = params;
    const age = { cutoff: tx.now - retentionMs, latest: tx.now + retentionMs };
    const isCounted = countBeforePrune(tx, age);
    const byAge = isCounted ? pruneEvents(tx, age, params.limit) : { events: 0, tasks: 0 };
    const rejected = pruneRejected(tx, params.rejectedMax, params.limit);
    pruneBounded(tx, age, params.limit);
    if (byAge.tasks > 0)
      tx.prepare(
        "delete from task_span where last_seq < coalesce((select min(seq) from task), 9000000000000000)",
      ).run();
    return {
      tasks: byAge.tasks + rejected,
      more: !isCounted || byAge.events >= params.limit || rejected === params.limit,
    };
  });
}

function pruneEvents(tx: Transaction, age: Age, limit: number): { events: number; tasks: number } {
  const past = rowsBefore(tx, age, limit);
  const last = past.at(-1);
  if (last === undefined) return { events: 0, tasks: 0 };
  keepNumber(tx, "event", last.last_seq);
  tx.prepare("delete from event where last_seq <= ?").run(last.last_seq);
  const seqs = withSiblings(tx, new Set(past.flatMap(({ task_seqs }) => JSON.parse(task_seqs) as number[])));
  let tasks = 0;
  for (const seq of seqs) tasks += deleteEnded(tx, seq, age);
  forgetEmptyAgents(tx);
  return { events: past.reduce((sum, { count }) => sum + count, 0), tasks };
}

/** Forgets what no bound counts any more. Open tasks keep their rows, however old they are. */
function pruneBounded(tx: Transaction, { cutoff }: Age, limit: number): void {
  tx.prepare(
    `delete from bounded_task where (tenant, owner, task_seq) in (
       select b.tenant, b.owner, b.task_seq from bounded_task b
        where b.at < ? and not exists (
          select 1 from task t where t.seq = b.task_seq and t.resting_state in ('waiting_dependency', 'delayed', 'queued'))
        limit +?)`,
  ).run(cutoff, limit);
  tx.prepare("delete from bounded_minute where minute <= ?").run(
    Math.floor(tx.now / 60_000) - SUBMIT_MINUTES,
  );
}

/** Adds the other tasks of their batches: the tasks of a batch are deleted together. */
function withSiblings(tx: Transaction, seqs: Set<number>): Set<number> {
  const batchOf = tx.prepare<{ batch: string }>("select batch from task where seq = ? and batch is not null");
  const batches = new Set([...seqs].flatMap((seq) => batchOf.get(seq)?.batch ?? []));
  const tasksOf = tx.prepare<{ seq: number }>("select seq from task where batch = ? order by seq");
  for (const batch of batches) for (const { seq } of tasksOf.all(batch)) seqs.add(seq);
  return seqs;
}

interface LogRow {
  readonly last_seq: number;
  readonly count: number;
  readonly at: number;
  readonly task_seqs: string;
}

/** The oldest rows of the log, up to `limit` events. Rows are deleted whole, so the last one may exceed `limit`. */
function rowsBefore(tx: Transaction, { cutoff, latest }: Age, limit: number): LogRow[] {
  const oldest = tx
    .prepare<LogRow>("select last_seq, count, at, task_seqs from event order by last_seq limit +?")
    .all(limit);
  let events = 0;
  const end = oldest.findIndex(({ at, count }) => {
    if ((at >= cutoff && at <= latest) || events >= limit) return true;
    events += count;
    return false;
  });
  return end === -1 ? oldest : oldest.slice(0, end);
}

/**
 * Deletes a task if it ended before the cutoff, and its dependencies if only this task kept them. Returns how many tasks it
 * deleted. A task with dependants that have not ended stays: they need its result.
 */
function deleteEnded(tx: Transaction, seq: number, age: Age): number {
  let deleted = 0;
  // A list instead of recursion: the length of a chain has no limit.
  const seqs = [seq];
  for (let next = seqs.pop(); next !== undefined; next = seqs.pop()) {
    const parents = deleteOne(tx, next, age);
    if (parents === null) continue;
    deleted += 1;
    seqs.push(...parents);
  }
  return deleted;
}

const ANY_AGE: Age = { cutoff: Number.MAX_SAFE_INTEGER, latest: 0 };

function pruneRejected(tx: Transaction, max: number, limit: number): number {
  const overfull = tx
    .prepare<{ tenant: string; tasks: number }>(
      "select tenant, tasks from tally where state = 'rejected' and tasks > ?",
    )
    .all(max);
  let deleted = 0;
  for (const { tenant, tasks } of overfull) {
    const seqs = tx
      .prepare<{ seq: number }>(
        `select seq from task where tenant = ? and resting_state = 'rejected'
            and (has_dependants = 0 or not ${isWaitedFor("task.seq")})
            and (batch is null or not exists (select 1 from batch b where b.id = task.batch and b.completed_at is null))
            and not exists (select 1 from delivery d where d.task_seq = task.seq and d.status = 'pending')
          order by seq limit +?`,
      )
      .all(tenant, Math.min(tasks - max, limit - deleted));
    for (const { seq } of seqs) if (deleteOne(tx, seq, ANY_AGE) !== null) deleted += 1;
  }
  forgetEmptyAgents(tx);
  return deleted;
}
