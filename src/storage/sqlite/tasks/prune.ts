import type { SqliteDatabase } from "../connection/database.ts";
import type { Transaction } from "../connection/transaction.ts";
import { refreshReceiver } from "../log/receivers.ts";
import { countBeforePrune } from "../log/roll-up.ts";
import { forgetEmptySession } from "../sessions/sessions.ts";
import { forgetEmptyBatch } from "./batches.ts";

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

/** Entries to delete: older than the cutoff, or from an impossible future. */
export interface Age {
  readonly cutoff: number;
  /**
   * An entry of the distant future was written while the clock was wrong: it must not keep all later entries. An entry of the
   * near future was written just before the clock was corrected, and is new.
   */
  readonly latest: number;
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

const ANY_AGE: Age = { cutoff: Number.MAX_SAFE_INTEGER, latest: 0 };

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

interface DeletedTask {
  readonly line: number;
  readonly resting_state: string;
  readonly dependencies: number;
  readonly has_dependants: 0 | 1;
  readonly batch: string | null;
  readonly session: number | null;
}

/** Returns the dependencies of the deleted task; null: the task stays. */
function deleteOne(tx: Transaction, seq: number, { cutoff, latest }: Age): number[] | null {
  const task = tx
    .prepare<DeletedTask>(
      `delete from task
        where seq = @seq and (completed_at < @cutoff or completed_at > @latest)
          and (has_dependants = 0 or not ${isWaitedFor("@seq")})
          and (batch is null or not ${isKeptByBatch("@cutoff", "@latest")})
       returning line, resting_state, dependencies, has_dependants, batch, session`,
    )
    .get({ seq, cutoff, latest });
  return task === undefined ? null : forgetTask(tx, seq, task);
}

/**
 * Deletes those of these tasks that ended at `endedBy` or before. A task stays if an open task depends on it, its batch is open
 * or ended later, or its callback is still pending. Returns how many were deleted.
 */
export function deleteThese(tx: Transaction, seqs: readonly number[], endedBy: number): number {
  const pending = tx.prepare("select 1 from delivery where task_seq = ? and status = 'pending'");
  const age = { cutoff: endedBy + 1, latest: Number.MAX_SAFE_INTEGER };
  const gone = seqs.filter((seq) => pending.get(seq) === undefined && deleteOne(tx, seq, age) !== null);
  forgetEmptyAgents(tx);
  return gone.length;
}

/** Deletes an ended task unconditionally, because its tenant is being deleted. */
export function deleteTask(tx: Transaction, seq: number): void {
  const task = tx
    .prepare<DeletedTask>(
      "delete from task where seq = ? returning line, resting_state, dependencies, has_dependants, batch, session",
    )
    .get(seq);
  if (task !== undefined) forgetTask(tx, seq, task);
}

/** Deletes the webhook deliveries of a task, and updates the turns of their hosts. */
function forgetDeliveries(tx: Transaction, taskSeq: number): void {
  const deliveries = tx
    .prepare<{ tenant: string; host: string; due_at: number | null }>(
      "select tenant, host, due_at from delivery where task_seq = ?",
    )
    .all(taskSeq);
  if (deliveries.length === 0) return;
  tx.prepare("delete from delivery where task_seq = ?").run(taskSeq);
  for (const { tenant, host, due_at } of deliveries) {
    if (due_at !== null) refreshReceiver(tx, { tenant, host });
  }
}

/** Deletes all other rows of a deleted task. Returns its dependencies. */
function forgetTask(tx: Transaction, seq: number, task: DeletedTask): number[] {
  const { ledger } = tx;
  if (task.has_dependants === 1) forgetParent(tx, seq, task.resting_state);
  tx.prepare("delete from attempt where task_seq = ?").run(seq);
  forgetDeliveries(tx, seq);
  tx.prepare("delete from idempotency_key where task_seq = ?").run(seq);
  tx.prepare("delete from task_log where task_seq = ?").run(seq);
  tx.prepare("delete from counted_tokens where task_seq = ?").run(seq);
  tx.prepare("delete from task_of_line where line = ? and task_seq = ?").run(task.line, seq);
  tx.prepare("delete from task_of_tenant where tenant = ? and task_seq = ?").run(
    ledger.line(task.line).tenant,
    seq,
  );
  if (task.batch !== null) forgetEmptyBatch(tx, task.batch);
  if (task.session !== null) forgetEmptySession(tx, task.session);
  keepNumber(tx, "task", seq);
  const line = ledger.line(task.line);
  line.tasks -= 1;
  ledger.count(line.tenant, task.resting_state, -1);
  if (task.dependencies === 0) return [];
  const parents = tx
    .prepare<{ parent_seq: number }>(
      "select parent_seq from dependency where child_seq = ? order by parent_seq desc",
    )
    .all(seq);
  tx.prepare("delete from dependency where child_seq = ?").run(seq);
  return parents.map(({ parent_seq }) => parent_seq);
}

/** Whether the batch of a row of `task` is open, or its end has not expired. */
function isKeptByBatch(cutoff: string, latest: string): string {
  return `exists (select 1 from batch b
                   where b.id = task.batch
                     and (b.completed_at is null or b.completed_at between ${cutoff} and ${latest}))`;
}

/** Whether an open task depends on a task. */
function isWaitedFor(seq: string): string {
  return `exists (select 1 from dependency d join task c on c.seq = d.child_seq
                   where d.parent_seq = ${seq} and c.completed_at is null)`;
}

/** Dependants of a deleted task that was done have one dependency less, in case they are retried: it was met. */
function forgetParent(tx: Transaction, seq: number, state: string): void {
  if (state === "done") {
    tx.prepare(
      `update task set dependencies = dependencies - 1, unmet = min(unmet, dependencies - 1)
        where seq in (select child_seq from dependency where parent_seq = ?)`,
    ).run(seq);
  }
  tx.prepare("delete from dependency where parent_seq = ?").run(seq);
}

/**
 * Saves the ledger and then deletes the queues of agents without tasks, and the rows of tenants without queues: short-lived
 * names must not pile up.
 */
export function forgetEmptyAgents(tx: Transaction): void {
  const { ledger } = tx;
  tx.save();
  const forget = tx.prepare(
    `delete from line where tenant = @tenant and agent = @agent
        and not exists (select 1 from line where tenant = @tenant and agent = @agent and tasks > 0)`,
  );
  const forgetTenant = tx.prepare(
    "delete from tenant_line where tenant = @tenant and not exists (select 1 from line where tenant = @tenant)",
  );
  const touched = new Set<string>();
  for (const { tenant, agent, tasks } of ledger.lines()) {
    if (tasks > 0) continue;
    forget.run({ tenant, agent });
    touched.add(tenant);
  }
  for (const tenant of touched) forgetTenant.run({ tenant });
  // Some rows that the ledger wrote are deleted.
  tx.db.lines.clear();
}

function pruneRejected(tx: Transaction, max: number, limit: number): number {
  const crowded = tx
    .prepare<{ tenant: string; tasks: number }>(
      "select tenant, tasks from tally where state = 'rejected' and tasks > ?",
    )
    .all(max);
  let deleted = 0;
  for (const { tenant, tasks } of crowded) {
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

/** Stores the highest number, so that none is used twice even if its row is deleted. */
function keepNumber(tx: Transaction, name: "event" | "task", value: number): void {
  tx.prepare(
    `insert into high_water (name, value) values (?, ?)
     on conflict (name) do update set value = max(value, excluded.value)`,
  ).run(name, value);
}
