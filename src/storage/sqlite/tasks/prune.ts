import type { SqliteDatabase } from "../connection/database.ts";
import { Ledger } from "../counters/ledger.ts";
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
  return db.write((now) => {
    // Each has a ledger of its own: the rejected tasks are counted after the expired ones were deleted.
    const { retentionMs } = params;
    const age = { cutoff: now - retentionMs, latest: now + retentionMs };
    const isCounted = countBeforePrune(db, age, now);
    const byAge = isCounted ? pruneEvents(db, age, params.limit) : { events: 0, tasks: 0 };
    const rejected = pruneRejected(db, params.rejectedMax, params.limit);
    if (byAge.tasks > 0)
      db.prepare(
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

function pruneEvents(db: SqliteDatabase, age: Age, limit: number): { events: number; tasks: number } {
  const past = rowsBefore(db, age, limit);
  const last = past.at(-1);
  if (last === undefined) return { events: 0, tasks: 0 };
  keepNumber(db, "event", last.last_seq);
  db.prepare("delete from event where last_seq <= ?").run(last.last_seq);
  const ledger = new Ledger(db);
  const seqs = withSiblings(db, new Set(past.flatMap(({ task_seqs }) => JSON.parse(task_seqs) as number[])));
  let tasks = 0;
  for (const seq of seqs) tasks += deleteEnded(db, ledger, seq, age);
  ledger.save();
  forgetEmptyAgents(db, ledger);
  return { events: past.reduce((sum, { count }) => sum + count, 0), tasks };
}

/** Adds the other tasks of their batches: the tasks of a batch are deleted together. */
function withSiblings(db: SqliteDatabase, seqs: Set<number>): Set<number> {
  const batchOf = db.prepare<{ batch: string }>("select batch from task where seq = ? and batch is not null");
  const batches = new Set([...seqs].flatMap((seq) => batchOf.get(seq)?.batch ?? []));
  const tasksOf = db.prepare<{ seq: number }>("select seq from task where batch = ? order by seq");
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
function rowsBefore(db: SqliteDatabase, { cutoff, latest }: Age, limit: number): LogRow[] {
  const oldest = db
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
function deleteEnded(db: SqliteDatabase, ledger: Ledger, seq: number, age: Age): number {
  let deleted = 0;
  // A list instead of recursion: the length of a chain has no limit.
  const seqs = [seq];
  for (let next = seqs.pop(); next !== undefined; next = seqs.pop()) {
    const parents = deleteOne(db, ledger, next, age);
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
function deleteOne(
  db: SqliteDatabase,
  ledger: Ledger,
  seq: number,
  { cutoff, latest }: Age,
): number[] | null {
  const task = db
    .prepare<DeletedTask>(
      `delete from task
        where seq = @seq and (completed_at < @cutoff or completed_at > @latest)
          and (has_dependants = 0 or not ${isWaitedFor("@seq")})
          and (batch is null or not ${isKeptByBatch("@cutoff", "@latest")})
       returning line, resting_state, dependencies, has_dependants, batch, session`,
    )
    .get({ seq, cutoff, latest });
  return task === undefined ? null : forgetTask(db, ledger, seq, task);
}

/**
 * Deletes those of these tasks that ended at `endedBy` or before. A task stays if an open task depends on it, its batch is open
 * or ended later, or its callback is still pending. Returns how many were deleted.
 */
export function deleteThese(db: SqliteDatabase, seqs: readonly number[], endedBy: number): number {
  const ledger = new Ledger(db);
  const pending = db.prepare("select 1 from delivery where task_seq = ? and status = 'pending'");
  const age = { cutoff: endedBy + 1, latest: Number.MAX_SAFE_INTEGER };
  const gone = seqs.filter(
    (seq) => pending.get(seq) === undefined && deleteOne(db, ledger, seq, age) !== null,
  );
  ledger.save();
  forgetEmptyAgents(db, ledger);
  return gone.length;
}

/** Deletes an ended task unconditionally, because its tenant is being deleted. */
export function deleteTask(db: SqliteDatabase, ledger: Ledger, seq: number): void {
  const task = db
    .prepare<DeletedTask>(
      "delete from task where seq = ? returning line, resting_state, dependencies, has_dependants, batch, session",
    )
    .get(seq);
  if (task !== undefined) forgetTask(db, ledger, seq, task);
}

/** Deletes the webhook deliveries of a task, and updates the turns of their hosts. */
function forgetDeliveries(db: SqliteDatabase, taskSeq: number): void {
  const deliveries = db
    .prepare<{ tenant: string; host: string; due_at: number | null }>(
      "select tenant, host, due_at from delivery where task_seq = ?",
    )
    .all(taskSeq);
  if (deliveries.length === 0) return;
  db.prepare("delete from delivery where task_seq = ?").run(taskSeq);
  const now = db.now();
  for (const { tenant, host, due_at } of deliveries) {
    if (due_at !== null) refreshReceiver(db, { tenant, host }, now);
  }
}

/** Deletes all other rows of a deleted task. Returns its dependencies. */
function forgetTask(db: SqliteDatabase, ledger: Ledger, seq: number, task: DeletedTask): number[] {
  if (task.has_dependants === 1) forgetParent(db, seq, task.resting_state);
  db.prepare("delete from attempt where task_seq = ?").run(seq);
  forgetDeliveries(db, seq);
  db.prepare("delete from idempotency_key where task_seq = ?").run(seq);
  db.prepare("delete from task_log where task_seq = ?").run(seq);
  db.prepare("delete from counted_tokens where task_seq = ?").run(seq);
  db.prepare("delete from task_of_line where line = ? and task_seq = ?").run(task.line, seq);
  db.prepare("delete from task_of_tenant where tenant = ? and task_seq = ?").run(
    ledger.line(task.line).tenant,
    seq,
  );
  if (task.batch !== null) forgetEmptyBatch(db, task.batch);
  if (task.session !== null) forgetEmptySession(db, task.session);
  keepNumber(db, "task", seq);
  const line = ledger.line(task.line);
  line.tasks -= 1;
  ledger.count(line.tenant, task.resting_state, -1);
  if (task.dependencies === 0) return [];
  const parents = db
    .prepare<{ parent_seq: number }>(
      "select parent_seq from dependency where child_seq = ? order by parent_seq desc",
    )
    .all(seq);
  db.prepare("delete from dependency where child_seq = ?").run(seq);
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
function forgetParent(db: SqliteDatabase, seq: number, state: string): void {
  if (state === "done") {
    db.prepare(
      `update task set dependencies = dependencies - 1, unmet = min(unmet, dependencies - 1)
        where seq in (select child_seq from dependency where parent_seq = ?)`,
    ).run(seq);
  }
  db.prepare("delete from dependency where parent_seq = ?").run(seq);
}

/** Deletes the queues of agents without tasks, and the rows of tenants without queues: short-lived names must not pile up. */
export function forgetEmptyAgents(db: SqliteDatabase, ledger: Ledger): void {
  const forget = db.prepare(
    `delete from line where tenant = @tenant and agent = @agent
        and not exists (select 1 from line where tenant = @tenant and agent = @agent and tasks > 0)`,
  );
  const forgetTenant = db.prepare(
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
  db.lines.clear();
}

function pruneRejected(db: SqliteDatabase, max: number, limit: number): number {
  const crowded = db
    .prepare<{ tenant: string; tasks: number }>(
      "select tenant, tasks from tally where state = 'rejected' and tasks > ?",
    )
    .all(max);
  const ledger = new Ledger(db);
  let deleted = 0;
  for (const { tenant, tasks } of crowded) {
    const seqs = db
      .prepare<{ seq: number }>(
        `select seq from task where tenant = ? and resting_state = 'rejected'
            and (has_dependants = 0 or not ${isWaitedFor("task.seq")})
            and (batch is null or not exists (select 1 from batch b where b.id = task.batch and b.completed_at is null))
            and not exists (select 1 from delivery d where d.task_seq = task.seq and d.status = 'pending')
          order by seq limit +?`,
      )
      .all(tenant, Math.min(tasks - max, limit - deleted));
    for (const { seq } of seqs) if (deleteOne(db, ledger, seq, ANY_AGE) !== null) deleted += 1;
  }
  ledger.save();
  forgetEmptyAgents(db, ledger);
  return deleted;
}

/** Stores the highest number, so that none is used twice even if its row is deleted. */
function keepNumber(db: SqliteDatabase, name: "event" | "task", value: number): void {
  db.prepare(
    `insert into high_water (name, value) values (?, ?)
     on conflict (name) do update set value = max(value, excluded.value)`,
  ).run(name, value);
}
