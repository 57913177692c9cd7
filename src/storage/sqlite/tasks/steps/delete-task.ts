import type { Transaction } from "../../connection/transaction.ts";
import { refreshReceiver } from "../../log/steps/receivers.ts";
import { forgetEmptySession } from "../../sessions/steps/forget-empty-session.ts";
import { forgetEmptyBatch } from "./settle-batches.ts";

/** Entries to delete: older than the cutoff, or from an impossible future. */
export interface Age {
  readonly cutoff: number;
  /**
   * An entry of the distant future was written while the clock was wrong: it must not keep all later entries. An entry of the
   * near future was written just before the clock was corrected, and is new.
   */
  readonly latest: number;
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
export function deleteOne(tx: Transaction, seq: number, { cutoff, latest }: Age): number[] | null {
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
    ledger.agentQueue(task.line).tenant,
    seq,
  );
  if (task.batch !== null) forgetEmptyBatch(tx, task.batch);
  if (task.session !== null) forgetEmptySession(tx, task.session);
  keepNumber(tx, "task", seq);
  const agentQueue = ledger.agentQueue(task.line);
  agentQueue.tasks -= 1;
  ledger.count(agentQueue.tenant, task.resting_state, -1);
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
export function isWaitedFor(seq: string): string {
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
  for (const { tenant, agent, tasks } of ledger.agentQueues()) {
    if (tasks > 0) continue;
    forget.run({ tenant, agent });
    touched.add(tenant);
  }
  for (const tenant of touched) forgetTenant.run({ tenant });
  // Some rows that the ledger wrote are deleted.
  tx.db.agentQueues.clear();
}

/** Stores the highest number, so that none is used twice even if its row is deleted. */
export function keepNumber(tx: Transaction, name: "event" | "task", value: number): void {
  tx.prepare(
    `insert into high_water (name, value) values (?, ?)
     on conflict (name) do update set value = max(value, excluded.value)`,
  ).run(name, value);
}
