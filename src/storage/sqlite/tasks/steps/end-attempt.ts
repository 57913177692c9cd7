import { FRONT_RANK } from "../../../../model/priority.ts";
import type { AttemptOutcome } from "../../../../model/task.ts";
import { isWorker } from "../../../../model/worker.ts";
import { type RowBatch, type RowStatement, rowStatement } from "../../connection/row-batch.ts";
import type { Transaction } from "../../connection/transaction.ts";
import type { AgentQueue } from "../../counters/ledger.ts";
import { addDelivery } from "../../log/steps/add-delivery.ts";
import { endRun } from "../../schedules/steps/end-run.ts";
import type { Lease } from "../lease.ts";
import { RANK } from "../rank.ts";
import { addRelease } from "./add-release.ts";
import { leaveBatch } from "./leave-batch.ts";

const USUAL_END = "resting_state = 'done', last_outcome = 'done', error = null";

/** Ends tasks that are done and that nothing else waits for or follows. */
export const END_USUAL_TASKS: RowStatement = {
  one: `update task set ${USUAL_END}, completed_at = ?, executions = ?, started_at = coalesce(started_at, ?),
                        last_started_at = ?, last_node = ?, result = ?
         where seq = ?`,
  ten: rowStatement(
    "(?, ?, ?, ?, ?, ?, ?)",
    (rows) => `
      update task set ${USUAL_END}, completed_at = column1, executions = column2, started_at = coalesce(started_at, column3),
                      last_started_at = column4, last_node = column5, result = column6
        from (values ${rows}) where seq = column7`,
  ).ten,
};

interface TaskEnd {
  readonly state: "done" | "failed" | "cancelled";
  readonly outcome: AttemptOutcome;
  readonly result: string | null;
  readonly error: string | null;
  /** For a run that is done. */
  readonly summary?: string | undefined;
}

/**
 * Ends the task together with the attempt. An attempt that has not begun leaves no trace, unless a worker has it. `rows`: where the
 * end of a usual task is written later; left out: it is written at once.
 */
export function endTask(tx: Transaction, lease: Lease, end: TaskEnd, rows?: RowBatch): void {
  const { ledger } = tx;
  const agentQueue = freeSlot(tx, lease);
  leaveBatch(tx, lease.batch, { ended: true });
  if (lease.session !== null) {
    ledger.sessions.get(lease.session).active -= 1;
    ledger.sessions.withEnds.add(lease.session);
  }
  if (rows !== undefined && isUsual(lease, end)) {
    const { attempt, started_at: startedAt, node, task_seq: seq } = lease;
    rows.add([tx.now, attempt, startedAt, startedAt, node, end.result, seq]);
  } else {
    writeEnd(tx, lease, end);
  }
  ledger.count(agentQueue.tenant, "queued", -1);
  ledger.count(agentQueue.tenant, end.state, 1);
  const event = ledger.events.add({
    type: end.state === "done" ? "task.completed" : end.state === "failed" ? "task.failed" : "task.cancelled",
    at: tx.now,
    tenant: agentQueue.tenant,
    taskSeq: lease.task_seq,
    data: end.error === null ? null : { error: end.error },
  });
  if (lease.calls_back === 1) addDelivery(tx, event, lease.task_seq);
  if (lease.has_dependants === 1) addRelease(tx, { parentSeq: lease.task_seq, state: end.state });
  if (lease.origin === "run") endRun(tx, lease.task_seq, end);
}

function isUsual(lease: Lease, { state }: TaskEnd): boolean {
  return (
    state === "done" &&
    lease.state === "running" &&
    lease.origin === "task" &&
    lease.session === null &&
    lease.calls_back === 0 &&
    lease.has_dependants === 0
  );
}

function writeEnd(tx: Transaction, lease: Lease, end: TaskEnd): void {
  const begun = lease.state === "running" || isWorker(lease.node);
  tx.prepare(
    `update task set resting_state = ?, in_session = 0, completed_at = ?, executions = ?, started_at = coalesce(started_at, ?),
                     last_started_at = ?, last_outcome = ?, last_node = ?, result = ?, error = ?
      where seq = ?`,
  ).run(
    end.state,
    tx.now,
    begun ? lease.attempt : lease.attempt - 1,
    begun ? lease.started_at : null,
    begun ? lease.started_at : null,
    begun ? end.outcome : null,
    begun ? lease.node : null,
    end.result,
    end.error,
    lease.task_seq,
  );
}

/** Ends only the attempt: the task waits for another one. `undelivered`: its worker never got it, which leaves no trace. */
export function returnTask(
  tx: Transaction,
  lease: Lease,
  back: {
    to: "queued" | "delayed";
    outcome: AttemptOutcome;
    counted: boolean;
    error: string;
    runAt: number;
    undelivered?: boolean;
  },
): void {
  const { ledger } = tx;
  const agentQueue = freeSlot(tx, lease);
  returnMessages(tx, lease);
  const { undelivered = false } = back;
  const begun = lease.state === "running" || (isWorker(lease.node) && !undelivered);
  if (begun) closeAttempt(tx, lease, back);
  const isDelayed = back.to === "delayed";
  const task = tx
    .prepare<{ rank: number }>(
      `update task set resting_state = @to, run_at = iif(@isDelayed, @runAt, run_at),
                       rank = iif(@isDelayed and rank = ${FRONT_RANK}, ${RANK}, rank), retry_count = retry_count + @counted,
                       executions = @attempt, started_at = coalesce(started_at, @startedAt)
        where seq = @seq returning rank`,
    )
    .get({
      to: back.to,
      isDelayed: isDelayed ? 1 : 0,
      runAt: back.runAt,
      agingMs: ledger.lane(agentQueue.lane).aging_ms,
      counted: back.counted ? 1 : 0,
      attempt: begun ? lease.attempt : lease.attempt - 1,
      startedAt: begun ? lease.started_at : null,
      seq: lease.task_seq,
    });
  if (task === undefined) throw new Error(`task ${lease.task_seq} of a lease is gone`);
  ledger.countWaiting(agentQueue, lease, 1);
  if (!isDelayed) {
    // It keeps its slots of its session and its batch.
    ledger.askForKey({ ...lease, seq: lease.task_seq, rank: task.rank });
  } else {
    leaveBatch(tx, lease.batch, { ended: false });
    ledger.count(agentQueue.tenant, "queued", -1);
    ledger.count(agentQueue.tenant, "delayed", 1);
  }
  if (undelivered) return;
  ledger.events.add({
    type: "task.retrying",
    at: tx.now,
    tenant: agentQueue.tenant,
    taskSeq: lease.task_seq,
    data: { attempt: lease.attempt, error: back.error, retryAt: back.runAt, state: back.to },
  });
}

/** The messages that an attempt has taken wait again, because its task does not end with it. */
export function returnMessages(tx: Transaction, { session, task_seq: seq }: Lease): void {
  if (session === null) return;
  tx.prepare(
    `update task indexed by task_steered set taken_by = null
      where session = ? and steer_until is not null and completed_at is null and taken_by = ?`,
  ).run(session, seq);
}

/** Stores an attempt that ended without ending its task. */
export function closeAttempt(
  tx: Transaction,
  lease: Lease,
  { outcome, error }: { outcome: AttemptOutcome; error: string },
): void {
  tx.prepare(
    "insert into attempt (task_seq, number, started_at, ended_at, outcome, error, node) values (?, ?, ?, ?, ?, ?, ?)",
  ).run(lease.task_seq, lease.attempt, lease.started_at, tx.now, outcome, error, lease.node);
}

/** Writes the start of an attempt that was assigned. Returns its lease, as that of a running one. */
export function addStart(tx: Transaction, lease: Lease): Lease {
  const { task_seq: taskSeq, line, attempt } = lease;
  const { tenant } = tx.ledger.agentQueue(line);
  tx.ledger.events.add({ type: "task.started", at: tx.now, tenant, taskSeq, data: { attempt } });
  return { ...lease, state: "running" };
}

/** Frees the slot and the concurrency key of an attempt. Returns its agent queue. */
export function freeSlot(tx: Transaction, lease: Lease): AgentQueue {
  const { ledger } = tx;
  tx.db.leases.forget(lease.task_seq);
  const agentQueue = ledger.agentQueue(lease.line);
  if (lease.concurrency_key !== null) ledger.keys.free(agentQueue.tenant, lease.concurrency_key);
  agentQueue.inflight -= 1;
  ledger.lane(agentQueue.lane).inflight -= 1;
  // The limit of an agent spans lanes: a slot that is freed in one may be what a task in another waits for.
  if (agentQueue.agent_max !== null)
    for (const { lane } of ledger.agentQueuesOfAgent(agentQueue.tenant, agentQueue.agent))
      ledger.lanesToRecheck.add(lane);
  return agentQueue;
}
