import type { AttemptOutcome, TaskKind } from "../../../../model/task.ts";
import type { TaskState, TerminalState } from "../../../../model/task-state.ts";
import { isAloneKind } from "../../../alone-queue.ts";
import { type ComeBack, comeBackText } from "../../../dependency-error.ts";
import type { BlockingDependency, TaskOrigin } from "../../../storage.ts";
import type { Transaction } from "../../connection/transaction.ts";
import type { AgentQueue } from "../../counters/ledger.ts";
import { agentQueueKindOf, UNSERVED } from "../../counters/standing.ts";
import { reopenRun } from "../../schedules/steps/end-run.ts";
import { RANK } from "../rank.ts";
import { enterQueue } from "./enter-queue.ts";

/** An ended task that a retry may queue again. */
export interface EndedTask {
  readonly seq: number;
  readonly id: string;
  readonly line: number;
  readonly batch: string | null;
  readonly session: number | null;
  readonly concurrency_key: string | null;
  readonly origin: TaskOrigin;
  readonly resting_state: TaskState;
  readonly created_at: number;
  readonly run_at: number | null;
  readonly deadline: number | null;
  readonly deadline_after_ms: number | null;
  readonly executions: number;
  readonly dependencies: number;
  readonly has_dependants: 0 | 1;
  readonly last_started_at: number | null;
  readonly last_outcome: AttemptOutcome | null;
  readonly error: string | null;
  readonly kind: TaskKind;
}

export const ENDED_COLUMNS = `t.seq, t.id, t.line, t.batch, t.session, t.concurrency_key, t.origin, t.resting_state, t.created_at, t.run_at, t.deadline,
  t.deadline_after_ms, t.executions, t.dependencies, t.has_dependants, t.last_started_at, t.last_outcome, t.error,
  t.spec ->> '$.work.kind' as kind`;

/** Whether the task could only fail again, because the deadline of its request has passed. */
export function isOverdue(task: EndedTask, now: number): boolean {
  return task.deadline_after_ms === null && task.deadline !== null && task.deadline <= now;
}

/** A dependency that will never be done; null: that dependency is deleted; undefined: there is none. */
export function findBlocking(tx: Transaction, task: EndedTask): BlockingDependency | null | undefined {
  if (task.dependencies === 0) return undefined;
  const parents = tx
    .prepare<{ id: string; resting_state: TaskState }>(
      `select p.id, p.resting_state from dependency d join task p on p.seq = d.parent_seq
        where d.child_seq = ? order by d.parent_seq`,
    )
    .all(task.seq);
  for (const { id, resting_state: state } of parents) {
    if (state === "failed" || state === "cancelled" || state === "rejected") {
      return { id, state: state satisfies TerminalState };
    }
  }
  return parents.length < task.dependencies ? null : undefined;
}

/** How many dependencies of a task are not done or do not exist. */
export function countUnmet(tx: Transaction, task: { seq: number; dependencies: number }): number {
  if (task.dependencies === 0) return 0;
  const row = tx
    .prepare<{ done: number }>(
      `select count(*) as done from dependency d join task p on p.seq = d.parent_seq
        where d.child_seq = ? and p.resting_state = 'done'`,
    )
    .get(task.seq);
  return task.dependencies - (row?.done ?? 0);
}

/** The new state of a task that was queued again. */
export interface RequeuedTask {
  readonly state: "waiting_dependency" | "delayed" | "queued";
  readonly position: number;
  readonly deadline: number | null;
  readonly unserved?: true;
}

/** Queues a failed or cancelled task again, or makes it wait, with all its retries and a new default deadline. */
export function requeueTask(tx: Transaction, task: EndedTask): RequeuedTask {
  const { ledger, now } = tx;
  const agentQueue = findAgentQueueAnew(tx, task);
  ledger.countWaiting(agentQueue, task, 1);
  const unmet = countUnmet(tx, task);
  const waits = unmet > 0;
  // The `runAt` of the request applies; the back-off of an earlier retry does not.
  const startsAt = !waits && task.executions === 0 ? Math.max(now, task.run_at ?? now) : now;
  const state = waits ? "waiting_dependency" : startsAt > now ? "delayed" : "queued";
  ledger.count(agentQueue.tenant, task.resting_state, -1);
  ledger.count(agentQueue.tenant, state, 1);
  const position = state !== "queued" ? 0 : ledger.waitingOfAgent(agentQueue.tenant, agentQueue.agent);
  const deadline =
    task.deadline_after_ms === null ? task.deadline : waits ? null : startsAt + task.deadline_after_ms;
  if (task.last_started_at !== null) {
    // The attempt that had ended the task becomes an earlier one.
    tx.prepare(
      `insert into attempt (task_seq, number, started_at, ended_at, outcome, error, node)
       select seq, executions, last_started_at, completed_at, last_outcome, error, last_node from task where seq = ?`,
    ).run(task.seq);
  }
  tx.prepare("delete from unserved where task_seq = ?").run(task.seq);
  const place = acceptInSession(tx, task.session);
  const { rank } = tx
    .prepare<{ rank: number }>(
      `update task set resting_state = @state, unmet = @unmet, position = @position, deadline = @deadline,
                       line = @line, rank = ${RANK}, place = @place, retry_count = 0, losses = 0, completed_at = null, last_started_at = null, last_outcome = null,
                       last_node = null, error = null, steer_until = null, taken_by = null, collects = 0
        where seq = @seq returning rank`,
    )
    .get({
      state,
      unmet,
      position,
      deadline,
      agingMs: ledger.lane(agentQueue.lane).aging_ms,
      place,
      line: agentQueue.id,
      seq: task.seq,
    }) as { rank: number };
  const batch = ledger.batches.of(task);
  if (batch !== undefined) batch.open += 1;
  if (state === "queued") enterQueue(tx, { ...task, line: agentQueue.id, rank, place, in_session: 0 });
  const error = task.error === null ? {} : { error: task.error };
  ledger.events.add({
    type: "task.retrying",
    at: now,
    tenant: agentQueue.tenant,
    taskSeq: task.seq,
    data: { attempt: task.executions, ...error, retryAt: startsAt, state },
  });
  if (task.origin === "run") reopenRun(tx, task.id);
  tx.signal("events", "work");
  if (deadline !== null || state === "delayed") tx.signal("due");
  return { state, position, deadline, ...(agentQueue.standing === UNSERVED ? { unserved: true } : {}) };
}

/**
 * Finds the agent queue for a retry. Since the task was inserted, nodes may have lost the ability to execute its kind, or its
 * agent may no longer be served. A task that ran alone returns to an ordinary queue.
 */
function findAgentQueueAnew(tx: Transaction, task: EndedTask): AgentQueue {
  const agentQueue = tx.ledger.agentQueue(task.line);
  const isOpen = agentQueue.kind === "" || isAloneKind(agentQueue.kind);
  const kind = isOpen ? agentQueueKindOf(tx.db, { ...agentQueue, kind: task.kind }) : agentQueue.kind;
  if (kind === agentQueue.kind) return agentQueue;
  const other = tx.ledger.agentQueueOf(agentQueue.lane, agentQueue.tenant, agentQueue.agent, kind);
  agentQueue.tasks -= 1;
  other.tasks += 1;
  tx.prepare("update task_of_line set line = ? where line = ? and task_seq = ?").run(
    other.id,
    agentQueue.id,
    task.seq,
  );
  return other;
}

/** Gives the task a new position in its session, so that an earlier stop of the session does not end it. */
function acceptInSession({ ledger }: Transaction, id: number | null): number | null {
  if (id === null) return null;
  const session = ledger.sessions.get(id);
  session.last_place += 1;
  return session.last_place;
}

/** Adds a release row that brings back the dependants that were cancelled because of a task. */
export function addComeBack(tx: Transaction, parentSeq: number, comeBack: ComeBack): void {
  tx.prepare("insert into release (parent_seq, error) values (?, ?)").run(parentSeq, comeBackText(comeBack));
  tx.ledger.hasReleases = true;
}
